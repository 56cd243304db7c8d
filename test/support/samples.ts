/** The text of a sample, as `wirewatch sample` prints it. */
import assert from 'node:assert/strict';
import { SAMPLES } from '../../src/samples/samples.ts';

export function sample(name: string): string {
  const found = SAMPLES.find((one) => one.name === name);
  assert.ok(found, name);
  return found.text();
}
