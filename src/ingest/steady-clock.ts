/**
 * Whether the clock can be trusted with what cannot be undone: not for an hour after a jump, nor, with what no later search
 * takes back, for an hour after a start.
 */
import { paced } from '../pace.ts';
import { HOUR_MS, MINUTE_MS, type Now } from '../time.ts';

const JUMP_MS = 5 * MINUTE_MS;
const STEADY_AFTER_MS = HOUR_MS;
const PROVEN_AFTER_MS = paced(HOUR_MS);

/** @param aheadMs how far the clock is ahead of `monotonicMs` */
export function steadyClock(aheadMs: Now, monotonicMs: Now) {
  const startedMs = monotonicMs();
  let lastAheadMs = aheadMs();
  let jumpedAtMs = Number.NEGATIVE_INFINITY;
  /** Call it often. A jump and its correction between two calls go unnoticed, and do no harm. */
  const isSteady = (): boolean => {
    const ahead = aheadMs();
    if (Math.abs(ahead - lastAheadMs) > JUMP_MS) jumpedAtMs = monotonicMs();
    lastAheadMs = ahead;
    return monotonicMs() - jumpedAtMs >= STEADY_AFTER_MS;
  };
  /** Whether it has run evenly for an hour, counted from the start at the earliest: a start may begin with a wrong clock. */
  const isProven = () => isSteady() && monotonicMs() - startedMs >= PROVEN_AFTER_MS;
  return { isSteady, isProven };
}
