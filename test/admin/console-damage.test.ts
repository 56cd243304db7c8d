/** The console with a damaged database: everything else still works. */
import assert from 'node:assert/strict';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Overview } from '../../src/admin/console/api.ts';
import { startAppliance } from '../support/appliance.ts';
import { openConsole } from '../support/console-client.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';

test('with detections.db damaged, the overview and the customers are shown, with the alert', async () => {
  await using appliance = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
  const ui = await openConsole(appliance);
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow({})]));
  await ui.get('overview');
  const path = join(appliance.data, 'detections.db');
  const hasAlert = async () => {
    const { alerts } = await ui.get<Overview>('overview');
    return alerts.some(({ name }) => name === 'database damaged');
  };
  const damage = async () => {
    writeFileSync(path, Buffer.alloc(statSync(path).size, 'x'), { flag: 'r+' });
    await until('the alert', hasAlert);
  };
  // It is made anew at once; if that was within the hour, it stays damaged.
  await damage();
  await until('its end', async () => !(await hasAlert()));
  await damage();
  const { database } = await ui.get<Overview>('overview');
  assert.notEqual(database.unreadable, null);
  for (const path of ['customers', 'history/audit', 'jobs', 'manual'])
    assert.equal((await ui.ask(path)).status, 200, path);
  for (const path of ['windows', 'files', 'detections/live'])
    assert.equal((await ui.ask(path)).status, 503, path);
});
