/**
 * Where a restore and `verify` start: the log, `access.db` and the secret of a backup, in a folder of their own, as in a
 * data folder.
 */
import { copyFileSync, existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { findAccess, findCopy } from '../auth/spare-copy.ts';
import type { Mark } from '../history/format.ts';
import { LogDamage } from '../history/log-error.ts';
import { findTail, placeOf } from '../history/log-reader.ts';
import { Refused, reasonOf } from '../refused.ts';
import { type DataFolder, dataFolder, syncFile, writeWhole } from '../store/folder.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { type CopiedAccess, newestBranch, notAFolder, readState, sha256 } from './branch.ts';
import { copyLog } from './log-copy.ts';

/**
 * The folder that contains the logs: a branch, the newest branch of a backup folder, or a data folder.
 *
 * @throws Refused `failed` if there is no backup, or it cannot be read
 */
export function findSource(given: string): string {
  const path = resolve(given);
  try {
    if (!statSync(path).isDirectory()) throw notAFolder(path);
    if (existsSync(dataFolder(path).secret)) return path;
    const branch = newestBranch(path);
    if (branch === null) throw new Error('it contains no backup');
    return branch;
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused('failed', `cannot read the backup ${path}: ${reasonOf(error, path)}.`, {
      cause: error,
    });
  }
}

/** The contents of a backup. */
export interface Loaded {
  /** When it was last updated; null if that is not known, as for a data folder. */
  readonly at: string | null;
  /** The last entry of the log. */
  readonly log: Mark | null;
}

/**
 * Copies the contents of a backup into an empty folder, and checks that they reach the end that the backup names.
 *
 * @param path of {@link findSource}
 * @throws Refused `failed`, LogDamage; the text follows the name of the backup
 */
export function loadSource(
  path: string,
  stage: DataFolder,
  onProgress: (what: string, done: number, total: number) => void,
): Loaded {
  // Before the copy: another backup may update it meanwhile.
  const state = readState(path);
  if (!existsSync(dataFolder(path).secret)) throw new Refused('failed', 'it has no secret');
  copyFolder(dataFolder(path), stage, onProgress);
  const secret = readFileSync(stage.secret);
  if (secret.length !== SECRET_BYTES || (state !== null && sha256(secret) !== state.secret_sha256))
    throw new Refused('failed', 'its secret is damaged');
  requireAccess(stage.access, state?.access ?? null);
  const end = state?.log ?? null;
  if (end !== null && placeOf(stage.log, end) !== 'known')
    throw new LogDamage(`the log does not reach entry ${end.entry}, the last one of the backup`);
  return { at: state?.at ?? null, log: findTail(stage.log).last };
}

/** @param expected what the backup names; null: a data folder names nothing. @throws Refused `failed` */
export function requireAccess(path: string, expected: CopiedAccess | null): void {
  const found = findCopy(path);
  if (found.kind !== 'sound')
    throw new Refused(
      'failed',
      `its access.db is ${found.kind === 'missing' ? 'missing' : `damaged: ${found.reason}`}`,
    );
  if (expected === null || found.state.change > expected.change) return;
  if (sha256(readFileSync(path)) !== expected.sha256)
    throw new Refused('failed', 'its access.db is damaged: its content has changed');
}

function copyFolder(
  from: DataFolder,
  stage: DataFolder,
  onProgress: (what: string, done: number, total: number) => void,
): void {
  let copied = 0;
  const onBytes = (bytes: number) => {
    copied += bytes;
    onProgress('copying the log', copied, 0);
  };
  // In this order, as for a backup.
  copyAccess(from, stage);
  copyLog({ from: from.log, to: stage.log, end: findTail(from.log).last, aside: stage.root, onBytes });
  copyFileSync(from.secret, stage.secret);
  syncFile(stage.secret);
}

/** Of a data folder, with what its write-ahead log has, and from its spare copy where it is damaged. */
function copyAccess(from: DataFolder, stage: DataFolder): void {
  const found = findAccess(from);
  if (found.kind === 'sound') writeWhole(stage.access, found.content);
}
