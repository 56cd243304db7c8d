/**
 * The clock of the program, shared by all threads: that of the system, except in a lab, which can set it.
 *
 * Threads share the lab's shifts (`setEnvironmentData` of node:worker_threads) and see every change. Timers do not
 * follow: whoever moves the clock must also wake what waits for a time.
 */
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import type { Now } from './time.ts';

const NAME = 'wirewatch clock';
/** Indexes of the offset from the system's clock, and of the sum of all moves forward; both in milliseconds. */
const SHIFT = 0;
const FORWARD = 1;

let shifts: BigInt64Array<SharedArrayBuffer> | null = sharedShifts();

/** Epoch milliseconds. */
export const now: Now = () =>
  shifts === null ? Date.now() : Date.now() + Number(Atomics.load(shifts, SHIFT));

/** Milliseconds that never go back: for durations that a clock moved forward shortens. */
export const monotonicMs: Now = () =>
  shifts === null ? performance.now() : performance.now() + Number(Atomics.load(shifts, FORWARD));

/** Makes the clock movable; call it before any thread starts. @param toMs the time to show now; epoch milliseconds */
export function beginMovableClock(toMs: number): void {
  shifts = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));
  setEnvironmentData(NAME, shifts.buffer);
  Atomics.store(shifts, SHIFT, BigInt(Math.round(toMs - Date.now())));
}

/** Moves the clock for all threads. @param byMs may be negative */
export function moveClock(byMs: number): void {
  if (shifts === null) throw new Error('only a lab moves its clock');
  const by = BigInt(Math.round(byMs));
  Atomics.add(shifts, SHIFT, by);
  if (by > 0n) Atomics.add(shifts, FORWARD, by);
}

function sharedShifts(): BigInt64Array<SharedArrayBuffer> | null {
  const shared: unknown = getEnvironmentData(NAME);
  return shared instanceof SharedArrayBuffer ? new BigInt64Array(shared) : null;
}
