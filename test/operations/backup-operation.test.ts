/** "Back up now" of the console: a process of its own, with the settings of the appliance. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startAppliance } from '../support/appliance.ts';
import { openConsole } from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';
import { inFolder } from '../support/program.ts';
import { BUCKET, CREDENTIALS, REGION, startS3Server } from '../support/s3-server.ts';
import { until } from '../support/until.ts';

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

test('neither it nor "backup" fills a place of the settings that had the copy and is empty, unless it is named', () =>
  inFolder(async (folder) => {
    const to = join(folder, 'share');
    mkdirSync(to);
    await using appliance = await startAppliance({
      WIREWATCH_ADMIN_PORT: `${await freePort()}`,
      WIREWATCH_COPY_TO: to,
    });
    await until('the copy', async () => existsSync(join(to, 'access')));
    appliance.cli(['backup']);
    // As if the share were not mounted.
    renameSync(to, join(folder, 'unmounted'));
    mkdirSync(to);
    const refused = /is empty, although a copy was kept there\. .* mount it\. .* wirewatch backup \S*share$/m;
    const { status, stderr } = appliance.cli(['backup'], { anyStatus: true });
    assert.equal(status, 1);
    assert.match(stderr, refused);
    const { state, text } = await (await openConsole(appliance)).job('backup');
    assert.equal(state, 'failed', text);
    assert.match(text, refused);
    rmSync(join(to, 'try'), { recursive: true });
    assert.deepEqual(readdirSync(to), []);
    appliance.cli(['backup', to]);
    assert.ok(existsSync(join(to, 'installation.json')));
  }));
