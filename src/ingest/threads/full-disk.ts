/** Waits out a full disk: nothing is lost, and clients can read meanwhile. */
import { isDiskFull } from '../../store/database-errors.ts';
import { plainError } from '../file-errors.ts';
import type { Log, SetCondition } from '../reporting.ts';
import { RETRY_MS } from './stuck-files.ts';
import type { WakeableTimer } from './wakeable-timer.ts';

export interface FullDiskOptions {
  /** A stop wakes it. */
  readonly timer: WakeableTimer;
  /** @throws Stopping when the thread is to end */
  readonly check: () => void;
  /** A transaction that the log has must be applied, and its file archived, before anything else. */
  readonly beforeRetry: () => void;
  readonly log: Log;
  readonly setCondition: SetCondition;
}

export class FullDisk {
  readonly #options: FullDiskOptions;

  constructor(options: FullDiskOptions) {
    this.#options = options;
  }

  /** Does the work, again and again until there is room for it. */
  async retrying(work: () => unknown): Promise<void> {
    for (let hasWaited = false; ; hasWaited = true) {
      try {
        if (hasWaited) this.#options.beforeRetry();
        await work();
        if (hasWaited) this.isOver();
        return;
      } catch (error) {
        await this.wait(error);
      }
    }
  }

  /** @throws an error that is not of a full disk */
  async wait(error: unknown): Promise<void> {
    if (!isDiskFull(error)) throw error;
    const { timer, check, log, setCondition } = this.#options;
    const err = plainError(error);
    log('error', 'the disk is full: ingest waits for free space', { err });
    setCondition('disk full', err.message);
    check();
    timer.begin();
    await timer.sleep(RETRY_MS);
    check();
  }

  isOver(): void {
    this.#options.setCondition('disk full', null);
  }
}
