/** `wirewatch demo`: the first minute. That it never touches another installation: lab-start.test.ts. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Detection } from '../../support/appliance.ts';
import { succeedBeside } from '../../support/command.ts';
import { startDemonstration } from '../../support/demonstration.ts';
import { CHANGES, follow, readerOf } from '../../support/lab.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { until } from '../../support/until.ts';

/** Sends the request of a curl command, with its URL and headers. */
async function paste(call: string): Promise<Response> {
  const [, name = '', value = '', address = ''] = /^curl -s -H '(\w+): ([^']+)' '([^']+)'$/.exec(call) ?? [];
  return fetch(address, { headers: { [name]: value } });
}

const fiveMinutesAgo = () => `since=${new Date(Date.now() - 300_000).toISOString()}`;

test('keys and calls work, exports keep arriving, the commands of a lab work, and the next start begins from scratch', () =>
  inFolder(async (data) => {
    const { shown, run, stop } = await startDemonstration(data);
    const { url, keys, calls } = shown;
    const [all, some] = keys;
    assert.ok(all !== undefined && some !== undefined && keys.length === 2);
    const changes = await paste(calls.changes);
    assert.equal(changes.status, 200);
    assert.equal(JSON.parse(await changes.text()).data.length, 3);
    const detection = await paste(calls.detection);
    assert.deepEqual([detection.status, JSON.parse(await detection.text()).event], [200, undefined]);

    const operation = await fetch(`${url}/operations/lab-clock`, { method: 'POST' });
    assert.equal(operation.status, 404, 'only a lab does operations without a session');
    const health = await fetch(`${url}/v1/health`);
    assert.equal(health.status, 200, await health.text());
    assert.equal(shown.detection?.id, calls.detection.split('/').at(-1)?.replace("'", ''));
    const photo = await fetch(shown.photo ?? '');
    assert.deepEqual([photo.status, photo.headers.get('content-type')], [200, 'image/png']);
    const png = Buffer.from(await photo.arrayBuffer());
    assert.equal(png.subarray(1, 4).toString(), 'PNG');
    await run.until('the requests on its log', () => run.log().find(({ msg }) => msg === 'request'));

    const first = await follow(readerOf(url, all.key), fiveMinutesAgo());
    const { rows } = first;
    assert.ok(rows.length > 5000, `${rows.length} rows of a day`);
    assert.deepEqual(new Set(rows.map((row) => row.content_type)), new Set(['text', 'image']));
    const isChanged = rows.some(({ version }) => version > 1);
    assert.ok(isChanged, 'some detections have changed');
    const fewer = await follow(readerOf(url, some.key), fiveMinutesAgo());
    const readable = rows.filter((row) => `${row.subscription_id}:${row.content_type}` === some.reads);
    assert.ok(readable.length > 0 && readable.length < rows.length);
    assert.deepEqual(fewer.rows.slice(0, readable.length), readable);

    const more: Detection[] = [];
    let { cursor } = first;
    await until('a new and a changed detection', async () => {
      // Within the limit of requests.
      await sleep(1000);
      const next = await follow(readerOf(url, all.key), `cursor=${cursor}`);
      more.push(...next.rows);
      cursor = next.cursor;
      return new Set(more.map(({ event }) => event)).size === 2;
    });
    const own = ['--account', 'sample-agency', '--scopes', 'detections:read', '--subscriptions', '7001'];
    const made = await succeedBeside(['key', 'create', '--data', data, '--name', 'mine', ...own, '--json']);
    const { key: ownKey } = JSON.parse(made.stdout);
    assert.ok((await follow(readerOf(url, ownKey), fiveMinutesAgo())).rows.length > 0);

    const moved = await succeedBeside(['lab', 'clock', '+1h', '--data', data]);
    const aheadMs = Date.parse(JSON.parse(moved.stdout).now) - Date.now();
    assert.ok(Math.abs(aheadMs - 3_600_000) < 60_000, `${aheadMs} ms ahead`);
    const exam = runProgram(['lab', 'exam', '--data', data, '--patience', '1', '--json']);
    assert.equal(await exam.ended, 1, 'no client was there');
    assert.deepEqual([JSON.parse(exam.stdout()).passed, JSON.parse(exam.stdout()).requests], [false, 0]);
    await stop();

    const again = await startDemonstration(data);
    const old = await readerOf(again.shown.url, all.key).get(`${CHANGES}?${fiveMinutesAgo()}`);
    assert.equal(old.status, 401, 'the keys of the previous run must be gone');
    const anew = await follow(readerOf(again.shown.url, again.shown.keys[0]?.key ?? ''), fiveMinutesAgo());
    assert.ok(anew.rows.length > 5000);
    await again.stop();
  }));

test('stops at once while it reads its first day', () =>
  inFolder(async (folder) => {
    const run = runProgram(['demo', '--data', join(folder, 'demo'), '--port', '0']);
    await run.url();
    assert.equal(await run.stop(), 0);
    assert.equal(run.stdout(), '');
  }));
