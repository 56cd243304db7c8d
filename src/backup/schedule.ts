/**
 * Scheduled backups: when the backup folder is updated, and when it is verified. The state is in the folder itself: a
 * restart changes nothing, and an empty folder makes a backup due.
 */
import { type Outcome, type OwnProcess, runCommand } from '../own-process.ts';
import { isErrorCode, reasonOf } from '../refused.ts';
import { DAY_MS, formatMs, MINUTE_MS, type Now } from '../time.ts';
import { backedUpMs } from './branch.ts';

export interface ScheduleOptions {
  readonly data: string;
  readonly drop: string;
  /** The backup folder, absolute; created if its parent exists. */
  readonly folder: string;
  /** 0: never. */
  readonly every_minutes: number;
  readonly keep_days: number;
  readonly now: Now;
  readonly log: (level: 'info' | 'warn', msg: string, fields: Record<string, unknown>) => void;
  /** Called at each check; detail null: no alert. */
  readonly onAlert: (name: BackupAlert, detail: string | null) => void;
}

export type BackupAlert = 'backup overdue' | 'backup not restorable';

export interface Schedule {
  /** Checks whether a backup is due; the schedule does so by itself. */
  check(): void;
  /** Ends a backup that is being made. */
  close(): Promise<void>;
}

const CHECK_EVERY_MS = MINUTE_MS / 4;
/** How soon a failed backup is tried again, if none is due sooner. */
const RETRY_MS = 5 * MINUTE_MS;
/** How often the folder is verified. */
const VERIFY_EVERY_MS = DAY_MS;
/** How much later than due a backup may be: half the interval, and a few minutes for short intervals. */
const OVERDUE_AFTER = 1.5;
const OVERDUE_SPARE_MS = 5 * MINUTE_MS;

/**
 * @param run runs a command; a test passes its own
 * @param monotonicMs likewise
 */
export function startSchedule(
  options: ScheduleOptions,
  run = runCommand,
  monotonicMs = () => performance.now(),
): Schedule {
  if (options.every_minutes === 0) return { check() {}, close: async () => {} };
  const scheduler = new Scheduler(options, run, monotonicMs);
  scheduler.check();
  const timer = setInterval(() => scheduler.check(), CHECK_EVERY_MS);
  return {
    check: () => scheduler.check(),
    async close() {
      clearInterval(timer);
      await scheduler.close();
    },
  };
}

/** Whether the next backup should have been made by now. */
export function isOverdue(atMs: number, everyMinutes: number, nowMs: number): boolean {
  return nowMs - atMs > OVERDUE_AFTER * everyMinutes * MINUTE_MS + OVERDUE_SPARE_MS;
}

class Scheduler {
  readonly #options: ScheduleOptions;
  readonly #everyMs: number;
  readonly #run: typeof runCommand;
  readonly #monotonicMs: () => number;
  #running: OwnProcess | null = null;
  #failure: string | null = null;
  #findings: string | null = null;
  /** Monotonic: one at a time, with time in between, whatever the clock does. */
  #triedAtMs = Number.NEGATIVE_INFINITY;
  #verifiedAtMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: ScheduleOptions, run: typeof runCommand, monotonicMs: () => number) {
    this.#options = options;
    this.#monotonicMs = monotonicMs;
    this.#run = run;
    this.#everyMs = options.every_minutes * MINUTE_MS;
  }

  check(): void {
    const nowMs = this.#options.now();
    const atMs = this.#readLast();
    const isDue = atMs === null || nowMs - atMs >= this.#everyMs || nowMs < atMs;
    const waitMs = this.#failure === null ? this.#everyMs : Math.min(this.#everyMs, RETRY_MS);
    const mayTry = this.#monotonicMs() - this.#triedAtMs >= waitMs;
    if (isDue && mayTry && this.#running === null && !this.#isClosed) this.#backUp();
    this.#tell(atMs, nowMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running?.giveUp();
  }

  /** When the backup was last updated, epoch milliseconds; null: never, or that cannot be read. */
  #readLast(): number | null {
    const { folder } = this.#options;
    try {
      return backedUpMs(folder);
    } catch (error) {
      if (!isErrorCode(error, 'ENOENT')) this.#failure = `cannot read ${folder}: ${reasonOf(error, folder)}`;
      return null;
    }
  }

  #backUp(): void {
    const { data, drop, folder, keep_days } = this.#options;
    this.#triedAtMs = this.#monotonicMs();
    const args = ['backup', folder, '--data', data, '--drop', drop, '--keep-days', String(keep_days)];
    this.#start(args, (outcome) => this.#backedUp(outcome));
  }

  #backedUp(outcome: Outcome): void {
    const { log } = this.#options;
    if (outcome.kind === 'failed') {
      this.#failure = outcome.detail;
      log('warn', 'the scheduled backup failed: it is tried again', { detail: outcome.detail });
      return;
    }
    this.#failure = null;
    const { written, path, new_branch, deleted } = outcome.printed;
    // A backup every minute without anything new is not worth a line.
    if (new_branch === true)
      log('warn', 'the backup folder is of another history: a new branch begins beside it', { path });
    else if (Array.isArray(deleted) && deleted.length > 0)
      log('info', 'backup brought up to date', { path, written, deleted });
    if (this.#monotonicMs() - this.#verifiedAtMs >= VERIFY_EVERY_MS) this.#verify(String(path));
  }

  #verify(path: string): void {
    this.#verifiedAtMs = this.#monotonicMs();
    this.#start(['verify', path], (outcome) => {
      const { log } = this.#options;
      if (outcome.kind === 'failed') {
        this.#failure = outcome.detail;
        return;
      }
      const { findings } = outcome.printed;
      const [first] = Array.isArray(findings) ? findings : [];
      this.#findings = first === undefined ? null : `${path}: ${first}`;
      if (first === undefined) log('info', 'the backup was read through: it is good', { path });
      else log('warn', 'the backup was read through: it is not good', { path, findings });
    });
  }

  #start(args: readonly string[], then: (outcome: Outcome) => void): void {
    const running = this.#run(args);
    this.#running = running;
    void running.outcome.then((outcome) => {
      this.#running = null;
      if (this.#isClosed) return;
      then(outcome);
      this.check();
    });
  }

  #tell(atMs: number | null, nowMs: number): void {
    const { folder, every_minutes, onAlert } = this.#options;
    const isLate = atMs !== null && isOverdue(atMs, every_minutes, nowMs);
    const state =
      atMs === null ? `${folder} contains no backup` : `${folder} was last updated at ${formatMs(atMs)}`;
    const causes = this.#failure === null ? [] : [this.#failure.replace(/\.$/, '')];
    const isOpen = isLate || causes.length > 0;
    onAlert('backup overdue', isOpen ? [...causes, state].join('. ') : null);
    onAlert('backup not restorable', this.#findings);
  }
}
