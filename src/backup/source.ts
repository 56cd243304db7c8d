/**
 * Where a restore and `verify` start: the logs and the secret of a backup, in a folder of their own, as in a data
 * folder.
 */
import { copyFileSync, existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { LogKind, Mark } from '../history/format.ts';
import { LogDamage } from '../history/log-error.ts';
import { findTail, placeOf } from '../history/log-reader.ts';
import { logFolder } from '../history/segment.ts';
import { Refused, reasonOf } from '../refused.ts';
import { type DataFolder, dataFolder, syncFile } from '../store/folder.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { newestBranch, notAFolder, readState, sha256 } from './branch.ts';
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
  /** The last entry of each log. */
  readonly log: Mark | null;
  readonly accessLog: Mark | null;
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
  const lastEntry = (kind: LogKind, end: Mark | null): Mark | null => {
    const log = logFolder(stage, kind);
    if (end !== null && placeOf(log, kind, end) !== 'known')
      throw new LogDamage(`the ${kind} log does not reach entry ${end.entry}, the last one of the backup`);
    return findTail(log, kind).last;
  };
  return {
    at: state?.at ?? null,
    log: lastEntry('detections', state?.log ?? null),
    accessLog: lastEntry('access', state?.access_log ?? null),
  };
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
  const copyUpTo = (kind: LogKind, end: Mark | null) =>
    copyLog({
      from: logFolder(from, kind),
      to: logFolder(stage, kind),
      kind,
      end,
      aside: stage.root,
      onBytes,
    });
  // In this order, as for a backup.
  const accessEnd = findTail(from.accessLog, 'access').last;
  copyUpTo('detections', findTail(from.log, 'detections').last);
  copyUpTo('access', accessEnd);
  copyFileSync(from.secret, stage.secret);
  syncFile(stage.secret);
}
