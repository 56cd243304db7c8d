/**
 * Scheduled backups: when the backup folder is updated. The state is in the folder itself: a restart changes nothing, and
 * an empty folder makes a backup due.
 */
import { type Begin, runCommand, type Schedule, startSchedule } from '../own-process.ts';
import { reasonOf } from '../refused.ts';
import { formatMs, MINUTE_MS, type Now } from '../time.ts';
import { backedUpMs } from './backup-state.ts';

export interface BackupScheduleOptions {
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

const CHECK_EVERY_MS = MINUTE_MS / 4;
/** How soon a failed backup is tried again, if none is due sooner. */
const RETRY_MS = 5 * MINUTE_MS;
/** How much later than due a backup may be: half the interval, and a few minutes for short intervals. */
const OVERDUE_AFTER = 1.5;
const OVERDUE_SPARE_MS = 5 * MINUTE_MS;

/** @param run runs a command; a test passes its own @param monotonicMs likewise */
export function startBackups(
  { data, drop, folder, every_minutes, now, log, onAlert }: BackupScheduleOptions,
  run = runCommand,
  monotonicMs = () => performance.now(),
): Schedule {
  if (every_minutes === 0) return { check() {}, close: async () => {} };
  const everyMs = every_minutes * MINUTE_MS;
  let failure: string | null = null;
  /** Monotonic: with time in between, whatever the clock does. */
  let triedAtMs = Number.NEGATIVE_INFINITY;

  function backUp(begin: Begin): void {
    triedAtMs = monotonicMs();
    begin(['backup', folder, '--data', data, '--drop', drop], (outcome) => {
      // A backup every minute without anything new is not worth a line.
      failure = outcome.kind === 'failed' ? outcome.detail : null;
      if (failure !== null)
        log('warn', 'the scheduled backup failed: it is tried again', { detail: failure });
    });
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

  return startSchedule(CHECK_EVERY_MS, run, (begin) => {
    const nowMs = now();
    const atMs = lastMs();
    const isDue = atMs === null || nowMs - atMs >= everyMs || nowMs < atMs;
    const waitMs = failure === null ? everyMs : Math.min(everyMs, RETRY_MS);
    if (isDue && monotonicMs() - triedAtMs >= waitMs && begin !== null) backUp(begin);
    const isLate = atMs !== null && isOverdue(atMs, every_minutes, nowMs);
    const state =
      atMs === null ? `${folder} contains no backup` : `${folder} was last updated at ${formatMs(atMs)}`;
    const causes = failure === null ? [] : [failure.replace(/\.$/, '')];
    onAlert(isLate || causes.length > 0 ? [...causes, state].join('. ') : null);
  });
}

/** Whether the next backup should have been made by now. */
export function isOverdue(atMs: number, everyMinutes: number, nowMs: number): boolean {
  return nowMs - atMs > OVERDUE_AFTER * everyMinutes * MINUTE_MS + OVERDUE_SPARE_MS;
}
