/** Reads a backup: for a restore, which starts with a copy of it, and for `verify`. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { findAccess, findCopy } from '../auth/spare-copy.ts';
import { type Commit, type Mark, SNAPSHOT } from '../log/format.ts';
import { entriesAfter, placeOf } from '../log/log-reader.ts';
import { listSegments } from '../log/segment.ts';
import { failed, Refused, reasonOf } from '../refused.ts';
import { type DataFolder, dataFolder, syncFile, syncFolder, writeWhole } from '../store/folder.ts';
import { isLogError, LogDamage } from '../store/log-errors.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { type CopiedAccess, notAFolder, readState, sha256 } from './backup-state.ts';

type OnProgress = (what: string, done: number, total: number) => void;

/**
 * The path of a backup folder, or of a data folder.
 * @throws Refused `failed` if there is no backup, or it cannot be read
 */
export function findSource(given: string): string {
  const path = resolve(given);
  try {
    if (!statSync(path).isDirectory()) throw notAFolder(path);
    if (existsSync(dataFolder(path).secret)) return path;
    if (readState(path) !== null) return path;
    throw new Error('it contains no backup');
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw failed(`cannot read the backup ${path}: ${reasonOf(error, path)}.`, { cause: error });
  }
}

/**
 * Copies the contents of a backup into an empty folder, and checks that they reach the end that the backup names.
 * @param path of {@link findSource}
 * @returns when it was last updated; null if that is not known, as for a data folder
 * @throws Refused `failed`, LogDamage; the text follows the name of the backup
 */
export function loadSource(path: string, stage: DataFolder, onProgress: OnProgress): string | null {
  // Before the copy: another backup may update it meanwhile.
  const state = readState(path);
  if (!existsSync(dataFolder(path).secret)) throw failed('it has no secret');
  copyFolder(dataFolder(path), stage, onProgress);
  requireSecret(stage.secret, state?.secret_sha256 ?? null);
  requireAccess(stage.access, state?.access ?? null);
  const end = state?.log ?? null;
  if (end !== null && !hasEntry(stage.log, end))
    throw new LogDamage(`the log does not reach entry ${end.entry}, the last one of the backup`);
  return state?.at ?? null;
}

/** Whether a log has an entry, or a snapshot that has it. */
export function hasEntry(log: string, end: Mark): boolean {
  return ['known', 'before'].includes(placeOf(log, end));
}

/** @param expected what the backup names; null: a data folder names nothing. @throws Refused `failed` */
function requireAccess(path: string, expected: CopiedAccess | null): void {
  const found = findCopy(path);
  if (found.kind !== 'sound')
    throw failed(`its access.db is ${found.kind === 'missing' ? 'missing' : `damaged: ${found.reason}`}`);
  if (expected === null || found.state.change > expected.change) return;
  if (sha256(readFileSync(path)) !== expected.sha256)
    throw failed('its access.db is damaged: its content has changed');
}

function copyFolder(from: DataFolder, stage: DataFolder, onProgress: OnProgress): void {
  // In this order, as for a backup: of a data folder, with what its write-ahead log has, and from its spare copy where it
  // is damaged.
  const found = findAccess(from);
  if (found.kind === 'sound') writeWhole(stage.access, found.content);
  const segments = listSegments(from.log);
  mkdirSync(stage.log, { mode: 0o700 });
  for (const [done, { path }] of segments.entries()) {
    onProgress('copying the log', done, segments.length);
    copyFileSync(path, join(stage.log, basename(path)));
    syncFile(join(stage.log, basename(path)));
  }
  syncFolder(stage.log);
  copyFileSync(from.secret, stage.secret);
  syncFile(stage.secret);
}

export interface VerifiedBackup {
  /** The backup folder, or the data folder. */
  readonly path: string;
  /** When it was last updated; null if that is not known, as for a data folder. */
  readonly at: string | null;
  /** Entries of the log. */
  readonly entries: number;
  /** What is wrong with it, in words; empty if nothing is. */
  readonly findings: readonly string[];
}

/** @param path the folder that contains the logs */
export function verifyBackup(path: string, onProgress: OnProgress): VerifiedBackup {
  const folder = dataFolder(path);
  const findings: string[] = [];
  const guard = <Result>(work: () => Result): Result | null => {
    try {
      return work();
    } catch (error) {
      if (!isLogError(error) && !(error instanceof Refused)) throw error;
      findings.push(reasonOf(error));
      return null;
    }
  };
  const state = guard(() => readState(path));
  const entries = guard(() => readThrough(folder.log, state?.log ?? null, onProgress))?.entry ?? 0;
  guard(() => requireAccess(folder.access, state?.access ?? null));
  guard(() => requireSecret(folder.secret, state?.secret_sha256 ?? null));
  return { path, at: state?.at ?? null, entries, findings };
}

/** @param end an entry that must be there; @returns the last one */
function readThrough(log: string, end: Mark | null, onProgress: OnProgress): Commit | null {
  let last: Commit | null = null;
  let hasEnd = end === null;
  for (const { segment, part, bytes } of entriesAfter(log, null)) {
    // Unpacks them: a matching checksum does not prove that they can be read.
    if (part.lines.length === 0 && part.kind === 'lines') throw failed(`${segment.path} is empty`);
    if (part.kind !== 'commit') continue;
    last = part.commit;
    // A snapshot may have taken the place of the entries up to it.
    hasEnd ||= last.id === end?.id || (last.operation.kind === SNAPSHOT && last.entry > (end?.entry ?? 0));
    onProgress('reading the log', bytes, 0);
  }
  if (!hasEnd) throw failed(`${log} does not reach entry ${end?.entry}, the last one of the backup`);
  return last;
}

/** @param expected what the backup names; null: a data folder names nothing. @throws Refused `failed` */
function requireSecret(path: string, expected: string | null): void {
  if (!existsSync(path)) throw failed('it has no secret');
  const secret = readFileSync(path);
  if (secret.length !== SECRET_BYTES || (expected !== null && sha256(secret) !== expected))
    throw failed('its secret is damaged');
}
