/** Whether the clock can be trusted with what cannot be undone: not for an hour after a jump, or after a start. */
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
  /** Call it often. */
  const isSteady = (): boolean => {
    const ahead = aheadMs();
    if (Math.abs(ahead - lastAheadMs) > JUMP_MS) jumpedAtMs = monotonicMs();
    lastAheadMs = ahead;
    return monotonicMs() - jumpedAtMs >= STEADY_AFTER_MS;
  };
  /** A start may begin with a wrong clock. */
  const isProven = () => isSteady() && monotonicMs() - startedMs >= PROVEN_AFTER_MS;
  return { isSteady, isProven };
}
