/**
 * Scheduled backups: when the backup folder is updated. The state is in the folder itself: a restart changes nothing, and
 * an empty folder makes a backup due.
 */
import { type OwnProcess, runCommand } from '../own-process.ts';
import { reasonOf } from '../refused.ts';
import { formatMs, MINUTE_MS, type Now } from '../time.ts';
import { backedUpMs } from './backup-state.ts';

export interface ScheduleOptions {
  readonly data: string;
  readonly drop: string;
  /** The backup folder, absolute; created if its parent exists. */
  readonly folder: string;
  /** 0: never. */
  readonly every_minutes: number;
  readonly now: Now;
  readonly log: (level: 'info' | 'warn', msg: string, fields: Record<string, unknown>) => void;
  /** Called at each check with the alert "backup overdue"; detail null: no alert. */
  readonly onAlert: (detail: string | null) => void;
}

export interface Schedule {
  /** Checks whether a backup is due; the schedule does so by itself. */
  check(): void;
  /** Ends a backup that is being made. */
  close(): Promise<void>;
}

const CHECK_EVERY_MS = MINUTE_MS / 4;
/** How soon a failed backup is tried again, if none is due sooner. */
const RETRY_MS = 5 * MINUTE_MS;
/** How much later than due a backup may be: half the interval, and a few minutes for short intervals. */
const OVERDUE_AFTER = 1.5;
const OVERDUE_SPARE_MS = 5 * MINUTE_MS;

/**
 * @param run runs a command; a test passes its own
 * @param monotonicMs likewise
 */
export function startSchedule(
  { data, drop, folder, every_minutes, now, log, onAlert }: ScheduleOptions,
  run = runCommand,
  monotonicMs = () => performance.now(),
): Schedule {
  if (every_minutes === 0) return { check() {}, close: async () => {} };
  const everyMs = every_minutes * MINUTE_MS;
  let running: OwnProcess | null = null;
  let failure: string | null = null;
  /** Monotonic: one at a time, with time in between, whatever the clock does. */
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let isClosed = false;

  async function backUp(): Promise<void> {
    triedAtMs = monotonicMs();
    running = run(['backup', folder, '--data', data, '--drop', drop]);
    const outcome = await running.outcome;
    running = null;
    if (isClosed) return;
    failure = outcome.kind === 'failed' ? outcome.detail : null;
    // A backup every minute without anything new is not worth a line.
    if (failure !== null) log('warn', 'the scheduled backup failed: it is tried again', { detail: failure });
    check();
  }

  /** When the backup was last updated, epoch milliseconds; null: never, or that cannot be read. */
  function lastMs(): number | null {
    try {
      return backedUpMs(folder);
    } catch (error) {
      failure = `cannot read ${folder}: ${reasonOf(error, folder)}`;
      return null;
    }
  }

  function check(): void {
    const nowMs = now();
    const atMs = lastMs();
    const isDue = atMs === null || nowMs - atMs >= everyMs || nowMs < atMs;
    const waitMs = failure === null ? everyMs : Math.min(everyMs, RETRY_MS);
    if (isDue && monotonicMs() - triedAtMs >= waitMs && running === null && !isClosed) void backUp();
    const isLate = atMs !== null && isOverdue(atMs, every_minutes, nowMs);
    const state =
      atMs === null ? `${folder} contains no backup` : `${folder} was last updated at ${formatMs(atMs)}`;
    const causes = failure === null ? [] : [failure.replace(/\.$/, '')];
    onAlert(isLate || causes.length > 0 ? [...causes, state].join('. ') : null);
  }

  check();
  const timer = setInterval(check, CHECK_EVERY_MS);
  return {
    check,
    async close() {
      clearInterval(timer);
      isClosed = true;
      await running?.giveUp();
    },
  };
}

/** Whether the next backup should have been made by now. */
export function isOverdue(atMs: number, everyMinutes: number, nowMs: number): boolean {
  return nowMs - atMs > OVERDUE_AFTER * everyMinutes * MINUTE_MS + OVERDUE_SPARE_MS;
}
