/**
 * The files of the schedule: known by their names, which say when each was begun. No other file in the folder is ever
 * counted or deleted.
 */
import { lstatSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isErrorCode } from '../refused.ts';
import { syncFolder } from '../store/folder.ts';
import { formatCompact, parseInstant } from '../time.ts';

/** One that did not pass its test is kept under another name until a good one follows: somebody may want to see it. */
const DAMAGED = '.damaged';
const UNTESTED = '.untested';
const NAME = /^wirewatch-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.tar(\.damaged)?$/;

export interface KeptFile {
  readonly path: string;
  readonly name: string;
  /** When it was begun, epoch milliseconds. */
  readonly at: number;
  readonly isDamaged: boolean;
}

export function backupName(atMs: number): string {
  return `wirewatch-${formatCompact(atMs)}.tar`;
}

/** The newest first. @throws the file system's error when the folder cannot be read */
export function listKept(folder: string): KeptFile[] {
  return readdirSync(folder)
    .flatMap((name): KeptFile[] => {
      const match = NAME.exec(name);
      if (match === null || lstatSync(join(folder, name), { throwIfNoEntry: false })?.isFile() !== true)
        return [];
      const [, year, month, day, hour, minute, second, damaged] = match;
      const at = parseInstant(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
      return at === null ? [] : [{ path: join(folder, name), name, at, isDamaged: damaged !== undefined }];
    })
    .sort((a, b) => b.at - a.at);
}

/**
 * One from the future was made while the clock was wrong: to wait for its time could take years.
 *
 * @param files as {@link listKept} gives them; @returns null when no good one is among them
 */
export function newestGood(files: readonly KeptFile[], nowMs: number): KeptFile | null {
  return files.find(({ isDamaged, at }) => !isDamaged && at <= nowMs) ?? null;
}

/**
 * When the oldest one was begun that could be put in place, epoch milliseconds; null: there is none.
 *
 * @throws the file system's error when the folder cannot be read, or is missing though backups are made
 */
export function oldestKept({ folder, every_hours }: { folder: string; every_hours: number }): number | null {
  try {
    return listKept(folder).findLast(({ isDamaged }) => !isDamaged)?.at ?? null;
  } catch (error) {
    if (every_hours === 0 && isErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** The name under which one is written, until its test says what it is. */
export function untested(path: string): string {
  return `${path}${UNTESTED}`;
}

/** From now on it counts, or is known as one that did not pass. */
export function markTested(path: string, isGood: boolean): void {
  renameSync(untested(path), isGood ? path : `${path}${DAMAGED}`);
  syncFolder(dirname(path));
}

/** Those whose test was cut off. */
export function removeUntested(folder: string): void {
  for (const name of readdirSync(folder))
    if (name.endsWith(UNTESTED) && NAME.test(name.slice(0, -UNTESTED.length)))
      rmSync(join(folder, name), { force: true });
}

/**
 * Deletes what is older than the newest `keep` good ones, and those that did not pass their test up to the newest good
 * one (both may be of one second, since names tell no more). What is named for a time to come counts for nothing, and
 * stays.
 *
 * @returns the names of what was deleted
 */
export function deleteOld(folder: string, keep: number, nowMs: number): string[] {
  const files = listKept(folder);
  const good = files.filter(({ isDamaged, at }) => !isDamaged && at <= nowMs);
  const [newest] = good;
  const old = [
    ...good.slice(keep),
    ...files.filter(({ isDamaged, at }) => isDamaged && newest !== undefined && at <= newest.at),
  ];
  for (const { path } of old) rmSync(path, { force: true });
  if (old.length > 0) syncFolder(folder);
  return old.map(({ name }) => name);
}
