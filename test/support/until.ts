/** Waits for a condition, however slow the machine is. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** Much longer than any step takes: only a failing test waits this long. */
const TIMEOUT_MS = 120_000;

export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const startMs = performance.now();
  while (!(await condition())) {
    assert.ok(performance.now() < startMs + TIMEOUT_MS, `${what}: not within ${TIMEOUT_MS} ms`);
    await wait(pauseMs(startMs));
  }
}

/** The time before the next look, in milliseconds: short at first; looks of many tests take the machine's time from them. */
export const pauseMs = (startMs: number): number => Math.min(50, 5 + (performance.now() - startMs) / 10);

/** Repeats a check until it passes. @throws as it does in the end */
export async function eventually(check: () => void | Promise<void>): Promise<void> {
  for (const endMs = performance.now() + TIMEOUT_MS; ; await wait(20))
    try {
      return await check();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
}
