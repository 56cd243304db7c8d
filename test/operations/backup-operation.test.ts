/** "Back up now" of the console: a process of its own, with the settings of the appliance. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startAppliance } from '../support/appliance.ts';
import { openConsole } from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';
import { inFolder } from '../support/program.ts';
import { BUCKET, CREDENTIALS, REGION, startS3Server } from '../support/s3-server.ts';

test('it writes to the S3 service of the settings, with their region and credentials', () =>
  inFolder(async (folder) => {
    const credentials = join(folder, 'credentials');
    writeFileSync(credentials, `${CREDENTIALS.access}\n${CREDENTIALS.secret}\n`, { mode: 0o600 });
    const server = await startS3Server();
    after(server.close);
    await using appliance = await startAppliance({
      WIREWATCH_ADMIN_PORT: `${await freePort()}`,
      WIREWATCH_COPY_TO: `s3://${BUCKET}/copy`,
      WIREWATCH_COPY_ENDPOINT: server.endpoint,
      WIREWATCH_COPY_REGION: REGION,
      WIREWATCH_COPY_CREDENTIALS: credentials,
    });
    const { state, text } = await (await openConsole(appliance)).job('backup');
    assert.equal(state, 'done', text);
    assert.match(text, /^s3:\/\/bucket\/copy is up to date/);
  }));
