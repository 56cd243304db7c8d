/** `window accept` of a failed window: it counts as done without its file, so that no alert stays open for it. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { formatWindowStart, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';

const appliance = await sharedAppliance();
const { inDrop, windowStatus } = exportTrials(() => appliance);

const accept = (window: number) =>
  JSON.parse(appliance.cli(['window', 'accept', 'newswire', formatWindowStart(window), '--json']).stdout);
const failures = () =>
  JSON.parse(appliance.cli(['status', '--json']).stdout)
    .alerts.map(({ name }: { name: string }) => name)
    .filter((name: string) => name.startsWith('failed'));

test('a failed window that is accepted is done, and a file that comes later is a correction', async () => {
  const stray = nextWindowMs() - WINDOW_MS;
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  assert.equal((await appliance.dropped(name, 'broken\n')).msg, 'file failed');
  const accepted = accept(window);
  assert.deepEqual([accepted.outcome, accepted.status], ['dismissed', 'done']);
  assert.ok(existsSync(inDrop('failed', name)));
  const row = newRow();
  assert.equal((await appliance.dropped(name, ndjson([row]))).msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));

  // Before the first expected window: it must not make thousands of windows missing.
  await appliance.dropped(fileName('newswire', stray), 'broken\n');
  assert.equal(windowStatus('newswire', stray), 'failed');
  assert.equal(accept(stray).outcome, 'dismissed');
  assert.equal(windowStatus('newswire', stray), undefined);
  await appliance.restart();
  assert.deepEqual(failures(), []);
  const again = appliance.cli(['window', 'accept', 'newswire', formatWindowStart(window)], {
    anyStatus: true,
  });
  assert.match(again.stderr, /is done: only an abandoned or failed window can be accepted/);
});
