/** A small share of the torture's part `faults`: see test/torture/faults.ts. Its first cases are one of every call. */
import assert from 'node:assert/strict';
import { tortureTest } from '../support/torture-test.ts';
import { faults } from '../torture/faults.ts';

const CALLS_MIN = 12;

tortureTest(faults, {
  share: 0.0055,
  fired: ['fired'],
  check(figures) {
    const calls = new Set(Object.keys(figures).flatMap((kind) => / from (\w+)$/.exec(kind)?.[1] ?? []));
    assert.ok(calls.size >= CALLS_MIN, [...calls].join());
  },
});
