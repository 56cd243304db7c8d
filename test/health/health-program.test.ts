/** Health, alerts and missing windows of the real program. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Overview } from '../../src/admin/console/api.ts';
import type { AlertDocument } from '../../src/health/alert-texts.ts';
import type { Health } from '../../src/health/rules.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { type Appliance, putFile, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { openConsole } from '../support/console-client.ts';
import { changeDetections } from '../support/database-content.ts';
import { fileName, idOf, ndjson, newRow } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());

/** For the tests of the group that calls it. */
function useNewAppliance(): void {
  before(async () => {
    appliance = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
  });
  after(() => appliance.stop());
}

/** Fixed for the complete run: tests build on windows of earlier tests, even if a window ends meanwhile. */
const CURRENT_WINDOW_MS = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS - WINDOW_MS;

async function health(): Promise<{ readonly http: number } & Health> {
  const answer = await fetch(`${appliance.serving().url}/v1/health`);
  const body: Health = JSON.parse(await answer.text());
  return { http: answer.status, ...body };
}

const alerts = (): AlertDocument[] => JSON.parse(appliance.cli(['alert', 'list', '--json']).stdout);

const alertNamed = (name: string) => alerts().find((alert) => alert.name === name);

async function opened(name: string): Promise<AlertDocument> {
  await until(`the alert ${name}`, () => alertNamed(name) !== undefined);
  return alertNamed(name) ?? assert.fail();
}

const closed = (name: string) => until(`the end of ${name}`, () => alertNamed(name) === undefined);
const healthy = () => until('health', async () => (await health()).http === 200);

describe('a new installation', () => {
  useNewAppliance();

  test('is ok once the current windows of both exports are done; HEAD agrees', async () => {
    const window = CURRENT_WINDOW_MS;
    await appliance.dropped(fileName('newswire', window), ndjson([newRow()]));
    assert.equal((await health()).http, 503, 'imagewire has no finished window yet');
    await appliance.dropped(fileName('imagewire', window), '');
    const found = await health();
    assert.deepEqual(found, {
      http: 200,
      status: 'ok',
      exports: {
        newswire: { newest_done: formatMs(window + WINDOW_MS) },
        imagewire: { newest_done: formatMs(window + WINDOW_MS) },
      },
      alerts: { open: found.alerts.open, page_worthy: 0, paused: 0 },
      role: 'writer',
    });
    const page = await appliance.get(`/v1/detections/changes?since=${formatMs(Date.now() - DAY_MS)}`);
    const { as_of } = JSON.parse(await page.text());
    assert.equal(as_of, found.exports.newswire.newest_done, 'newest_done must be the basis of as_of');
    const head = await fetch(`${appliance.serving().url}/v1/health`, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
  });

  test('a missing drop folder is urgent, until it is back', async () => {
    const { drop } = appliance;
    renameSync(drop, `${drop}.away`);
    writeFileSync(drop, 'a file in its place');
    const found = await opened('drop folder not readable');
    assert.equal(found.page_worthy, true);
    assert.ok(found.detail.includes(drop));
    const degraded = await health();
    assert.deepEqual([degraded.http, degraded.status, degraded.alerts.page_worthy], [503, 'degraded', 1]);
    assert.equal(degraded.exports.newswire.newest_done === null, false);
    await appliance.logged(/^alert opened$/, { alert: found.name });
    rmSync(drop);
    renameSync(`${drop}.away`, drop);
    await healthy();
    await closed('drop folder not readable');
    const line = await appliance.dropped(fileName('newswire', CURRENT_WINDOW_MS), ndjson([newRow()]));
    assert.equal(line.msg, 'file applied');
    await appliance.logged(/^alert closed$/, { alert: found.name });
  });

  test('a drop folder that is missing at a start is urgent; reads go on, and files are read once it is back', async () => {
    const mount = join(appliance.data, '..', 'mount');
    const drop = join(mount, 'drop');
    await appliance.restart({ WIREWATCH_INGEST_DROP: drop });
    assert.ok((await opened('drop folder not readable')).detail.includes(drop));
    assert.equal((await appliance.get('/v1/me')).status, 200);
    assert.ok(!existsSync(mount), 'nothing may be written below a mount point');
    mkdirSync(join(drop, 'archive'), { recursive: true });
    const name = fileName('newswire', CURRENT_WINDOW_MS);
    putFile(drop, name, ndjson([newRow()]));
    assert.equal((await appliance.processed(name)).msg, 'file applied');
    await closed('drop folder not readable');
    await appliance.restart();
  });

  test('the list is readable, and says if the appliance does not run', async () => {
    assert.equal(appliance.cli(['alert', 'list']).stderr, '');
    await appliance.dropped(fileName('newswire', CURRENT_WINDOW_MS - 5 * WINDOW_MS), 'no json\n');
    await appliance.serving().stop();
    const { status, stdout } = appliance.cli(['alert', 'list'], { anyStatus: true });
    assert.equal(status, 1);
    const prose = stdout.replace(/\s+/g, ' ');
    const said =
      /^NOW appliance not running: Wirewatch is not running on .*, so only alerts that follow from its/;
    assert.match(prose, said);
    const what = `databases are listed -> Start it with: wirewatch serve --data ${appliance.data}`;
    assert.ok(prose.includes(what), stdout);
    assert.match(stdout, /\nlater {2}failed windows, since 20/);
    const json = appliance.cli(['alert', 'list', '--json'], { anyStatus: true });
    const [first] = JSON.parse(json.stdout);
    assert.deepEqual([json.status, first.name, first.page_worthy], [1, 'appliance not running', true]);
    await appliance.restart();
  });
});

describe('a damaged database', () => {
  const row = newRow();
  useNewAppliance();

  test('is not served, and is made anew from the log while the port is open', async () => {
    const window = CURRENT_WINDOW_MS;
    await appliance.dropped(fileName('newswire', window), ndjson([row]));
    await appliance.dropped(fileName('imagewire', window), '');
    assert.equal((await health()).http, 200);
    const path = `/v1/detections/${idOf(row)}`;
    const changes = `/v1/detections/changes?since=${formatMs(Date.now() - DAY_MS)}`;
    const before = await (await appliance.get(changes)).json();
    writeFileSync(join(appliance.data, 'detections.db'), 'this is no database. '.repeat(100_000));
    await until('it is served again', async () => {
      const answer = await appliance.get(path);
      assert.equal((await appliance.get('/v1/schema/detection')).status, 200);
      if (answer.status === 500) assert.equal(answer.headers.get('retry-after'), '5');
      return appliance.serving().log.some(({ msg }) => msg.startsWith('detections.db was rebuilt'));
    });
    await closed('database damaged');
    await healthy();
    assert.deepEqual(await (await appliance.get(changes)).json(), before);
    // Ingest goes on.
    const name = fileName('newswire', window - WINDOW_MS);
    assert.equal((await appliance.dropped(name, ndjson([newRow()]))).msg, 'file applied');
  });

  test('is not made anew again and again: within the hour, the alert stays', async () => {
    const changes = `/v1/detections/changes?since=${formatMs(Date.now() - DAY_MS)}`;
    const rows = [newRow(), newRow(), newRow()];
    const ui = await openConsole(appliance);
    await ui.get('overview');
    await appliance.dropped(fileName('newswire', CURRENT_WINDOW_MS - 2 * WINDOW_MS), ndjson(rows));
    const second = '(SELECT min(place) + 1 FROM stream_row)';
    changeDetections(appliance.data, `DELETE FROM stream_row WHERE place = ${second}`);
    assert.equal((await appliance.get(changes)).status, 500);
    const alert = await opened('database damaged');
    assert.equal(alert.page_worthy, true);
    assert.match(alert.detail, /should have \d+ rows, but \d+ were read|does not match its checksum/);
    assert.equal((await health()).http, 503);
    // Of the console, everything else is shown.
    const { alerts: told, database } = await ui.get<Overview>('overview');
    assert.ok(told.some(({ name }) => name === 'database damaged') && database.unreadable !== null);
    for (const path of ['customers', 'history/audit', 'jobs', 'manual'])
      assert.equal((await ui.ask(path)).status, 200, path);
    for (const path of ['windows', 'files', 'detections/live'])
      assert.equal((await ui.ask(path)).status, 503, path);
    // No other row is served either, for longer than it takes to make so small a database anew.
    for (let times = 0; times < 100; times += 1)
      for (const one of [row, ...rows])
        assert.equal((await appliance.get(`/v1/detections/${idOf(one)}`)).status, 500);
    // The next start makes it anew, completely.
    await appliance.restart();
    await healthy();
    assert.equal((await appliance.get(changes)).status, 200);
    for (const one of [row, ...rows]) assert.equal((await appliance.detection(idOf(one)))?.id, idOf(one));
    await closed('database damaged');
  });
});

test('a fault that ends the ingesting thread is urgent, and reads continue', async () => {
  await using own = await startAppliance();
  appliance = own;
  const row = newRow();
  const window = CURRENT_WINDOW_MS;
  await appliance.dropped(fileName('newswire', window), ndjson([row]));
  await appliance.dropped(fileName('imagewire', window), '');
  assert.equal((await health()).http, 200);
  const fault = "BEGIN SELECT raise(ABORT, 'a fault'); END";
  changeDetections(appliance.data, `CREATE TRIGGER fault BEFORE INSERT ON delivery ${fault}`);
  appliance.put(fileName('newswire', window - WINDOW_MS), ndjson([newRow()]));
  assert.equal((await opened('ingest stopped')).page_worthy, true);
  const found = await health();
  assert.deepEqual([found.http, found.alerts.page_worthy], [503, 1]);
  assert.equal(found.exports.newswire.newest_done, formatMs(window + WINDOW_MS));
  assert.ok(await appliance.detection(idOf(row)));
});
