/**
 * The change stream of a running appliance over restarts, changed settings, changed licences and several clients
 * (contract: GET /v1/detections/changes, Cursors, ChangesPage, Detection).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExportName } from '../../src/detection/content-type.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import {
  addOtherAccount,
  createInstallation,
  createKey,
  type Detection,
  sharedAppliance,
} from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';

const CHANGES = '/v1/detections/changes';
const BASE_URL = 'https://x.example/base';

const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
const otherKey = addOtherAccount(appliance.cli);

interface Page {
  readonly data: readonly Detection[];
  readonly next_cursor: string;
  readonly has_more: boolean;
  readonly as_of: string | null;
}

async function changes(query: string, key = appliance.key): Promise<Page> {
  const response = await appliance.get(`${CHANGES}?${query}`, key);
  const text = await response.text();
  assert.equal(response.status, 200, `${query}: ${text}`);
  return JSON.parse(text);
}

/** Sends a request that must be refused. @returns the status and detail */
async function refusal(query: string, key = appliance.key): Promise<string> {
  const response = await appliance.get(`${CHANGES}?${query}`, key);
  return `${response.status} ${JSON.parse(await response.text()).detail}`;
}

/** A cursor at the current end of the stream. */
async function end(key = appliance.key): Promise<string> {
  const page = await changes(`since=${new Date().toISOString()}`, key);
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

const idsOf = (page: Page) => page.data.map(({ id }) => id);
const versionsOf = (page: Page) => page.data.map(({ id, version }) => `${id} ${version}`);

test('as_of is null until every export in the request has finished a window', async () => {
  const empty = await changes(`since=${new Date().toISOString()}`);
  assert.deepEqual([empty.data, empty.has_more, empty.as_of], [[], false, null]);
  const windowMs = nextWindowMs();
  await applied([newRow()], 'newswire', windowMs);
  const asOf = formatMs(windowMs + WINDOW_MS);
  const start = `cursor=${empty.next_cursor}`;
  assert.equal((await changes(start)).as_of, null, 'imagewire has no finished window');
  assert.equal((await changes(`${start}&content_type=image`)).as_of, null);
  assert.equal((await changes(`${start}&content_type=text`)).as_of, asOf);
  assert.equal((await changes(`${start}&subscription_id=7002`)).as_of, asOf, '7002 has only text');
  await appliance.dropped(fileName('imagewire', windowMs - 6 * WINDOW_MS), ndjson([newRow()]));
  assert.equal((await changes(start)).as_of, formatMs(windowMs - 5 * WINDOW_MS), 'the earliest of the two');
  await applied([newRow()], 'newswire', windowMs - WINDOW_MS);
  assert.equal(
    (await changes(`${start}&content_type=text`)).as_of,
    asOf,
    'a late file must not move as_of back',
  );
});

test('an export that is switched off is left out until it is switched on', async () => {
  const start = await end();
  const row = newRow();
  await applied([row], 'imagewire');
  const text = await deliver();
  const id = idOf(row, 'imagewire');
  assert.deepEqual(idsOf(await changes(start)), [id, text.id]);
  const textAsOf = (await changes(`${start}&content_type=text`)).as_of;
  await appliance.restart({ WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' });
  const page = await changes(start);
  assert.deepEqual([idsOf(page), page.as_of], [[text.id], textAsOf]);
  const images = await changes(`${start}&content_type=image`);
  assert.deepEqual([images.data, images.has_more, images.as_of], [[], false, null]);
  assert.equal(await appliance.detection(id), null);
  const line = await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(line.msg, 'file refused');
  await appliance.restart();
  assert.deepEqual(idsOf(await changes(start)), [id, text.id]);
  assert.equal((await appliance.detection(id))?.id, id);
});

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

test('since is at most 31 days old and not in the future, by the current clock', async () => {
  const at = (ms: number) => `since=${new Date(Date.now() + ms).toISOString()}`;
  assert.match(await refusal(at(-31 * DAY_MS - 1000)), /^400 since: /);
  assert.match(await refusal(at(60_000)), /^400 since: /);
  assert.ok((await changes(`${at(-31 * DAY_MS + 60_000)}&limit=1000`)).data.length > 0);
});

test('a cursor survives restarts, a key rotation and a change of filters', async () => {
  const roll = createKey(appliance.cli, 'agency', '7001,7002');
  const cursor = await end(roll);
  const one = await deliver({ strength_score: 10 });
  const two = await deliver({ strength_score: 99 });
  appliance.cli(['key', 'revoke', roll, '--yes']);
  await appliance.restart();
  assert.match(await refusal(cursor, roll), /^401 /);
  assert.deepEqual(idsOf(await changes(cursor)), [one.id, two.id]);
  assert.deepEqual(idsOf(await changes(`${cursor}&min_band=max`)), [two.id]);
  assert.deepEqual(idsOf(await changes(`${cursor}&band=off&subscription_id=7001&fields=id`)), [one.id]);
});

test('rows that a filter skipped do not come back when it is widened', async () => {
  const start = await end();
  await deliver({ strength_score: 10 });
  const high = await deliver({ strength_score: 99 });
  await deliver({ strength_score: 20 });
  const narrow = await changes(`${start}&band=max`);
  assert.deepEqual(idsOf(narrow), [high.id]);
  const wide = await changes(`cursor=${narrow.next_cursor}`);
  assert.deepEqual([wide.data, wide.next_cursor], [[], narrow.next_cursor]);
});

test('a filter applies to each version as it was', async () => {
  const start = await end();
  const row = newRow({ strength_score: 96 });
  await applied([row]);
  const later = formatMs(Date.parse(String(row.last_scored_at)) + 60_000);
  await applied([{ ...row, strength_score: 12, last_scored_at: later }]);
  const id = idOf(row);
  assert.deepEqual(versionsOf(await changes(start)), [`${id} 1`, `${id} 2`]);
  assert.deepEqual(
    versionsOf(await changes(`${start}&band=max`)),
    [`${id} 1`],
    'the second is not announced',
  );
  assert.deepEqual(versionsOf(await changes(`${start}&band=off`)), [`${id} 2`]);
});

test('a new score that changes nothing else is shown but not announced', async () => {
  const row = newRow();
  const before = await end();
  await applied([row]);
  const start = await end();
  const later = formatMs(Date.parse(String(row.last_scored_at)) + 60_000);
  await applied([{ ...row, last_scored_at: later }]);
  assert.deepEqual((await changes(start)).data, []);
  const [announced] = (await changes(before)).data;
  assert.equal(
    announced?.last_scored_at,
    row.last_scored_at,
    'an existing row of the stream must not change',
  );
  const detection = await appliance.detection(idOf(row));
  assert.deepEqual([detection?.version, detection?.last_scored_at], [1, later]);
  assert.deepEqual(Object.keys(detection ?? {}).includes('event'), false);
});

test("another account's cursor shows only one's own changes", async () => {
  const cursor = await end();
  const foreignRow = newRow({ subscription_id: 8001 });
  await applied([newRow(), foreignRow, newRow()]);
  assert.deepEqual(idsOf(await changes(cursor, otherKey)), [idOf(foreignRow)]);
  const whole = await changes(`${await end(otherKey)}`, otherKey);
  assert.deepEqual(whole.data, []);
  assert.equal((await changes(cursor)).data.length, 2);
  assert.equal(`cursor=${whole.next_cursor}`, await end(), 'a cursor contains only a position');
});

test('a cursor of another installation, or an altered one, is 400', async () => {
  const other = createInstallation();
  try {
    const serving = await other.serve();
    const response = await fetch(`${serving.url}${CHANGES}?since=${new Date().toISOString()}`, {
      headers: { authorization: `Bearer ${other.key}` },
    });
    const { next_cursor: foreign } = JSON.parse(await response.text());
    await serving.stop();
    const detail = /^400 cursor: invalid; use next_cursor from this endpoint, or start again with since$/;
    assert.match(await refusal(`cursor=${foreign}`), detail);
    const [, own = ''] = (await end()).split('=');
    const swapped = own.slice(0, 5) + own.slice(6) + own.slice(5, 6);
    for (const text of [own.slice(1), `${own}A`, own.toLowerCase(), swapped, 'null', own.slice(0, 12)]) {
      assert.match(await refusal(`cursor=${text}`), detail, text);
    }
  } finally {
    other.remove();
  }
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
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'off']);
  appliance.cli(['ingest', 'replay']);
  assert.deepEqual(await shown(), [3, null, 'paper.example']);
  const page = await changes(start);
  assert.deepEqual(versionsOf(page), [`${id} 1`, `${idOf(web)} 1`, `${id} 2`, `${id} 3`]);
  assert.deepEqual(
    page.data.map((row) => row.article.url),
    [null, 'https://web.example/one', url, null],
    'an existing row of the stream must not change',
  );
});

test('a replay brings the rows of a subscription that is added later', async () => {
  const early = newRow({ subscription_id: 7500 });
  await applied([early]);
  const start = await end();
  appliance.cli(['subscription', 'add', '7500', '--account', 'agency']);
  const key = createKey(appliance.cli, 'agency', '7500');
  assert.equal(await appliance.detection(idOf(early), key), null);
  appliance.cli(['ingest', 'replay']);
  assert.deepEqual(versionsOf(await changes(start, key)), [`${idOf(early)} 1`]);
  assert.deepEqual((await changes(start)).data, [], 'no other detection may be announced again');
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
  assert.deepEqual(
    page.data.map(({ source }) => source.image_url),
    [before[0]?.replace(url, BASE_URL), before[1]],
  );
  assert.deepEqual(
    page.data.map(({ version }) => version),
    [1, 1],
  );
  assert.deepEqual((await changes(`cursor=${page.next_cursor}`)).data, []);
  const detection = await appliance.detection(id);
  assert.deepEqual([detection?.version, detection?.source.image_url], [1, page.data[0]?.source.image_url]);
  const fields = await changes(`${start}&fields=source.image_url&limit=1`);
  assert.deepEqual(fields.data, [{ id, version: 1, source: { image_url: page.data[0]?.source.image_url } }]);
  const problem = JSON.parse(await (await appliance.get('/nowhere')).text());
  assert.equal(problem.type, `${BASE_URL}/errors/not_found`);
  await appliance.restart();
});
