/**
 * A deleted detections.db is rebuilt from the log: it ends up equal column by column, even if settings, licences and
 * archive have changed. Others, with what lies beside them: recovery-faults.test.ts and checkpoint.test.ts.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { assertSameContent, contentOfDetections, withoutOpenDelivery } from '../support/database-content.ts';
import { contentOf, fileName, ndjson, newRow, newRows, nextWindowMs } from '../support/export-files.ts';
import { failingCall } from '../support/preload.ts';
import { testFolder } from '../support/test-folder.ts';

const DATABASE = ['detections.db', 'detections.db-wal', 'detections.db-shm'];

const appliance = await sharedAppliance({
  WIREWATCH_INGEST_QUIET_MS: '0',
  WIREWATCH_SERVER_BASE_URL: 'https://api.example',
});
const { data, dropped } = appliance;

/** Copies the data folder, without the drop folder, which is in it here. */
function copied(): string {
  const folder = testFolder();
  cpSync(data, folder, { recursive: true, filter: (path) => !/\/(drop|control\.sock)$/.test(path) });
  return folder;
}

const read = (query: string) => appliance.read(`/v1/detections/changes?${query}`);

/** Every page from a cursor on, as sent, without the next cursor. */
async function readAll(): Promise<string[]> {
  const all: string[] = [];
  for (let next = cursor; ; ) {
    const page = await read(`cursor=${next}&limit=200`);
    all.push(JSON.stringify(page.data));
    next = page.next_cursor;
    if (!page.has_more) return all;
  }
}

// Every kind of operation, with a copy in the middle; then a kill, and a clean stop.
const first = nextWindowMs();
const rows = newRows(700, {
  exported_at: formatMs(first),
  article_url: 'https://example.com/ü',
  // Begins like the placeholder of the base URL.
  article_headline: '\u0001/headline',
});
const scored = (from: number, to: number, members: object = {}) =>
  rows.slice(from, to).map((row) => ({ ...row, last_scored_at: formatMs(nextWindowMs()), ...members }));
const next = () => fileName('newswire', nextWindowMs());
await dropped(fileName('newswire', first), contentOf('ndjson', rows));
const photo = newRow({ source_image_url: null, source_internal_id: 7 });
await dropped(fileName('imagewire', nextWindowMs(), 'ndjson.zst'), contentOf('ndjson.zst', [photo]));
await dropped(next(), ndjson(scored(10, 20, { strength_score: 90 })));
const failing = nextWindowMs();
await dropped(fileName('newswire', failing), 'broken\n');
/** From the middle of the history. */
const { next_cursor: cursor } = await read(`since=${formatMs(Date.now() - 60_000)}&limit=5`);
await appliance.serving().stop();
const middle = copied();
await appliance.restart();
await dropped(fileName('newswire', failing), ndjson([newRow()]));
appliance.cli(['window', 'reset', 'newswire', formatMs(failing)]);
const print = newRow({ article_print: true, article_url: 'https://print.example/1' });
await dropped(next(), ndjson([...scored(0, 30), print]));
const more = [...scored(100, 140, { strength_score: 30 }), newRow(), newRow({ subscription_id: 9999 })];
await dropped('newswire.backfill-history.ndjson.gz', contentOf('ndjson.gz', more));
appliance.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
appliance.cli(['ingest', 'replay']);
await dropped(next(), ndjson([newRow({ subscription_id: 7002 })]));
const pages = await readAll();
await appliance.serving().kill();
await appliance.restart();
await appliance.serving().stop();
const end = copied();
const content = contentOfDetections(data);
assert.ok((content.detection?.length ?? 0) > 700 && (content.ingest_file?.length ?? 0) >= 8);

function restoreFolder(copy: string): void {
  for (const name of readdirSync(data)) if (name !== 'drop') rmSync(join(data, name), { recursive: true });
  cpSync(copy, data, { recursive: true });
}

/** Puts files of a copy, or none, in the place of those in the data folder. */
function place(from: string | null, names: readonly string[]): void {
  for (const name of names) {
    rmSync(join(data, name), { force: true });
    if (from !== null && existsSync(join(from, name))) cpSync(join(from, name), join(data, name));
  }
}

/** The appliance must have brought its database up to date, and serve the same pages; then it is stopped. */
async function assertUpToDate(): Promise<unknown> {
  const line = await appliance.logged(/^detections\.db was brought up to date from the log$/);
  assert.deepEqual(await readAll(), pages);
  await appliance.serving().stop();
  return line.made_anew;
}

test('detections.db is rebuilt equal, with other settings, another subscription and an empty archive', async () => {
  restoreFolder(end);
  place(null, DATABASE);
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'off']);
  appliance.cli(['subscription', 'add', '7003', '--account', 'agency']);
  rmSync(join(appliance.drop, 'archive'), { recursive: true });
  await appliance.restart();
  assert.equal(await assertUpToDate(), 'it does not exist');
  assertSameContent(withoutOpenDelivery(contentOfDetections(data)), withoutOpenDelivery(content));
  const left = readdirSync(data).filter((name) => /draft|aside|damage/.test(name));
  assert.deepEqual(left, []);
});

test('the port is open during the rebuild, and nothing is served from it before', {
  skip: NO_PRELOAD,
}, async () => {
  restoreFolder(end);
  place(null, DATABASE);
  // The new database gets its name only once there is space.
  const full = failingCall('rename', 'ENOSPC', /detections\.db-draft$/, join(data, 'full'));
  full.begin();
  await appliance.restart(full.settings);
  await appliance.logged(/^the disk is full: ingest waits/);
  const health = await appliance.get('/v1/health');
  assert.equal(health.status, 503);
  const { exports, alerts } = JSON.parse(await health.text());
  assert.equal(exports.newswire.newest_done, null, 'nothing is known of the exports');
  assert.ok(alerts.page_worthy > 0);
  const refused = await appliance.get(`/v1/detections/changes?cursor=${cursor}`);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [500, '5']);
  full.end();
  await assertUpToDate();
  const { log } = appliance.serving();
  assert.ok(!log.some(({ msg }) => msg === 'fault'), 'an expected refusal is no fault');
});

test('the port is open while there is no space to apply the last entries', { skip: NO_PRELOAD }, async () => {
  restoreFolder(end);
  place(middle, DATABASE);
  const full = failingCall('write', 'ENOSPC', /\.zst\.tmp$/, join(data, 'full'));
  full.begin();
  await appliance.restart(full.settings);
  await appliance.logged(/^the disk is full: ingest waits/);
  assert.equal((await appliance.get('/v1/health')).status, 503);
  full.end();
  await assertUpToDate();
});
