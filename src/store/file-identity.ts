/**
 * Which file a write-ahead log (`-wal`) belongs to. SQLite joins one that was left over to whatever database lies under
 * the name, an older one that was put back too, and shows a mixture of both. So what identifies the file is noted beside
 * it whenever the file itself changes, which is at checkpoints alone.
 */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { checkpoint } from './checkpoint.ts';
import type { Database } from './database.ts';

interface Identity {
  readonly device: string;
  readonly inode: string;
  readonly bytes: string;
  readonly modified_ns: string;
  /** A checkpoint was under way: the file may be longer and newer than noted. */
  readonly is_checkpointing: boolean;
}

const notePath = (path: string) => `${path}-identity`;

/** @returns what stands for the file as it is; null where there is none */
function identityOf(path: string, isCheckpointing: boolean): Identity | null {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return null;
  return {
    device: `${stats.dev}`,
    inode: `${stats.ino}`,
    bytes: `${stats.size}`,
    modified_ns: `${stats.mtimeNs}`,
    is_checkpointing: isCheckpointing,
  };
}

/** Notes how a database's file is, before it is written to and after every checkpoint. */
export function noteIdentity(path: string, isCheckpointing = false): void {
  const draft = `${notePath(path)}.new`;
  writeFileSync(draft, `${JSON.stringify(identityOf(path, isCheckpointing))}\n`, { mode: 0o600 });
  // On a full disk the note that is there stays, and still says what is so.
  renameSync(draft, notePath(path));
}

/** Moves what the write-ahead log holds into the database. */
export function checkpointNoted(db: Database, how: 'PASSIVE' | 'TRUNCATE'): void {
  noteIdentity(db.name, true);
  checkpoint(db, how);
  noteIdentity(db.name);
}

/** Whether the file under this name is the one that was noted: not replaced, not copied back. */
export function isNotedFile(path: string): boolean {
  let noted: Partial<Identity> | null;
  try {
    noted = JSON.parse(readFileSync(notePath(path), 'utf8'));
  } catch {
    // None was noted, or a power cut has left half of it: then the file has to prove itself.
    return false;
  }
  const now = identityOf(path, false);
  if (now === null || noted === null) return false;
  if (now.inode !== noted.inode) return false;
  if (now.bytes === noted.bytes && now.modified_ns === noted.modified_ns) return true;
  // Not asked above: many file systems (btrfs, ZFS, NFS, overlays) are another device after each restart of the machine.
  return noted.is_checkpointing === true && now.device === noted.device;
}
