/** The disks of the data folder and of the drop folder: the free space, and the duration of a sync. */
import { randomBytes } from 'node:crypto';
import { fsyncSync, rmSync, writeSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { freeText } from '../counted.ts';
import { isGettingFull } from '../health/disk.ts';
import { reasonOf } from '../refused.ts';
import { openFile } from '../store/folder.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';

const MIB = 1024 ** 2;
/** One export and the write-ahead log of the database can use up less. */
const LEAST_BYTES = 64 * MIB;

/** A page of the databases. */
const SYNC_BYTES = 16_384;
const SYNCS = 9;
/** Each export file waits for about eight syncs, and each command for one: that is half a second per file. */
const SLOW_MS = 60;
/** Neither a disk nor its controller is that fast: the sync is acknowledged before the data is written. */
const FALSE_MS = 0.008;

export async function checkRoom(folder: string): Promise<Outcome> {
  const disk = await statfs(folder).catch(reasonOf);
  if (typeof disk === 'string') return warn(`${folder}: ${disk}`, 'Check that the disk is mounted.');
  return roomOutcome(disk.bavail * disk.bsize, disk.blocks * disk.bsize);
}

/** The rule of {@link checkRoom}. @param freeBytes what this user can still write */
export function roomOutcome(freeBytes: number, allBytes: number): Outcome {
  const detail = `${freeText(freeBytes, allBytes)} free`;
  const todo =
    'Free space on the disk, or have Wirewatch delete old files from archive/ with the setting [ingest] archive_days.';
  if (freeBytes < LEAST_BYTES) return bad(`${detail}: ingest stops when the disk is full`, todo);
  return isGettingFull(freeBytes, allBytes) ? warn(detail, todo) : ok(detail);
}

/** Writes and syncs a small temporary file several times. */
export function checkSync(folder: string): Outcome {
  const path = join(folder, `.check-${process.pid}-${randomBytes(6).toString('hex')}`);
  try {
    using file = openFile(path, 'wx');
    const times = Array.from({ length: SYNCS }, () => {
      writeSync(file.fd, randomBytes(SYNC_BYTES), 0, SYNC_BYTES, 0);
      const before = performance.now();
      fsyncSync(file.fd);
      return performance.now() - before;
    });
    return syncOutcome(times.sort((one, other) => one - other)[Math.floor(SYNCS / 2)] ?? 0);
  } catch (error) {
    return bad(
      `cannot write and sync a file: ${reasonOf(error)}`,
      'Check the disk and the permissions of this user.',
    );
  } finally {
    rmSync(path, { force: true });
  }
}

/** The rule of {@link checkSync}. @param medianMs of several syncs of one page */
export function syncOutcome(medianMs: number): Outcome {
  const shown = `${medianMs < 1 ? medianMs.toFixed(3) : medianMs.toFixed(1)} ms (median of ${SYNCS})`;
  if (medianMs > SLOW_MS) {
    return warn(
      `${shown}: slow; each export file waits for about eight syncs, each command for one`,
      'Use a faster or less busy disk for the data folder.',
    );
  }
  if (medianMs < FALSE_MS) {
    return warn(
      `${shown}: too fast for a real disk; a power failure may lose acknowledged writes`,
      'Make sure that the disk or the virtual machine completes a sync only after the data is written.',
    );
  }
  return ok(shown);
}
