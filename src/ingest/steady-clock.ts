/**
 * Whether the clock can be trusted with what cannot be undone: deleting what is old, giving up what is long missing.
 *
 * A clock that jumps is wrong before it or after it. Until it has gone evenly for an hour, nothing is done by it. At
 * a start there is nothing to compare it with, and it is taken as it is.
 */
import { HOUR_MS, MINUTE_MS, type Now } from '../time.ts';

const JUMP_MS = 5 * MINUTE_MS;
const STEADY_AFTER_MS = HOUR_MS;

export class SteadyClock {
  readonly #now: Now;
  readonly #monotonicMs: () => number;
  #aheadMs: number;
  #jumpedAtMs = Number.NEGATIVE_INFINITY;

  constructor(now: Now, monotonicMs: () => number = () => performance.now()) {
    this.#now = now;
    this.#monotonicMs = monotonicMs;
    this.#aheadMs = now() - monotonicMs();
  }

  /** Ask often: a jump there and back in between goes unnoticed, and does no harm. */
  isSteady(): boolean {
    const monotonicMs = this.#monotonicMs();
    const aheadMs = this.#now() - monotonicMs;
    if (Math.abs(aheadMs - this.#aheadMs) > JUMP_MS) this.#jumpedAtMs = monotonicMs;
    this.#aheadMs = aheadMs;
    return monotonicMs - this.#jumpedAtMs >= STEADY_AFTER_MS;
  }
}
