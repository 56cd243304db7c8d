/** A map with a limit of entries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BoundedMap } from '../src/bounded-map.ts';
import { forAll } from './support/for-all.ts';

test('whatever is set, deleted and cleared, a bounded map holds the newest entries in order', () => {
  const key = fc.integer({ min: 0, max: 9 });
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('set'), key }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete'), key }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear'), key }) },
  );
  forAll(100, fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 200 }), (max, steps) => {
    const map = new BoundedMap<number, number>(max);
    let expected: number[] = [];
    for (const { kind, key: at } of steps) {
      expected = kind === 'clear' ? [] : expected.filter((other) => other !== at);
      if (kind === 'clear') map.clear();
      else if (kind === 'delete') map.delete(at);
      else {
        map.set(at, at);
        expected = [...expected, at].slice(-max);
      }
      assert.deepEqual([...map.keys()], expected);
    }
  });
});
