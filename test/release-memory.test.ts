/** The memory of large buffers is freed at once; that of small ones may be shared. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { releaseMemory } from '../src/release-memory.ts';

test('a large buffer is empty afterwards; one that shares its memory with others is left alone', () => {
  const page = Buffer.from('x'.repeat(100_000));
  releaseMemory(page.subarray(0, 99_000));
  assert.equal(page.length, 0);
  const small = Buffer.from('a few bytes');
  releaseMemory(small);
  assert.equal(small.toString(), 'a few bytes');
});
