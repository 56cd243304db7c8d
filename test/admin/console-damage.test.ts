/** The console with a damaged audit trail. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AuditPage } from '../../src/admin/console/api.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { openDatabase } from '../../src/store/database.ts';
import { startAppliance } from '../support/appliance.ts';
import { openConsole } from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';

test('the sound entries are shown, with what is missing', async () => {
  await using appliance = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
  const ui = await openConsole(appliance);
  const before = await ui.get<AuditPage>('history/audit');
  {
    using db = openDatabase(join(appliance.data, 'access.db'), 'write', ACCESS_SCHEMA);
    db.prepare("UPDATE audit SET changes = '[]' WHERE entry = 2").run();
  }
  const { entries, warning } = await ui.get<AuditPage>('history/audit');
  assert.match(warning ?? '', /damaged: 1 entry \(number 2\)/);
  const sound = before.entries.filter(({ entry }) => entry !== 2);
  assert.deepEqual(entries, sound);
  assert.notEqual(entries.length, before.entries.length);
});
