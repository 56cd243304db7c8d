/** A hundredth of the torture's part `power`; and that it finds every missing sync. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { without } from '../support/installed.ts';
import { testFolder } from '../support/test-folder.ts';
import { Tally } from '../torture/part.ts';
import { recordStory, type Story } from '../torture/power/story.ts';
import { cutPower } from '../torture/power.ts';

const skip = without('gcc');
const folder = testFolder();
let story: Story;

before(async () => {
  if (skip === false) story = await recordStory(folder);
});

async function cut(isOmitted?: (path: string) => boolean): Promise<Tally> {
  const tally = new Tally();
  await cutPower(story, { seed: 20261122, share: 0.01, folder, tally, onProgress: () => {} }, isOmitted);
  return tally;
}

test('what clients were told holds after a power cut', { skip }, async () => {
  const { failures, figures } = await cut();
  assert.deepEqual(failures, []);
  assert.equal(figures.images, 200);
});

/** Files and folders whose syncs are ignored. */
const OMITTED: readonly [what: string, paths: RegExp][] = [
  ['the log', /\/data\/log\/\d+\.zst(\.tmp)?$/],
  ['the folder of the log', /\/data\/log$/],
  ['access.db', /\/data\/access\.db(-wal)?$/],
  ['the data folder', /\/data$/],
  ['the name of the data folder', /\/recorded$/],
  ['the archive', /\/drop\/archive(\/[^/]+)?$/],
  ['the backup', /\/backup\//],
];

for (const [what, paths] of OMITTED) {
  test(`a missing fsync of ${what} is found`, { skip }, async () => {
    const { failures, figures } = await cut((path) => paths.test(path));
    assert.ok(Number(figures['syncs left out']) > 0);
    assert.ok(failures.length > 0);
  });
}
