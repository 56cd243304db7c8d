/**
 * The branches of a backup folder. Each branch is one history: a folder with `log/`, `access.db`, `secret` and
 * `backup.json`, which names its last entries. Only an installation whose log contains these entries continues the
 * branch; any other one starts a new branch beside it, and so does one whose log was rewritten.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type AccessState, type FoundCopy, findCopy } from '../auth/spare-copy.ts';
import { isObject, type Mark } from '../history/format.ts';
import { isLogError } from '../history/log-error.ts';
import { findTail, placeOf } from '../history/log-reader.ts';
import { listSegments } from '../history/segment.ts';
import { isErrorCode, Refused } from '../refused.ts';
import { type DataFolder, dataFolder, syncFolder, unusedTime, writeWhole } from '../store/folder.ts';
import { DAY_MS, formatMs, parseInstant } from '../time.ts';

export const STATE = 'backup.json';
const FORMAT = 'wirewatch-backup';
const FORMAT_VERSION = 1;
const NEWEST = 'newest';
/** In a branch: what is past the days to keep, and since when. */
const EXPIRED = 'expired.json';
const BRANCH = /^wirewatch-\d{8}T\d{6}Z$/;
const REPLACED = /^replaced-(\d{8})T(\d{6})Z$/;

/** A copy of `access.db`. */
export interface CopiedAccess extends AccessState {
  readonly sha256: string;
}

/** The state of a backup: written when everything that it names is on the disk. */
export interface BackupState {
  readonly format: typeof FORMAT;
  readonly version: number;
  /** The version of the program that wrote it. */
  readonly program: string;
  /** The backup contains everything up to this time. */
  readonly at: string;
  /** The last entry of the log. */
  readonly log: Mark | null;
  /** `access.db`. An interrupted run may have left a later one. */
  readonly access: CopiedAccess;
  readonly secret_sha256: string;
}

export function newState(members: Omit<BackupState, 'format' | 'version'>): BackupState {
  return { format: FORMAT, version: FORMAT_VERSION, ...members };
}

/** @returns null if there is none; @throws Refused `failed` if it is damaged, or from a newer program */
export function readState(folder: string): BackupState | null {
  const text = readSmall(join(folder, STATE));
  if (text === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (!isObject(value) || value.format !== FORMAT || typeof value.version !== 'number')
    throw new Refused('failed', `its ${STATE} is damaged`);
  if (value.version > FORMAT_VERSION)
    throw new Refused(
      'failed',
      `its ${STATE} has format version ${value.version}, but this program supports ${FORMAT_VERSION}. Use the version of Wirewatch that wrote it: ${value.program}`,
    );
  const { program, at, log, access, secret_sha256 } = value;
  return newState({
    program: String(program),
    at: String(at),
    log: markOf(log),
    access: accessOf(access),
    secret_sha256: String(secret_sha256),
  });
}

/** @returns null where there is none */
function readSmall(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return null;
    throw error;
  }
}

function markOf(value: unknown): Mark | null {
  if (value === null) return null;
  if (isObject(value) && typeof value.entry === 'number' && typeof value.id === 'string')
    return { entry: value.entry, id: value.id };
  throw new Refused('failed', `its ${STATE} is damaged`);
}

function accessOf(value: unknown): CopiedAccess {
  if (isObject(value) && typeof value.change === 'number')
    return { installation: String(value.installation), change: value.change, sha256: String(value.sha256) };
  throw new Refused('failed', `its ${STATE} is damaged`);
}

/** @returns the bytes that were written */
export function writeState(folder: string, state: BackupState): number {
  return writeWhole(join(folder, STATE), `${JSON.stringify(state)}\n`);
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * When the newest branch of a backup folder was last updated, epoch milliseconds; null for never.
 *
 * @throws the file system's error, and Refused `failed` as {@link readState} does
 */
export function backedUpMs(folder: string): number | null {
  const branch = newestBranch(folder);
  return branch === null ? null : parseInstant(readState(branch)?.at ?? '');
}

/** A file instead of a backup folder, whether it is to be written or read. */
export function notAFolder(path: string): Refused {
  return new Refused(
    'failed',
    `${path} cannot be a backup: a backup is a folder. To keep one as a single file, pack the folder with tar, and unpack it before you verify or restore it.`,
  );
}

/** Names of the branches in a backup folder, the oldest first. */
export function listBranches(folder: string): string[] {
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => BRANCH.test(name))
        .sort()
    : [];
}

/** The path of the branch that was written last; null if there is none. */
export function newestBranch(folder: string): string | null {
  const branches = listBranches(folder);
  const name = readSmall(join(folder, NEWEST))?.trim() ?? '';
  const newest = branches.includes(name) ? name : branches.at(-1);
  return newest === undefined ? null : join(folder, newest);
}

/**
 * The branch that an installation continues; a new one if none is an earlier state of it.
 *
 * @returns its name, and whether it is a new one beside others
 */
export function branchFor(data: DataFolder, folder: string, nowMs: number): { name: string; isNew: boolean } {
  const branches = listBranches(folder);
  const found = findCopy(data.access);
  const own = branches.toReversed().find((name) => isOf(data, found, dataFolder(join(folder, name))));
  if (own !== undefined) return { name: own, isNew: false };
  const name = `wirewatch-${unusedTime(nowMs, (time) => [join(folder, `wirewatch-${time}`)])}`;
  mkdirSync(join(folder, name), { mode: 0o700 });
  syncFolder(folder);
  return { name, isNew: branches.length > 0 };
}

/** Whether a branch is an earlier state of the installation. @param own its access.db */
function isOf(data: DataFolder, own: FoundCopy, branch: DataFolder): boolean {
  const ends = endsOf(branch);
  if (ends === null) return false;
  const { log, access } = ends;
  if (access !== null && own.kind === 'sound') {
    const { installation, change } = own.state;
    if (access.installation !== installation || access.change > change) return false;
  }
  if (log === null) return access !== null;
  return beginOf(branch.log) === beginOf(data.log) && placeOf(data.log, log) === 'known';
}

/** The name of the first segment: a log that was rewritten has another one. */
export function beginOf(log: string): string {
  return basename(listSegments(log)[0]?.path ?? '');
}

/** The end of a branch, even if its first run was interrupted; null if it is not known. */
function endsOf(branch: DataFolder): { log: Mark | null; access: AccessState | null } | null {
  try {
    return readState(branch.root) ?? { log: findTail(branch.log).last, access: null };
  } catch (error) {
    if (error instanceof Refused || isLogError(error)) return null;
    throw error;
  }
}

export function noteNewest(folder: string, name: string): void {
  if (newestBranch(folder) !== join(folder, name) || !existsSync(join(folder, NEWEST)))
    writeWhole(join(folder, NEWEST), `${name}\n`);
}

/**
 * Deletes branches that have not been written to, and segments that were replaced, for longer than the given days. A run
 * notes them, and one that finds the same a day later deletes them: a clock that was ahead meanwhile costs nothing. With
 * 0 days the clock does not matter, and nothing waits.
 *
 * @param own the branch that is in use; @returns what was deleted
 */
export function deleteOld(folder: string, own: string, keepDays: number, nowMs: number): string[] {
  const branch = join(folder, own);
  const noted = readExpired(branch);
  const notedAtMs = (name: string) => Math.min(parseInstant(noted[name] ?? '') ?? nowMs, nowMs);
  const expired = expiredIn(folder, own, nowMs - keepDays * DAY_MS);
  const old = expired.filter((name) => keepDays === 0 || nowMs - notedAtMs(name) >= DAY_MS);
  for (const name of old) rmSync(join(folder, name), { recursive: true, force: true });
  const waiting = expired.filter((name) => !old.includes(name));
  writeExpired(branch, Object.fromEntries(waiting.map((name) => [name, formatMs(notedAtMs(name))])));
  return old.map((name) => join(folder, name));
}

/** Branches and folders of replaced segments, from the backup folder on. */
function expiredIn(folder: string, own: string, beforeMs: number): string[] {
  const branches = listBranches(folder).filter(
    (name) => name !== own && writtenAt(join(folder, name)) < beforeMs,
  );
  const replaced = readdirSync(join(folder, own)).filter((name) => {
    const [, day = '', time = ''] = REPLACED.exec(name) ?? [];
    return day !== '' && instantOf(day, time) < beforeMs;
  });
  return [...branches, ...replaced.map((name) => join(own, name))];
}

/** What earlier runs noted: when each was first found. */
function readExpired(branch: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(readSmall(join(branch, EXPIRED)) ?? '{}');
    const entries = isObject(value) ? Object.entries(value) : [];
    return Object.fromEntries(entries.map(([name, at]) => [name, String(at)]));
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function writeExpired(branch: string, expired: Record<string, string>): void {
  const text = `${JSON.stringify(expired)}\n`;
  const path = join(branch, EXPIRED);
  if (Object.keys(expired).length === 0) rmSync(path, { force: true });
  else if (readSmall(path) !== text) writeWhole(path, text);
}

/** When a branch was last written to, epoch milliseconds. */
function writtenAt(branch: string): number {
  try {
    const ms = parseInstant(readState(branch)?.at ?? '');
    if (ms !== null) return ms;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  const [, day = '', time = ''] = /-(\d{8})T(\d{6})Z$/.exec(branch) ?? [];
  return instantOf(day, time);
}

function instantOf(day: string, time: string): number {
  const date = `${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}`;
  return parseInstant(`${date}T${time.slice(0, 2)}:${time.slice(2, 4)}:${time.slice(4)}Z`) ?? Infinity;
}
