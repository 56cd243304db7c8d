/** A small share of the torture's part `soak`, and a leak that it must detect: see test/torture/soak.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { preloaded } from '../support/preload.ts';
import { testFolder } from '../support/test-folder.ts';
import { tortureTest } from '../support/torture-test.ts';
import { Tally } from '../torture/part.ts';
import { growthOf, notFlat, soak, soakWith } from '../torture/soak.ts';

const SEED = 20261122;
const SHARE = 0.001;

/** Leaks memory and an open file for each archived file. */
const LEAK = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  const { renameSync, openSync } = fs;
  const kept = [];
  fs.renameSync = (from, to) => {
    // Named relative to its folder, which is open.
    if (/\\/(newswire|imagewire)[.][^/]*$/.test(String(to))) kept.push(Buffer.alloc(6 * 1024 * 1024, 1), openSync('/dev/null', 'r'));
    return renameSync(from, to);
  };
  syncBuiltinESMExports();
`;

tortureTest(soak, {
  share: SHARE,
  fired: ['files applied', 'corrections', 'keys made and revoked', 'removals', 'backups', 'scrubs'],
});

test('a leak of memory or open files is not flat', async (context) => {
  if (process.env.WIREWATCH_PROGRAM !== undefined) return context.skip('an executable loads nothing else');
  const tally = new Tally();
  const options = { seed: SEED, share: SHARE, folder: testFolder(), tally, onProgress: () => {} };
  await soakWith(options, preloaded(LEAK));
  const { failures, figures } = tally;
  assert.equal(failures.length, 2, failures.join('\n'));
  assert.match(failures[0] ?? '', /^memory, MiB grew by /);
  assert.match(failures[1] ?? '', /^open files grew by /);
  assert.match(String(figures['memory, MiB']), /^medians \d.*; at most \d/);
});

test('growth is distinguished from fluctuation', () => {
  const samples = (of: (at: number) => number) => Array.from({ length: 40 }, (_, at) => of(at));
  assert.equal(growthOf(samples(() => 7)), 0);
  const rising = samples((at) => at);
  const grown = growthOf(rising);
  assert.ok(Math.abs(grown - 26.25) < 1, 'three quarters of the samples after the warm-up');
  assert.ok(Math.abs(growthOf(samples((at) => (at % 2) * 100))) <= 50);
  assert.equal(growthOf(samples((at) => (at === 39 ? 1e6 : 0))), 0, 'a single sample must not count');
  assert.equal(growthOf(samples((at) => (at < 4 ? 0 : 50))), 0, 'the warm-up must not count');
  assert.equal(notFlat('disk', rising, 30), null);
  assert.match(notFlat('disk', rising, 20) ?? '', /^disk grew by 2\d/);
});
