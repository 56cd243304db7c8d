/** The requests of `wirewatch pull`: for a full copy, an order that loses nothing. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { pulled, subscription, withService } from '../../support/pull.ts';

describe('pull of several streams', () => {
  const three = [7001, 7002, 7003].map((id) => subscription(id, 'text', 'image'));
  const twelve = Array.from({ length: 12 }, (_, index) => subscription(7001 + index, 'text', 'image'));

  test('a copy of another version is refused', () =>
    withService(three, [], async (to, folder) => {
      const into = join(folder, 'copy');
      assert.equal((await pulled([...to, '--into', into])).code, 0);
      edit(into, 'PRAGMA user_version = 1');
      const { code, stderr } = await pulled([...to, '--into', into]);
      assert.deepEqual([code, /was created by another version.*--into/.test(stderr)], [1, true], stderr);
    }));

  test('a copy with a damaged position is refused', () =>
    withService(three, [], async (to, folder) => {
      const args = [...to, '--into', join(folder, 'copy.db')];
      assert.equal((await pulled(args)).code, 0);
      edit(join(folder, 'copy.db'), "UPDATE state SET notes = '{}'");
      const { code, stderr } = await pulled(args);
      assert.deepEqual(
        [code, /does not contain the position of a copy.*--into/.test(stderr)],
        [1, true],
        stderr,
      );
    }));

  test('20 streams are accepted', () =>
    withService(twelve.slice(0, 10), [], async (to, folder) => {
      const { code, stderr } = await pulled([...to, '--into', join(folder, 'copy.db')]);
      assert.equal(code, 0, stderr);
    }));
});

test('a full copy starts the stream at as_of first, and then follows it by cursor', () =>
  withService([subscription(7001, 'text')], [], async (to, folder, requests) => {
    const into = join(folder, 'copy.db');
    const [fromMs, toMs] = [Date.now() - 62_000, Date.now()];
    const { code, stderr } = await pulled([...to, '--into', into, '--full']);
    assert.equal(code, 0, stderr);
    const urls = requests.map((url) => new URL(url, 'http://x'));
    assert.deepEqual(
      urls.map(({ pathname, searchParams }) => `${pathname} ${searchParams.get('limit')}`),
      ['/v1/detections 1', '/v1/detections/changes 1', '/v1/detections 1000', '/v1/detections/changes 1000'],
    );
    const sinceMs = Date.parse(urls[1]?.searchParams.get('since') ?? '');
    assert.ok(sinceMs >= fromMs && sinceMs <= toMs, "by the server's clock if there is no as_of");
    assert.deepEqual(
      [urls[3]?.searchParams.get('cursor'), urls[3]?.searchParams.get('since')],
      ['abc', null],
    );
  }));

for (const format of ['sqlite', 'ndjson']) {
  const firstOf = (requests: string[]) => {
    const { pathname, searchParams } = new URL(requests.splice(0)[0] ?? '', 'http://x');
    return `${pathname} ${searchParams.get('since') ?? ''}`;
  };
  const isFull = '/v1/detections ';

  test(`--full on a copy that began without it is refused, until its files are deleted (${format})`, () =>
    withService([subscription(7001, 'text')], [], async (to, folder, requests) => {
      const args = [...to, '--into', join(folder, 'copy'), '--format', format];
      const begun = await pulled(args);
      const advised = (text: string) => (/ delete (\S+)(?: and (\S+\.place))? /.exec(text) ?? []).slice(1);
      assert.match(begun.stdout, /run the command again with --full\.\n$/);
      requests.length = 0;
      const { code, stderr } = await pulled([...args, '--full']);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /was started without --full\. Leave out --full to continue it\./);
      assert.deepEqual(requests, []);
      assert.deepEqual(advised(stderr), advised(begun.stdout));
      for (const file of advised(stderr)) if (file !== undefined) rmSync(file);
      for (const turn of [1, 2]) assert.equal((await pulled([...args, '--full'])).code, 0, `${turn}`);
      assert.equal(firstOf(requests), isFull);
    }));

  test(`a copy that was stopped before its first page begins as it was to begin (${format})`, () =>
    withService([subscription(7001, 'text')], [], async (to, folder, requests, responses) => {
      const args = [...to, '--into', join(folder, 'copy'), '--format', format];
      const since = '2026-11-01T00:00:00.000Z';
      for (const [options, expected] of [
        [['--since', since], `/v1/detections/changes ${since}`],
        [['--full'], isFull],
      ] as const) {
        responses.push([403, {}]);
        assert.equal((await pulled([...args, ...options])).code, 1);
        requests.length = 0;
        responses.push([403, {}]);
        assert.equal((await pulled(args)).code, 1);
        assert.equal(firstOf(requests), expected);
      }
      const { stdout } = await pulled(args);
      assert.doesNotMatch(stdout, /from now on/);
    }));
}

test('a copy from now on says so, until it has its first page', () =>
  withService([subscription(7001, 'text')], [[403, {}]], async (to, folder) => {
    const args = [...to, '--into', join(folder, 'copy.db')];
    assert.equal((await pulled(args)).code, 1);
    assert.match((await pulled(args)).stdout, /This new copy starts with changes from now on/);
    assert.doesNotMatch((await pulled(args)).stdout, /from now on/);
  }));

test('an interrupted full copy continues without a stream that the key has lost', () =>
  withService([subscription(7001, 'text')], [], async (to, folder, requests) => {
    const into = join(folder, 'copy.ndjson');
    const period = { from: '2026-11-01', to: '2026-11-20' };
    const steps = [
      { subscription_id: 7009, content_type: 'text', ...period },
      { subscription_id: 7001, content_type: 'image', ...period },
      { subscription_id: 7001, content_type: 'text', ...period },
    ];
    const walk = { steps, cursor: 'of-the-first' };
    writeFileSync(into, '');
    writeFileSync(
      `${into}.place`,
      JSON.stringify({ bytes: 0, cursor: 'months-old', walk, streams: null, since: null }),
    );
    const { code, stderr } = await pulled([...to, '--into', into, '--format', 'ndjson']);
    assert.equal(code, 0, stderr);
    const [first = '', ...rest] = requests;
    assert.match(first, /^\/v1\/detections\?subscription_id=7001&content_type=text&/);
    assert.doesNotMatch(first, /cursor/);
    assert.deepEqual(rest, ['/v1/detections/changes?cursor=months-old&limit=1000']);
  }));

function edit(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}
