/** The disks of the data folder and of the drop folder: how much room there is, and how long it takes to be sure. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { isGettingFull } from '../health/disk.ts';
import { reasonOf } from '../refused.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

const MIB = 1024 ** 2;
/** Less is used up by one export and the log of the database. */
const LEAST_BYTES = 64 * MIB;

/** A page of the databases. */
const SYNC_BYTES = 16_384;
const SYNCS = 9;
/** Each export file waits for about eight of them, and each command for one: this is half a second a file. */
const SLOW_MS = 60;
/** No disk is so fast, nor its controller: somebody answers before anything is written. */
const FALSE_MS = 0.008;

export async function checkRoom(check: string, folder: string): Promise<Finding> {
  const disk = await statfs(folder).catch(reasonOf);
  if (typeof disk === 'string') return warn(check, `${folder}: ${disk}`, 'See whether the disk is there.');
  return judgeRoom(check, disk.bavail * disk.bsize, disk.blocks * disk.bsize);
}

/** The rule of {@link checkRoom}. @param freeBytes what this user can still write */
export function judgeRoom(check: string, freeBytes: number, allBytes: number): Finding {
  const detail = `${Math.floor(freeBytes / MIB).toLocaleString('en-US')} MiB of ${Math.floor(allBytes / MIB).toLocaleString('en-US')} MiB are free`;
  const todo =
    'Make room on the disk, or have old files deleted from archive/ by the setting [ingest] archive_days.';
  if (freeBytes < LEAST_BYTES) return bad(check, `${detail}: ingest stops when none is left`, todo);
  return isGettingFull(freeBytes, allBytes) ? warn(check, detail, todo) : ok(check, detail);
}

/** Writes and syncs a small file of its own several times; it is gone afterwards. */
export function checkSync(folder: string): Finding {
  const check = 'disk sync';
  const path = join(folder, `.check-${process.pid}-${randomBytes(6).toString('hex')}`);
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      const times = Array.from({ length: SYNCS }, () => {
        writeSync(file, randomBytes(SYNC_BYTES), 0, SYNC_BYTES, 0);
        const before = performance.now();
        fsyncSync(file);
        return performance.now() - before;
      });
      return judgeSync(check, times.sort((one, other) => one - other)[Math.floor(SYNCS / 2)] ?? 0);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return bad(
      check,
      `cannot write a file and sync it: ${reasonOf(error)}`,
      'Check the disk, and the rights of this user.',
    );
  } finally {
    rmSync(path, { force: true });
  }
}

/** The rule of {@link checkSync}. @param medianMs of several syncs of one page */
export function judgeSync(check: string, medianMs: number): Finding {
  const shown = `${medianMs < 1 ? medianMs.toFixed(3) : medianMs.toFixed(1)} ms (median of ${SYNCS})`;
  if (medianMs > SLOW_MS) {
    return warn(
      check,
      `${shown}: slow; every export file waits for about eight, every command for one`,
      'Use a faster disk for the data folder, or one that has less to do.',
    );
  }
  if (medianMs < FALSE_MS) {
    return warn(
      check,
      `${shown}: too fast for any disk; what is acknowledged may be lost with the power`,
      'See that the disk, or the virtual machine, does not answer a sync before it has written.',
    );
  }
  return ok(check, shown);
}
