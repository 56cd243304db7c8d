/**
 * Whether the clock can be trusted with what cannot be undone: deleting old files, abandoning windows.
 *
 * A clock that jumps was wrong before or is wrong now. It is trusted again after an hour without a jump. At a start there
 * is nothing to compare it with: it is trusted with what a later search takes back, and with nothing else for an hour.
 */
import { paced } from '../pace.ts';
import { HOUR_MS, MINUTE_MS, type Now } from '../time.ts';

const JUMP_MS = 5 * MINUTE_MS;
const STEADY_AFTER_MS = HOUR_MS;
const PROVEN_AFTER_MS = paced(HOUR_MS);

export class SteadyClock {
  readonly #ahead: Now;
  readonly #monotonicMs: Now;
  readonly #startedMs: number;
  #aheadMs: number;
  #jumpedAtMs = Number.NEGATIVE_INFINITY;

  /** @param aheadMs how far the clock is ahead of `monotonicMs` */
  constructor(aheadMs: Now, monotonicMs: Now) {
    this.#ahead = aheadMs;
    this.#monotonicMs = monotonicMs;
    this.#startedMs = monotonicMs();
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

  /** Whether it has run evenly for an hour, counted from the start at the earliest: a start may begin with a wrong clock. */
  isProven(): boolean {
    return this.isSteady() && this.#monotonicMs() - this.#startedMs >= PROVEN_AFTER_MS;
  }
}
