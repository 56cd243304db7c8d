/**
 * A log in place of another (`rebuild --log`). It is written and checked under one name (`log-draft`), and gets another
 * (`log-new`) once it is good: from then on it is the log, whatever happens between the two renames that remain.
 *
 * | a crash leaves | the next start |
 * |---|---|
 * | `log`, `log-draft` | goes on with the old log |
 * | `log`, `log-new` | moves the old one aside, and goes on with the new one |
 * | `log-new` | goes on with it |
 */
import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isThere, syncFolder } from '../store/folder.ts';
import { formatCompact } from '../time.ts';

/** Where a new log is written; what an earlier attempt left there is gone. */
export function emptyDraft(log: string): string {
  const draft = `${log}-draft`;
  rmSync(draft, { recursive: true, force: true });
  return draft;
}

/** Of a draft that is whole, durable and good. */
export function acceptDraft(log: string): void {
  renameSync(`${log}-draft`, `${log}-new`);
  syncFolder(dirname(log));
}

/**
 * Puts the new log in its place, where there is one.
 *
 * @returns the folder in which the old log is kept; null where none was moved
 */
export function swapInNewLog(log: string, nowMs: number): string | null {
  const fresh = `${log}-new`;
  if (!isThere(fresh)) return null;
  const aside = isThere(log) ? `${log}-until-${formatCompact(nowMs)}` : null;
  if (aside !== null) renameSync(log, aside);
  renameSync(fresh, log);
  syncFolder(dirname(log));
  return aside;
}
