/** What is refused, and why. */
import assert from 'node:assert/strict';
import { Refused, type RefusedCode } from '../../src/refused.ts';

/** Runs `work`, which must be refused with this code. @returns the detail */
export function refusal(code: RefusedCode, work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Refused, String(error));
    assert.equal(error.code, code, error.message);
    return error.message;
  }
  return assert.fail(`not refused, expected ${code}`);
}
