/** A share of the torture's part `planted`: see test/torture/planted.ts. */
import assert from 'node:assert/strict';
import { tortureTest } from '../support/torture-test.ts';
import { planted } from '../torture/planted.ts';

const FAULTS_MIN = 8;

tortureTest(planted, {
  seed: 1,
  share: 0.08,
  fired: ['planted', 'caught'],
  check: ({ planted, caught }) => {
    assert.ok(Number(planted) >= FAULTS_MIN, `${planted}`);
    assert.equal(caught, planted);
  },
});
