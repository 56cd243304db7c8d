/**
 * The clock of the program, shared by all threads: that of the system, except in a lab, which can set it.
 *
 * Threads share the lab's shifts (`setEnvironmentData` of node:worker_threads) and see every change. Timers do not
 * follow: whoever moves the clock must also wake what waits for a time.
 */
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import type { Now } from './time.ts';

const NAME = 'wirewatch clock';
/**
 * Indexes of the sum of all moves forward, and of the rest of the offset from the system's clock; both in milliseconds.
 * Each move changes one of them, so no thread sees a part of it.
 */
const FORWARD = 0;
const REST = 1;

const shared: unknown = getEnvironmentData(NAME);
let shifts = shared instanceof SharedArrayBuffer ? new BigInt64Array(shared) : null;

const shift = (index: number): number => (shifts === null ? 0 : Number(Atomics.load(shifts, index)));

/** Epoch milliseconds. */
export const now: Now = () => Date.now() + shift(REST) + shift(FORWARD);

/** Milliseconds that never go back: for durations that a clock moved forward shortens. */
export const monotonicMs: Now = () => performance.now() + shift(FORWARD);

/** How far {@link now} is ahead of {@link monotonicMs}: it changes only where the clock jumps. */
export const aheadMs: Now = () => Date.now() - performance.now() + shift(REST);

/** Makes the clock movable; call it before any thread starts. @param toMs the time to show now; epoch milliseconds */
export function beginMovableClock(toMs: number): void {
  shifts = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));
  setEnvironmentData(NAME, shifts.buffer);
  Atomics.store(shifts, REST, BigInt(Math.round(toMs - Date.now())));
}

/** Moves the clock for all threads. @param byMs may be negative */
export function moveClock(byMs: number): void {
  if (shifts === null) throw new Error('only a lab moves its clock');
  const by = BigInt(Math.round(byMs));
  Atomics.add(shifts, by > 0n ? FORWARD : REST, by);
}
