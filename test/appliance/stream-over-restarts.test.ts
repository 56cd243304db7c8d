/**
 * The change stream of a running appliance over restarts, changed settings, changed licences and several clients
 * (contract: GET /v1/detections/changes, Cursors, ChangesPage, Detection).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExportName } from '../../src/detection/content-type.ts';
import { type ChangesPage, sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';

const CHANGES = '/v1/detections/changes';
const BASE_URL = 'https://x.example/base';

const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });

const changes = (query: string): Promise<ChangesPage> => appliance.read(`${CHANGES}?${query}`);

/** A cursor at the current end of the stream. */
async function end(): Promise<string> {
  const page = await changes(`since=${new Date().toISOString()}`);
  assert.deepEqual([page.data, page.has_more], [[], false]);
  return `cursor=${page.next_cursor}`;
}

async function applied(rows: readonly Row[], exportName: ExportName = 'newswire', windowMs = nextWindowMs()) {
  const line = await appliance.dropped(fileName(exportName, windowMs), ndjson(rows));
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
}

/** Drops a row of a new detection. @returns its id, and a time between its delivery and any later one */
async function deliver(members: Row = {}): Promise<{ id: string; afterwards: string }> {
  const row = newRow(members);
  await applied([row]);
  // The program sets the delivery time, in milliseconds, before it logs the file.
  const afterwards = new Date(Date.now() + 1).toISOString();
  await sleep(5);
  return { id: idOf(row), afterwards };
}

const idsOf = (page: ChangesPage) => page.data.map(({ id }) => id);
const versionsOf = (page: ChangesPage) => page.data.map(({ id, version }) => `${id} ${version}`);

test('since starts with the first change delivered at or after it, also after restarts and a kill', async () => {
  const beginning = new Date().toISOString();
  await sleep(5);
  const first = await deliver();
  const second = await deliver();
  const expectAll = async (ids: readonly string[]) => {
    assert.deepEqual(idsOf(await changes(`since=${beginning}`)), ids);
    assert.deepEqual(idsOf(await changes(`since=${first.afterwards}`)), ids.slice(1));
    assert.deepEqual(idsOf(await changes(`since=${second.afterwards}`)), ids.slice(2));
  };
  await expectAll([first.id, second.id]);
  await appliance.restart();
  await expectAll([first.id, second.id]);
  const third = await deliver();
  await appliance.serving().kill();
  await appliance.restart();
  await expectAll([first.id, second.id, third.id]);
  const fourth = await deliver();
  await expectAll([first.id, second.id, third.id, fourth.id]);
  const page = await changes(`since=${fourth.afterwards}`);
  assert.deepEqual([page.data, page.has_more], [[], false]);
  const fifth = await deliver();
  assert.deepEqual(idsOf(await changes(`cursor=${page.next_cursor}`)), [fifth.id]);
});

test('print licence: a replay shows or hides URLs of print articles in new versions', async () => {
  const start = await end();
  const url = 'https://paper.example/page-one';
  const print = newRow({ article_print: true, article_url: url });
  const web = newRow({ article_url: 'https://web.example/one' });
  await applied([print, web]);
  const id = idOf(print);
  const shown = async () => {
    const detection = await appliance.detection(id);
    return [detection?.version, detection?.article.url, detection?.article.domain];
  };
  assert.deepEqual(await shown(), [1, null, 'paper.example']);
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
  assert.deepEqual(await shown(), [1, null, 'paper.example'], 'the licence alone must not change the stream');
  appliance.cli(['ingest', 'replay']);
  assert.deepEqual(await shown(), [2, url, 'paper.example']);
  appliance.cli(['ingest', 'replay']);
  assert.deepEqual(await shown(), [2, url, 'paper.example'], 'a second replay must change nothing');
  const licensed = newRow({ article_print: true, article_url: url });
  await applied([licensed]);
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'off']);
  appliance.cli(['ingest', 'replay']);
  assert.deepEqual(await shown(), [3, null, 'paper.example']);
  const page = await changes(start);
  const [other, next] = [idOf(web), idOf(licensed)];
  assert.equal(versionsOf(page).join(), `${id} 1,${other} 1,${id} 2,${next} 1,${id} 3,${next} 2`);
  // An existing row of the stream does not change.
  const urls = page.data.map((row) => row.article.url);
  assert.deepEqual(urls, [null, 'https://web.example/one', url, url, null, null]);
});

test('the base address is in photo URLs and error types, and changing it changes no version', async () => {
  const start = await end();
  const own = newRow();
  const given = newRow({ source_image_url: 'https://cdn.example/photo.jpg' });
  await applied([own, given], 'imagewire');
  const id = idOf(own, 'imagewire');
  const { url } = appliance.serving();
  const before = (await changes(start)).data.map(({ source }) => source.image_url ?? '');
  assert.ok(before[0]?.startsWith(`${url}/photos/501?signature=`), before[0]);
  assert.equal(before[1], 'https://cdn.example/photo.jpg');

  await appliance.restart({ WIREWATCH_SERVER_BASE_URL: BASE_URL });
  const page = await changes(start);
  const shown = page.data.map(({ source }) => source.image_url);
  assert.deepEqual(shown, [before[0]?.replace(url, BASE_URL), before[1]]);
  assert.ok(page.data.every(({ version }) => version === 1));
  assert.deepEqual((await changes(`cursor=${page.next_cursor}`)).data, []);
  const detection = await appliance.detection(id);
  assert.deepEqual([detection?.version, detection?.source.image_url], [1, page.data[0]?.source.image_url]);
  const fields = await changes(`${start}&fields=source.image_url&limit=1`);
  assert.deepEqual(fields.data, [{ id, version: 1, source: { image_url: page.data[0]?.source.image_url } }]);
  const problem = JSON.parse(await (await appliance.get('/nowhere')).text());
  assert.equal(problem.type, `${BASE_URL}/errors/not_found`);
  await appliance.restart();
});
