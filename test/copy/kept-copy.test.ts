/** An appliance with `[copy] to`: its copy follows within seconds, and nothing else waits for the place. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Overview } from '../../src/admin/console/api.ts';
import { createKey, sharedAppliance } from '../support/appliance.ts';
import { runToEnd } from '../support/command.ts';
import { openConsole } from '../support/console-client.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const share = join(testFolder(), 'share');
mkdirSync(share);
const copy = join(share, 'wirewatch');
const port = await freePort();
const appliance = await sharedAppliance({ WIREWATCH_COPY_TO: copy, WIREWATCH_ADMIN_PORT: `${port}` });
const drop = () => appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
const status = () => JSON.parse(appliance.cli(['status', '--json']).stdout);
const upToDate = () =>
  until('the copy to be up to date', () => {
    const { entries_behind, behind_since, failure } = status().copy;
    return entries_behind === 0 && behind_since === null && failure === null;
  });

test('a file and a key are in the copy within seconds; status, metrics and console say how it stands', async () => {
  await drop();
  createKey(appliance.cli, 'agency', '7001');
  await upToDate();
  const restored = join(testFolder(), 'restored');
  appliance.cli(['verify', copy]);
  assert.equal(runToEnd(['restore', copy, '--data', restored]).status, 0);
  const keysIn = (data: string) => runToEnd(['key', 'list', '--json', '--data', data]).stdout;
  assert.equal(JSON.parse(keysIn(restored)).length, 2);
  assert.match(appliance.cli(['status']).stdout, /^copy +up to date \(.*wirewatch\)$/m);
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  assert.match(metrics, /^wirewatch_copy_entries_behind 0$/m);
  const contact = Number(/^wirewatch_copy_contact_timestamp_seconds (.*)$/m.exec(metrics)?.[1]);
  assert.ok(Math.abs(Date.now() / 1000 - contact) < 60);
  assert.match(metrics, /^wirewatch_disk_free_bytes\{folder="copy"\} /m);
  const ui = await openConsole(appliance);
  // Its times change from one look at the place to the next.
  const shown = (await ui.get<Overview>('overview')).copy;
  assert.deepEqual({ ...status().copy, ...shown }, shown);
});

test('while the place is away, files are read; it catches up by itself', async () => {
  renameSync(share, `${share}-away`);
  await drop();
  await until('the failure', () => status().copy.failure !== null);
  assert.ok(status().copy.entries_behind > 0);
  const said = appliance.cli(['status']).stdout.replaceAll(/\n +/g, ' ');
  assert.match(said, /^copy +cannot be written: .*share/m);
  // It can wait for five minutes.
  assert.ok(!(await openAlertsOf(appliance)).includes('copy behind'));
  assert.equal((await appliance.get('/v1/me')).status, 200);
  renameSync(`${share}-away`, share);
  await upToDate();
  assert.equal(appliance.cli(['verify', copy]).status, 0);
});
