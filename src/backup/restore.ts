/**
 * Puts a backup in place of what a data folder holds, or into one that holds nothing.
 *
 * The backup is unpacked within the data folder and looked through like an installation before anything is moved.
 * Then one rename makes the new state the one that holds; see store/incoming.ts for what a crash leaves.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { actAsOwner } from '../store/acting-user.ts';
import { isDiskFull } from '../store/database-errors.ts';
import { type DataFolder, dataFolder, ensureFolder, syncFile, syncFolder } from '../store/folder.ts';
import { completeRestore, incomingNames, pendingRestore, stateFiles } from '../store/incoming.ts';
import { isLocked, type Release, takeLock, takeStateAlone } from '../store/locks.ts';
import type { Now } from '../time.ts';
import type { Manifest } from './backup-file.ts';
import { type Outlook, outlook } from './outlook.ts';
import { chooseJournal, type JournalChoice } from './restored-journal.ts';
import { freeBytes, inMib } from './room.ts';
import { unpackTar } from './tar-file.ts';
import { verify } from './verify.ts';

export interface RestoreOptions {
  /** The backup, absolute. */
  readonly file: string;
  readonly data: string;
  /** Whether an installation that is there is moved aside. */
  readonly replace: boolean;
  /** The drop folder, whose archive may hold what came since. */
  readonly drop: string;
  readonly now: Now;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

export interface Restored {
  readonly manifest: Manifest;
  readonly journal: JournalChoice;
  readonly outlook: Outlook;
  /** The folder with what was there before; null where nothing was. */
  readonly aside: string | null;
}

export type RestoreOutcome =
  | ({ readonly kind: 'restored' } & Restored)
  /** An earlier restore had been cut off, and is complete now; nothing else was done. */
  | { readonly kind: 'completed'; readonly aside: string | null };

/** Unpacked and not yet complete: left by a restore that was killed, it is nobody's. */
const UNPACKED = '.incoming';
/** With SQLite's own beside them. */
const OWN_LOCKS = /^lock(-state)?(-journal)?$/;
const SPARE_BYTES = 1024 * 1024;

/** @throws Refused `failed`, with nothing touched, when the backup is not good or the folder cannot take it */
export async function restore(options: RestoreOptions): Promise<RestoreOutcome> {
  const { file, now } = options;
  const folder = dataFolder(options.data);
  actAsOwner(folder);
  const bytes = sizeOf(file);
  const isNewFolder = ensureFolder(folder);
  const release = lock(folder);
  let isUntouched = true;
  try {
    // One that was cut off is completed first.
    isUntouched = pendingRestore(folder) === null;
    const aside = completeRestore(folder);
    if (aside !== undefined)
      return { kind: 'completed', aside: aside === null ? null : join(folder.root, aside) };
    requireReplace(folder, options.replace);
    const unpacked = join(folder.root, UNPACKED);
    rmSync(unpacked, { recursive: true, force: true });
    requireRoom(folder, bytes);
    try {
      mkdirSync(unpacked, { mode: 0o700 });
      const stage = dataFolder(unpacked);
      const manifest = await unpackSound(options, stage);
      const journal = chooseJournal(stage, folder, now());
      if (existsSync(stage.journal)) syncFile(stage.journal);
      syncFolder(unpacked);
      const expected = outlook(stage, options.drop, journal);
      // From here on the new state holds, whatever happens.
      renameSync(unpacked, join(folder.root, incomingNames(folder, now()).incoming));
      isUntouched = false;
      syncFolder(folder.root);
      const aside = completeRestore(folder) ?? null;
      return {
        kind: 'restored',
        manifest,
        journal,
        outlook: expected,
        aside: aside === null ? null : join(folder.root, aside),
      };
    } finally {
      rmSync(unpacked, { recursive: true, force: true });
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

/** Not where somebody else has begun something there meanwhile. */
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

async function unpackSound({ file, onProgress }: RestoreOptions, stage: DataFolder): Promise<Manifest> {
  let manifest: Manifest;
  try {
    manifest = await unpackTar(file, stage.root, (done) => onProgress('unpacking', done, 0));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new Refused('failed', `${file} cannot be restored: ${error.message}. Nothing was changed.`, {
      cause: error,
    });
  }
  const findings = (await verify(stage, { archive: null, onProgress })).list();
  const [first] = findings;
  if (first === undefined) return manifest;
  const more = findings.length === 1 ? '' : ` (and ${findings.length - 1} more)`;
  throw new Refused(
    'failed',
    `${file} cannot be restored: ${first.check}: ${first.detail}${more}. Nothing was changed. See all of it with: wirewatch verify ${file}`,
  );
}

function lock(folder: DataFolder): Release {
  const releaseLock = takeLock(folder.lock);
  if (releaseLock === null) {
    const who = isLocked(folder.serveLock) ? 'an appliance runs' : 'a command that ingests is at work';
    throw new Refused('failed', `${who} on ${folder.root}. Stop it first; nothing was changed.`);
  }
  try {
    const releaseState = takeStateAlone(folder);
    return () => {
      releaseState();
      releaseLock();
    };
  } catch (error) {
    releaseLock();
    throw error;
  }
}

/** A journal alone is what was kept for this very purpose. */
function requireReplace(folder: DataFolder, replace: boolean): void {
  const there = stateFiles(folder).filter((name) => ['detections.db', 'access.db', 'secret'].includes(name));
  if (there.length === 0 || replace) return;
  throw new Refused(
    'failed',
    `${folder.root} holds an installation (${there.join(', ')}). To put the backup in its place, add --replace: it is moved aside then, not deleted. Or name another folder with --data.`,
  );
}

function sizeOf(file: string): number {
  try {
    const found = statSync(file);
    if (!found.isFile()) throw new Error('it is not a file');
    // Not access(2), which asks for the real user.
    closeSync(openSync(file, 'r'));
    return found.size;
  } catch (error) {
    const reason = reasonOf(error, file);
    const whose =
      process.getuid?.() === process.geteuid?.()
        ? ''
        : '. The data folder belongs to another user, as whom root restores: give that one the right to read it.';
    throw new Refused('failed', `cannot read the backup ${file}: ${reason}${whose}`, { cause: error });
  }
}

function requireRoom({ root }: DataFolder, bytes: number): void {
  const free = freeBytes(root);
  if (free >= bytes + SPARE_BYTES) return;
  throw new Refused(
    'failed',
    `there is no room for the backup in ${root}: ${inMib(bytes)} MiB are needed, ${inMib(free)} are free. Nothing was changed. Make room and try again.`,
  );
}

function explained(error: unknown, { root }: DataFolder, isUntouched: boolean): unknown {
  const state = isUntouched
    ? 'Nothing was changed.'
    : 'The restored state holds already: the next start, or the same command again, completes it.';
  if (isDiskFull(error)) {
    return new Refused('failed', `the disk of ${root} is full. ${state} Make room and try again.`, {
      cause: error,
    });
  }
  if (isErrorCode(error, 'EACCES', 'EPERM', 'EROFS')) {
    const reason = reasonOf(error);
    return new Refused(
      'failed',
      `cannot write to ${root}: ${reason}. ${state} Run it as the user of the appliance.`,
      {
        cause: error,
      },
    );
  }
  return error;
}
