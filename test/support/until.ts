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
