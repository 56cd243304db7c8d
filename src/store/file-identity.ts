/**
 * Notes which file a write-ahead log (`-wal`) belongs to. SQLite joins a left-over log to whatever file has the
 * database's name, for example an older copy, and shows a mixture of both. So the identity of the file is noted beside
 * it whenever the file changes, which happens only at checkpoints.
 */

import { linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type Database, openDatabase, removeDatabase } from './database.ts';
import { writeWhole } from './folder.ts';
import { readLogMark } from './log-mark.ts';

interface Identity {
  readonly device: string;
  readonly inode: string;
  readonly bytes: string;
  readonly modified_ns: string;
  /** A checkpoint was running: the file may be longer and newer than noted. */
  readonly is_checkpointing: boolean;
  /** The last log entry that is in the file itself, without its write-ahead log; null: not known. */
  readonly entry: number | null;
}

const notePath = (path: string) => `${path}-identity`;

const bootNotePath = (path: string) => `${path}-boot`;

/** Null where the system does not name it. */
function thisBoot(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
  } catch {
    return null;
  }
}

/**
 * Notes, before a file is created that is written without syncs, that this boot of the machine writes it. The note is not
 * synced either: after a power cut it is missing, or names the earlier boot.
 */
export function noteBoot(path: string): void {
  writeFileSync(bootNotePath(path), thisBoot() ?? '', { mode: 0o600 });
}

/** Whether everything that was written to a file is there: the machine, which has it in memory, was not started since. */
export function isOfThisBoot(path: string): boolean {
  try {
    return readFileSync(bootNotePath(path), 'utf8') === thisBoot();
  } catch {
    return false;
  }
}

export function forgetBoot(path: string): void {
  rmSync(bootNotePath(path), { force: true });
}

/** @returns null if there is no file */
function identityOf(path: string, isCheckpointing: boolean, entry: number | null): Identity | null {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return null;
  return {
    device: `${stats.dev}`,
    inode: `${stats.ino}`,
    bytes: `${stats.size}`,
    modified_ns: `${stats.mtimeNs}`,
    is_checkpointing: isCheckpointing,
    entry,
  };
}

/**
 * Notes the identity of a database's file, before it is written to and after every checkpoint. Durable: otherwise a power
 * cut could leave a half-written file without a note that it was being written.
 */
export function noteIdentity(path: string, isCheckpointing = false, entry: number | null = null): void {
  // On a full disk the existing note stays, and is still correct.
  writeWhole(notePath(path), `${JSON.stringify(identityOf(path, isCheckpointing, entry))}\n`);
}

/** How long a checkpoint waits for readers. */
const WAIT_MS = 250;

interface Checkpointed {
  readonly busy: number;
  /** Frames of the write-ahead log, and how many of them are in the database file. */
  readonly log: number;
  readonly checkpointed: number;
}

/**
 * Copies the write-ahead log into the database file (https://sqlite.org/wal.html#ckpt). It waits only briefly for a long
 * reader, such as a backup: the next checkpoint copies the rest.
 *
 * @param how TRUNCATE waits for readers and frees the log's space; PASSIVE does what is possible at once
 * @returns whether the database file now has everything
 */
export function checkpoint(db: Database, how: 'PASSIVE' | 'TRUNCATE'): boolean {
  const { timeout } = db.prepare<[], { timeout: number }>('PRAGMA busy_timeout').get() ?? { timeout: 0 };
  db.pragma(`busy_timeout = ${WAIT_MS}`);
  try {
    const [done] = db.prepare<[], Checkpointed>(`PRAGMA wal_checkpoint(${how})`).all();
    return done?.busy === 0 && done.log === done.checkpointed;
  } finally {
    db.pragma(`busy_timeout = ${timeout}`);
  }
}

/** The size of the write-ahead log. */
export function walBytes({ name }: Database): number {
  return statSync(`${name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/** A {@link checkpoint} that notes the file before and after. */
export function checkpointNoted(db: Database, how: 'PASSIVE' | 'TRUNCATE'): void {
  const before = readNote(db.name)?.entry ?? null;
  noteIdentity(db.name, true, before);
  const isComplete = checkpoint(db, how);
  noteIdentity(db.name, false, isComplete ? (readLogMark(db)?.entry ?? null) : before);
}

/** Whether the file is the one that was noted: not replaced, not copied back. */
export function isNotedFile(path: string): boolean {
  const noted = readNote(path);
  const now = identityOf(path, false, null);
  if (now === null || noted === null) return false;
  if (now.inode !== noted.inode) return false;
  if (now.bytes === noted.bytes && now.modified_ns === noted.modified_ns) return true;
  // Not compared above: many file systems (btrfs, ZFS, NFS, overlays) are another device after each reboot.
  if (noted.is_checkpointing !== true || now.device !== noted.device) return false;
  // A copy in its place may have the same inode. An older copy is complete, so its mark shows that it is older. A file
  // whose checkpoint was interrupted may be unreadable without its write-ahead log: that is the noted one.
  const entry = entryInFile(path);
  return entry === 'unreadable' || entry >= (noted.entry ?? 0);
}

/** @returns null if there is no note */
function readNote(path: string): Partial<Identity> | null {
  try {
    return JSON.parse(readFileSync(notePath(path), 'utf8'));
  } catch {
    return null;
  }
}

/** The last log entry in a database file without its write-ahead log: it is read under another name. */
function entryInFile(path: string): number | 'unreadable' {
  const peek = `${path}-peek`;
  try {
    removeDatabase(peek);
    linkSync(path, peek);
    using db = openDatabase(peek, 'read');
    return readLogMark(db)?.entry ?? 0;
  } catch {
    return 'unreadable';
  } finally {
    removeDatabase(peek);
  }
}
