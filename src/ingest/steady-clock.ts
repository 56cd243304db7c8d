/**
 * Whether the clock can be trusted with what cannot be undone: deleting old files, abandoning windows.
 *
 * A clock that jumps was wrong before or is wrong now. It is trusted again after an hour without a jump. At a start there
 * is nothing to compare it with: it is trusted.
 */
import { HOUR_MS, MINUTE_MS, type Now } from '../time.ts';

const JUMP_MS = 5 * MINUTE_MS;
const STEADY_AFTER_MS = HOUR_MS;

export class SteadyClock {
  readonly #ahead: Now;
  readonly #monotonicMs: Now;
  #aheadMs: number;
  #jumpedAtMs = Number.NEGATIVE_INFINITY;

  /** @param aheadMs how far the clock is ahead of `monotonicMs` */
  constructor(aheadMs: Now, monotonicMs: Now) {
    this.#ahead = aheadMs;
    this.#monotonicMs = monotonicMs;
    this.#aheadMs = aheadMs();
  }

  /** Call it often. A jump and its correction between two calls go unnoticed, and do no harm. */
  isSteady(): boolean {
    const monotonicMs = this.#monotonicMs();
    const aheadMs = this.#ahead();
    if (Math.abs(aheadMs - this.#aheadMs) > JUMP_MS) this.#jumpedAtMs = monotonicMs;
    this.#aheadMs = aheadMs;
    return monotonicMs - this.#jumpedAtMs >= STEADY_AFTER_MS;
  }
}
