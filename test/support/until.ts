/** Waits for a condition, however slow the machine is. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** Much longer than any step takes: only a failing test waits this long. */
const TIMEOUT_MS = 120_000;

export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + TIMEOUT_MS;
  while (!(await condition())) {
    assert.ok(performance.now() < endMs, `${what}: not within ${TIMEOUT_MS} ms`);
    await wait(5);
  }
}

/** Repeats a check until it passes. @throws as it does in the end */
export async function eventually(check: () => void | Promise<void>): Promise<void> {
  for (const endMs = performance.now() + TIMEOUT_MS; ; await wait(20))
    try {
      return await check();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
}
