/**
 * Replaces a log by a new one (`rebuild --log`). The new log is written and verified as `log-draft`, then renamed to
 * `log-new`: from that moment on it is the log, even if a crash comes before the two renames that remain.
 *
 * | a crash leaves | the next start |
 * |---|---|
 * | `log`, `log-draft` | continues with the old log |
 * | `log`, `log-new` | moves the old log aside, and continues with the new one |
 * | `log-new` | continues with the new one |
 */
import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isThere, syncFolder, unusedTime } from '../store/folder.ts';

/** Deletes what an earlier attempt left, and returns the folder for the new log. */
export function emptyDraft(log: string): string {
  const draft = `${log}-draft`;
  rmSync(draft, { recursive: true, force: true });
  return draft;
}

/** Makes a draft that is complete, durable and verified the log. */
export function acceptDraft(log: string): void {
  renameSync(`${log}-draft`, `${log}-new`);
  syncFolder(dirname(log));
}

/**
 * Puts a new log in place, if there is one.
 *
 * @returns the folder with the old log; null if none was moved
 */
export function swapInNewLog(log: string, nowMs: number): string | null {
  const fresh = `${log}-new`;
  if (!isThere(fresh)) return null;
  const asideAt = (time: string) => `${log}-until-${time}`;
  const aside = isThere(log) ? asideAt(unusedTime(nowMs, (time) => [asideAt(time)])) : null;
  if (aside !== null) renameSync(log, aside);
  renameSync(fresh, log);
  syncFolder(dirname(log));
  return aside;
}
