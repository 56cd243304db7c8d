/** A thousand flipped bits and a thousand overwritten blocks: what the change stream makes of each, counted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { damageOften } from '../support/damage.ts';

const TIMES = 1000;

for (const kind of ['bit', 'block'] as const) {
  test(`of ${TIMES} flipped at random (${kind}), none costs a client a row`, (context) => {
    const outcomes = damageOften(kind, TIMES, 'stream-damage');
    context.diagnostic(JSON.stringify(outcomes));
    assert.equal(outcomes['served wrong'], 0, JSON.stringify(outcomes));
  });
}
