/** Waits out a full disk: nothing is lost, and clients can read meanwhile. */

import { plainError } from '../../drop/file-errors.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import type { WakeableTimer } from '../../wakeable-timer.ts';
import type { Reporting } from '../reporting.ts';
import { RETRY_MS } from './stuck-files.ts';

export interface FullDisk extends Reporting {
  readonly timer: WakeableTimer;
  /** @throws Stopping when the thread is to end */
  readonly check: () => void;
  /** A transaction that the log has must be applied, and its file archived, before anything else. */
  readonly beforeRetry: () => void;
}

/** Waits until work that failed may be tried again. @throws an error that is not of a full disk */
export async function waitForRoom(error: unknown, disk: Omit<FullDisk, 'beforeRetry'>): Promise<void> {
  if (!isDiskFull(error)) throw error;
  const { timer, check, log, setCondition } = disk;
  const err = plainError(error);
  log('error', 'the disk is full: ingest waits for free space', { err });
  setCondition('disk full', err.message);
  check();
  timer.begin();
  await timer.sleep(RETRY_MS);
  check();
}

/** Does the work, again and again until there is room for it. */
export async function untilRoom(disk: FullDisk, work: () => unknown): Promise<void> {
  for (let hasWaited = false; ; hasWaited = true) {
    try {
      if (hasWaited) disk.beforeRetry();
      await work();
      if (hasWaited) disk.setCondition('disk full', null);
      return;
    } catch (error) {
      await waitForRoom(error, disk);
    }
  }
}
