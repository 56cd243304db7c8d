/** The console's server: what it offers for windows, keys and accounts, and its audit trail. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type * as api from '../../src/admin/console/api.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance, startAppliance } from '../support/appliance.ts';
import { assertFailed } from '../support/command.ts';
import { openConsole } from '../support/console-client.ts';
import { changeDetections } from '../support/database-content.ts';
import { fileName, idOf, ndjson, newRow } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { inFolder } from '../support/program.ts';
import { BUCKET, CREDENTIALS, REGION, startS3Server } from '../support/s3-server.ts';
import { until } from '../support/until.ts';

const NAME = 'Grace Hopper';
const USER = userInfo().username;
const TERMS = { account: 'agency', name: 'x', scopes: ['detections:read'], subscriptions: ['7001'] };
const WHO = `${USER} as "${NAME}"`;
const appliance = await sharedAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
let ui = await openConsole(appliance, '--as', NAME);

/** A window of yesterday: on the map, and long overdue. */
const first = Math.floor((Date.now() - DAY_MS) / WINDOW_MS) * WINDOW_MS - WINDOW_MS * 6;
const at = (count: number) => first + count * WINDOW_MS;

/** The newest entry of the audit trail, which must name this person. */
async function audited(command: string): Promise<api.AuditedChange> {
  const { entries } = await ui.get<api.AuditPage>('history/audit');
  const [newest] = entries;
  assert.ok(newest !== undefined);
  const { kind, actor, as } = newest;
  assert.deepEqual([kind, newest.command, actor, as], ['console', command, USER, NAME]);
  const printed = appliance.cli(['audit']).stdout.trim().split('\n').at(-1) ?? '';
  assert.ok(printed.includes(`  ${WHO}  console: ${command}  `), printed);
  return newest;
}

test('a failed window is reset: map, list and button agree, before and after', async () => {
  const start = formatMs(at(1));
  const window = { export: 'newswire', start: [start] };
  const good = newRow();
  await appliance.dropped(fileName('newswire', at(1)), ndjson([newRow({ strength_score: 'much' })]));
  const stateOf = async () => {
    const map = await ui.get<api.WindowMap>('windows');
    const index = (at(1) - Date.parse(map.from)) / WINDOW_MS;
    return {
      letter: map.exports.newswire.windows[index],
      rows: map.exports.newswire.rows[index],
      listed: map.open.filter(({ window_start }) => window_start === start),
    };
  };
  const failed = await stateOf();
  assert.equal(failed.letter, 'f');
  const offers = ['window reset', 'window accept'].map((operation) => ({ operation, given: window }));
  const shown = failed.listed.map(({ letter, held, actions }) => [letter, held, actions]);
  assert.deepEqual(shown, [['f', false, offers]]);
  const detail = await ui.get<api.WindowDetail>(`window?export=newswire&window_start=${start}`);
  const { line, column, value } = Object(detail.files[0]?.report.errors?.[0]);
  assert.deepEqual([line, column, value], [1, 'strength_score', 'much']);
  const again = await ui.job('window reset', window);
  assert.deepEqual([again.state, /failed again: /.test(again.text)], ['failed', true], again.text);
  assert.equal((await appliance.processed(fileName('newswire', at(1)))).msg, 'file failed');

  assert.equal((await appliance.dropped(fileName('newswire', at(1)), ndjson([good]))).msg, 'file held');
  const { listed } = await stateOf();
  assert.deepEqual([listed.length, listed[0]?.held], [1, true]);
  await appliance.dropped(fileName('newswire', at(9)), 'no row at all\n');
  const { open } = await ui.get<api.WindowMap>('windows');
  const offered = open.flatMap(({ held, actions }) => [held, actions.length]);
  assert.deepEqual(offered, [false, 2, true, 2]);
  const dismissed = { export: 'newswire', start: [formatMs(at(9))] };
  assert.equal((await ui.job('window accept', dismissed)).state, 'done');
  const done = await ui.job('window reset', window);
  assert.deepEqual([done.state, done.by], ['done', WHO]);
  assert.ok(await appliance.detection(idOf(good)));
  const { members, subject, change } = await audited('window reset');
  assert.deepEqual([subject, change], ['operation', 'asked for']);
  assert.deepEqual(members.window_start, { from: null, to: start });
  const after = await stateOf();
  assert.deepEqual([after.letter, after.rows, after.listed], ['d', 1, []]);
  const refused = await ui.operate('window reset', window);
  assert.equal(refused.status, 409);
  assert.match(refused.text, /is done: only a failed window can be reset/);
});

test('an abandoned window is accepted; an empty file closes the gap', async () => {
  await appliance.dropped(fileName('newswire', at(4)), '');
  await ui.act('window expect', { export: 'newswire', start: formatMs(at(0)) });
  assert.deepEqual((await audited('window expect')).members.window_start?.to, formatMs(at(0)));
  await appliance.serving().stop();
  const lost = `UPDATE export_window SET status = 'abandoned' WHERE window_start = ${at(2)}`;
  changeDetections(appliance.data, lost);
  await appliance.restart();
  ui = await openConsole(appliance, '--as', NAME);
  const row = newRow();
  assert.equal((await appliance.dropped(fileName('newswire', at(2)), ndjson([row]))).msg, 'file held');
  const start = formatMs(at(2));
  const window = { export: 'newswire', start: [start] };
  const map = await ui.get<api.WindowMap>('windows');
  const indexOf = (count: number) => (at(count) - Date.parse(map.from)) / WINDOW_MS;
  const letters = [1, 2, 4].map((count) => map.exports.newswire.windows[indexOf(count)]);
  assert.deepEqual(letters, ['d', 'h', 'e']);
  const listed = map.open.find(({ window_start }) => window_start === start);
  assert.equal(listed?.letter, 'a');
  assert.deepEqual(listed?.actions, [{ operation: 'window accept', given: window }]);
  assert.equal((await ui.operate('window reset', window)).status, 409);
  assert.equal((await ui.job('window accept', window)).state, 'done');
  assert.ok(await appliance.detection(idOf(row)));
  await audited('window accept');
});

test('the first expected window is changed', async () => {
  const start = formatMs(at(6));
  assert.equal((await ui.job('window expect', { export: 'newswire', start })).state, 'done');
  const map = await ui.get<api.WindowMap>('windows');
  assert.equal(map.exports.newswire.windows[(at(5) - Date.parse(map.from)) / WINDOW_MS], '-');
  await audited('window expect');
  // A mistyped year would make millions missing.
  for (const wrong of [formatMs(at(1000)), '0026-11-20T10:00:00Z', formatMs(Date.now() - 5 * 367 * DAY_MS)])
    assert.equal((await ui.operate('window expect', { export: 'newswire', start: wrong })).status, 400);
});

test('keys and accounts offer what their state allows', async () => {
  const { value } = await ui.act('key create', { ...TERMS, subscriptions: ['7001:text'] });
  const { id, key } = Object(value);
  const offered = async () => {
    const { accounts } = await ui.get<api.Customers>('customers');
    const [account] = accounts;
    const entry = account?.keys.find((one) => one.id === id);
    assert.ok(account !== undefined && entry !== undefined);
    return [...entry.actions, ...account.actions].map(({ operation }) => operation);
  };
  const ofAccount = (verb: string) => ['account set', `account ${verb}`, 'account remove'];
  assert.deepEqual(await offered(), ['key set', 'key rotate', 'key revoke', ...ofAccount('suspend')]);
  await ui.act('account suspend', { id: 'agency' });
  await ui.act('key revoke', { id });
  assert.deepEqual(await offered(), ofAccount('resume'));
  assert.deepEqual((await audited('key revoke')).id, id);
  assert.equal((await ui.operate('key rotate', { id })).status, 409);
  await ui.act('account resume', { id: 'agency' });
  const { text } = await ui.ask('history/audit');
  assert.ok(!text.includes(key.split('_').at(-1)), 'the trail must not contain a secret');
});

test('what no operation takes is refused with a problem document', async () => {
  for (const [operation, given, status] of [
    ['key create', { ...TERMS, hash: 'x' }, 400],
    ['key create', { ...TERMS, name: 'x'.repeat(100_000) }, 400],
    ['key create', null, 400],
    ['key create', [], 400],
    ['key create', { ...TERMS, account: 'nobody' }, 409],
    ['key delete', {}, 404],
    ['', {}, 404],
  ] as const) {
    const reply = await ui.operate(operation, given);
    assert.equal(reply.status, status, reply.text);
    assert.match(reply.headers['content-type'] ?? '', /^application\/problem\+json/);
  }
});

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
    assertFailed(appliance.cli(['backup'], { anyStatus: true }), 1, refused);
    const { state, text } = await (await openConsole(appliance)).job('backup');
    assert.equal(state, 'failed', text);
    assert.match(text, refused);
    rmSync(join(to, 'try'), { recursive: true });
    assert.deepEqual(readdirSync(to), []);
    appliance.cli(['backup', to]);
    assert.ok(existsSync(join(to, 'installation.json')));
  }));
