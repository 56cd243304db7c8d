/**
 * The clock. Windows, `since`, tokens and certificates depend on it, and if it is set back, whatever waits for a time
 * waits longer.
 */
import { existsSync } from 'node:fs';
import { formatMs, SECOND_MS } from '../time.ts';
import { bad, type Outcome, ok } from './finding.ts';

/** This program is newer. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
/** NTP sets a clock back by no more. */
const TOLERANCE_MS = 5 * SECOND_MS;
/** Exists once systemd-timesyncd has set the clock (systemd-timesyncd.service(8)). */
const KEPT_BY_NTP = '/run/systemd/timesync/synchronized';

/** @param latestMs the latest recorded time, which the clock has reached before; 0 if there is none */
export function checkClock(latestMs: number, nowMs: number): Outcome {
  const todo = 'Set the clock, and synchronize it with NTP.';
  const shown = formatMs(nowMs);
  if (nowMs < EARLIEST_MS) return bad(`${shown} is in the past`, todo);
  if (nowMs < latestMs - TOLERANCE_MS) {
    return bad(`${shown} is earlier than the latest recorded time, ${formatMs(latestMs)}`, todo);
  }
  return ok(
    `${shown}${existsSync(KEPT_BY_NTP) ? ', synchronized by NTP' : '; it is not known whether NTP synchronizes it'}`,
  );
}
