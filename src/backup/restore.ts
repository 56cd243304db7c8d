/**
 * Restores a backup into an empty data folder, or in place of the contents of one.
 *
 * The new state is built in the data folder, complete and verified, before anything is moved. Then one rename makes it
 * the effective one; store/complete-restore.ts describes what a crash leaves.
 */
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { LogDamage, LogFailure } from '../history/log-error.ts';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import {
  completeRestore,
  incomingNames,
  pendingRestore,
  RESTORED_NAMES,
  stateFiles,
} from '../store/complete-restore.ts';
import { isDiskFull } from '../store/database-errors.ts';
import { type DataFolder, dataFolder, ensureFolder, syncFolder, writeWhole } from '../store/folder.ts';
import { takeStopped } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { formatCompact, type Now } from '../time.ts';
import { makeNewState, type NewState } from './restored-state.ts';
import { findSource } from './source.ts';

export interface RestoreOptions {
  /** The backup folder, or a data folder. */
  readonly source: string;
  readonly data: string;
  /** Whether an existing installation is moved aside. */
  readonly replace: boolean;
  /** Restores the state at this time, epoch milliseconds; null: the newest. */
  readonly untilMs: number | null;
  /** The drop folder, whose archive may contain newer files. */
  readonly drop: string;
  readonly now: Now;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

export interface Restored extends Omit<NewState, 'gone'> {
  /** The backup that was restored. */
  readonly source: string;
  /** The folder with the previous contents; null if there were none. */
  readonly replaced: string | null;
  /**
   * Detections that clients may have, and that no longer exist: nothing withdraws them. `file` has their ids, one a line;
   * null: there are none.
   */
  readonly gone: { readonly count: number; readonly file: string } | null;
}

export type RestoreOutcome =
  | { readonly kind: 'restored'; readonly restored: Restored }
  /** An earlier restore had been interrupted, and is complete now; nothing else was done. */
  | { readonly kind: 'completed'; readonly replaced: string | null };

/** Incomplete: if a killed restore left it, it can be removed. */
const UNFINISHED = '.incoming';
/** Including those of SQLite beside them. */
const OWN_LOCKS = /^lock(-state)?(-journal)?$/;

/** @throws Refused `failed`, with nothing changed, if the backup is damaged or cannot be restored into the folder */
export async function restore(options: RestoreOptions): Promise<RestoreOutcome> {
  const { now } = options;
  const folder = dataFolder(options.data);
  requireOwner(folder);
  const source = findSource(options.source);
  const isNewFolder = ensureFolder(folder);
  const release = takeStopped(folder);
  let isUntouched = true;
  try {
    // An interrupted restore is completed first.
    isUntouched = pendingRestore(folder) === null;
    const replaced = completeRestore(folder);
    if (replaced !== undefined) return { kind: 'completed', replaced: pathOf(folder, replaced) };
    requireReplace(folder, options.replace);
    const stage = dataFolder(join(folder.root, UNFINISHED));
    rmSync(stage.root, { recursive: true, force: true });
    mkdirSync(stage.root, { mode: 0o700 });
    try {
      const { gone, ...made } = await makeSound(options, source, stage, folder);
      for (const name of readdirSync(stage.root))
        if (!RESTORED_NAMES.includes(name)) rmSync(join(stage.root, name), { recursive: true, force: true });
      syncFolder(stage.root);
      const listed = listGone(folder, gone, now());
      // From here on the new state is the effective one, whatever happens.
      renameSync(stage.root, join(folder.root, incomingNames(folder, now()).incoming));
      isUntouched = false;
      syncFolder(folder.root);
      const aside = completeRestore(folder) ?? null;
      return {
        kind: 'restored',
        restored: { ...made, source, replaced: pathOf(folder, aside), gone: listed },
      };
    } finally {
      rmSync(stage.root, { recursive: true, force: true });
    }
  } catch (error) {
    throw explained(error, folder, isUntouched);
  } finally {
    try {
      if (isNewFolder && isUntouched) removeEmpty(folder);
    } finally {
      release();
    }
  }
}

/**
 * @param live the folder that is restored into
 * @throws Refused `failed` if the backup is damaged
 */
async function makeSound(
  { drop, untilMs, now, onProgress }: RestoreOptions,
  source: string,
  stage: DataFolder,
  live: DataFolder,
): Promise<NewState> {
  try {
    return await makeNewState({ source, stage, live, drop, untilMs, now, onProgress });
  } catch (error) {
    const damage = error instanceof Refused && error.cause instanceof LogDamage ? error.cause : error;
    if (!(damage instanceof LogDamage) && !(damage instanceof Refused)) throw error;
    // The path is in a copy, but the backup is meant.
    const what = damage.message.replaceAll(`${stage.root}/`, '');
    throw new Refused('failed', `${source} cannot be restored: ${what}. Nothing was changed.`, {
      cause: error,
    });
  }
}

function listGone({ root }: DataFolder, gone: readonly string[], nowMs: number): Restored['gone'] {
  if (gone.length === 0) return null;
  const file = join(root, `gone-${formatCompact(nowMs)}.txt`);
  writeWhole(file, gone.map((id) => `${id}\n`).join(''));
  return { count: gone.length, file };
}

function pathOf({ root }: DataFolder, name: string | null): string | null {
  return name === null ? null : join(root, name);
}

/** Only if nobody else has put anything there meanwhile. */
function removeEmpty({ root }: DataFolder): void {
  const there = readdirSync(root);
  if (!there.every((name) => OWN_LOCKS.test(name))) return;
  for (const name of there) rmSync(join(root, name), { force: true });
  try {
    rmdirSync(root);
  } catch (error) {
    if (!isErrorCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}

function requireReplace(folder: DataFolder, replace: boolean): void {
  const there = stateFiles(folder).filter((name) => RESTORED_NAMES.includes(name));
  if (there.length === 0 || replace) return;
  throw new Refused(
    'failed',
    `${folder.root} already contains an installation (${there.join(', ')}). To restore the backup there, add --replace: the existing files are moved aside, not deleted. Or name another folder with --data.`,
  );
}

/** Describes an error of the disk. @param isUntouched whether the data folder is unchanged */
function explained(error: unknown, { root }: DataFolder, isUntouched: boolean): unknown {
  if (error instanceof Refused) return error;
  const state = isUntouched
    ? 'Nothing was changed.'
    : 'The restored state is already in place: the next start completes the restore, or run the same command again.';
  const cause = { cause: error };
  if (isDiskFull(error))
    return new Refused('failed', `the disk of ${root} is full. ${state} Free space and try again.`, cause);
  const reason = error instanceof LogFailure ? error.message : reasonOf(error);
  if (error instanceof LogFailure || isErrorCode(error, 'EACCES', 'EPERM', 'EROFS', 'EIO'))
    return new Refused('failed', `${reason}. ${state} Check the disk and the permissions.`, cause);
  return error;
}
