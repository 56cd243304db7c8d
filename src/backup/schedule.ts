/**
 * Scheduled backups: when one is due, by the newest file that is there; what became of it; how many are kept.
 *
 * The files themselves are the memory: a restart changes nothing, and a folder that was emptied makes one due.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isErrorCode, reasonOf } from '../refused.ts';
import { formatMs, HOUR_MS, MINUTE_MS, type Now } from '../time.ts';
import {
  backupName,
  deleteOld,
  type KeptFile,
  listKept,
  markTested,
  newestGood,
  removeUntested,
  untested,
} from './kept-files.ts';
import { type Made, type Making, makeAndOpen } from './made-backup.ts';
import { removeLeftStages } from './stage.ts';

export interface ScheduleOptions {
  readonly data: string;
  readonly drop: string;
  /** Where backups are kept, absolute; made where its parent is there. */
  readonly folder: string;
  /** 0: never. */
  readonly every_hours: number;
  readonly keep: number;
  readonly now: Now;
  readonly log: (level: 'info' | 'warn', msg: string, fields: Record<string, unknown>) => void;
  /** Told at each look; detail null: all is well. */
  readonly onAlert: (name: BackupAlert, detail: string | null) => void;
}

export type BackupAlert = 'backup overdue' | 'backup not restorable';

export interface Schedule {
  /** Looks whether one is due; it does so by itself every minute. */
  look(): void;
  /** Gives up the backup that is being made, if there is one. */
  close(): Promise<void>;
}

const LOOK_EVERY_MS = MINUTE_MS;
/** After one that failed; sooner where they are made more often. */
const RETRY_MS = HOUR_MS;
/** How much later than due the newest may be, in parts of the time between two. */
const OVERDUE_AFTER = 1.5;

/** @param make makes one; a test gives its own */
export function startSchedule(options: ScheduleOptions, make = makeAndOpen): Schedule {
  const { every_hours } = options;
  if (every_hours === 0) return { look() {}, close: async () => {} };
  const scheduler = new Scheduler(options, make);
  scheduler.look();
  const looking = setInterval(() => scheduler.look(), LOOK_EVERY_MS);
  return {
    look: () => scheduler.look(),
    async close() {
      clearInterval(looking);
      await scheduler.close();
    },
  };
}

/** Whether something must have kept the next one from being made. */
export function isOverdue(newest: KeptFile, everyHours: number, nowMs: number): boolean {
  return nowMs - newest.at > OVERDUE_AFTER * everyHours * HOUR_MS;
}

class Scheduler {
  readonly #options: ScheduleOptions;
  readonly #everyMs: number;
  readonly #make: typeof makeAndOpen;
  #making: Making | null = null;
  #failure: string | null = null;
  /** What was found in the newest one that did not pass its test, where that was in this run of the program. */
  #findings: string | null = null;
  /** Monotonic. */
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: ScheduleOptions, make: typeof makeAndOpen) {
    this.#options = options;
    this.#make = make;
    this.#everyMs = options.every_hours * HOUR_MS;
  }

  look(): void {
    const nowMs = this.#options.now();
    const files = this.#list();
    const newest = newestGood(files, nowMs);
    const isDue = newest === null || nowMs - newest.at >= this.#everyMs;
    // Whatever the clock does: one at a time, and with time in between, since each may delete an older one.
    const mayTry = performance.now() >= this.#notBeforeMs;
    if (isDue && mayTry && this.#making === null && !this.#isClosed) this.#begin(nowMs);
    this.#tell(files, newest, nowMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#making === null) return;
    await this.#making.giveUp();
    this.#removeLeft();
  }

  #list(): KeptFile[] {
    const { folder } = this.#options;
    try {
      return listKept(folder);
    } catch (error) {
      if (!isErrorCode(error, 'ENOENT')) this.#failure = `cannot read ${folder}: ${reasonOf(error, folder)}`;
      return [];
    }
  }

  #begin(nowMs: number): void {
    const { folder } = this.#options;
    this.#notBeforeMs = performance.now() + Math.min(RETRY_MS, this.#everyMs);
    try {
      // Not its parents: where a disk is not mounted, they would fill another one.
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      if (!isErrorCode(error, 'EEXIST')) {
        this.#fail(`cannot make the folder ${folder}: ${reasonOf(error, folder)}`);
        return;
      }
    }
    const target = join(folder, backupName(nowMs));
    this.#removeLeft();
    const making = this.#make(this.#options, untested(target));
    this.#making = making;
    void making.made.then((made) => {
      this.#making = null;
      if (this.#isClosed) return;
      this.#end(target, made, nowMs);
      this.look();
    });
  }

  #end(target: string, made: Made, beganMs: number): void {
    const { log, keep, now } = this.#options;
    if (made.kind === 'failed') {
      this.#removeLeft();
      this.#fail(made.detail);
      return;
    }
    this.#failure = null;
    const { bytes, detections, findings } = made;
    const fields = { file: target, bytes, detections, seconds: Math.round((now() - beganMs) / 1000) };
    try {
      if (findings.length > 0) {
        this.#findings = findings[0] ?? null;
        markTested(target, false);
        log('warn', 'a backup did not pass its test: older ones are kept', { ...fields, findings });
        return;
      }
      markTested(target, true);
      const deleted = deleteOld(dirname(target), keep, now());
      log('info', 'backup written and opened again', { ...fields, deleted });
    } catch (error) {
      this.#fail(reasonOf(error));
    }
  }

  /** What one that was cut off has left. */
  #removeLeft(): void {
    try {
      removeLeftStages(this.#options.folder);
      removeUntested(this.#options.folder);
    } catch {
      // The next one does it.
    }
  }

  #fail(detail: string): void {
    this.#failure = detail;
    this.#options.log('warn', 'the scheduled backup failed: it is tried again within an hour', { detail });
  }

  #tell(files: readonly KeptFile[], newest: KeptFile | null, nowMs: number): void {
    const { folder, onAlert } = this.#options;
    const isLate = newest !== null && isOverdue(newest, this.#options.every_hours, nowMs);
    const late = isLate ? `the newest in ${folder} is of ${formatMs(newest.at)}` : null;
    onAlert('backup overdue', this.#failure ?? late);
    const [damaged] = files.filter((file) => file.isDamaged && (newest === null || file.at > newest.at));
    const finding = this.#findings === null ? '' : ` (${this.#findings})`;
    onAlert('backup not restorable', damaged === undefined ? null : `${damaged.path}${finding}`);
  }
}
