/**
 * The clock. Windows, cursors' `since`, tokens and certificates are judged by it, and one that is set back holds up
 * whatever waits for the time at which it was before.
 */
import { existsSync } from 'node:fs';
import { formatMs, SECOND_MS } from '../time.ts';
import { bad, type Finding, ok } from './finding.ts';

/** This program is younger. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
/** Clocks that are kept are set back by so little. */
const TOLERANCE_MS = 5 * SECOND_MS;
/** There once systemd-timesyncd has set the clock (systemd-timesyncd.service(8)). */
const KEPT_BY_NTP = '/run/systemd/timesync/synchronized';

/** @param latestMs the latest time on record: it was the present once; 0 where there is none */
export function checkClock(latestMs: number, nowMs: number): Finding {
  const check = 'clock';
  const todo = 'Set the clock, and have it kept by NTP.';
  const shown = formatMs(nowMs);
  if (nowMs < EARLIEST_MS) return bad(check, `it shows ${shown}, which is long over`, todo);
  if (nowMs < latestMs - TOLERANCE_MS) {
    return bad(check, `it shows ${shown}, but it was ${formatMs(latestMs)} already`, todo);
  }
  return ok(
    check,
    `${shown}${existsSync(KEPT_BY_NTP) ? ', kept by NTP' : '; whether NTP keeps it is not known here'}`,
  );
}
