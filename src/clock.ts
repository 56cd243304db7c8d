/**
 * The clock of the program, one for all its threads: the system's, but for a lab, which can set it.
 *
 * A thread is given the lab's shifts when it starts (`setEnvironmentData` of node:worker_threads), and sees every move
 * from then on. Timers are not moved: whoever moves the clock has the rest look again.
 */
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import type { Now } from './time.ts';

const NAME = 'wirewatch clock';
/** How far the clock is ahead of the system's, and the sum of all moves forward, both in milliseconds. */
const SHIFT = 0;
const FORWARD = 1;

let shifts: BigInt64Array<SharedArrayBuffer> | null = sharedShifts();

/** Epoch milliseconds. */
export const now: Now = () =>
  shifts === null ? Date.now() : Date.now() + Number(Atomics.load(shifts, SHIFT));

/** Milliseconds that never go back: for durations that a move of the clock shortens. */
export const monotonicMs: Now = () =>
  shifts === null ? performance.now() : performance.now() + Number(Atomics.load(shifts, FORWARD));

/** Makes the clock one that can be moved. To be called before a thread is started. @param toMs what it shows now; epoch milliseconds */
export function beginMovableClock(toMs: number): void {
  shifts = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));
  setEnvironmentData(NAME, shifts.buffer);
  Atomics.store(shifts, SHIFT, BigInt(Math.round(toMs - Date.now())));
}

/** Moves the clock on every thread. @param byMs negative: back */
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
