/** The requests of `wirewatch pull`: only the chosen streams, and for a full copy an order that loses nothing. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { pulled, subscription, withService } from '../support/pull.ts';

describe('pull of some streams', () => {
  /** The parameters of each request that choose streams. */
  const chosen = (requests: string[]) =>
    requests.map((url) => {
      const { pathname, searchParams } = new URL(url, 'http://x');
      return [pathname, searchParams.get('subscription_id'), searchParams.get('content_type')].join(' ');
    });
  const three = [7001, 7002, 7003].map((id) => subscription(id, 'text', 'image'));
  const twelve = Array.from({ length: 12 }, (_, index) => subscription(7001 + index, 'text', 'image'));

  for (const format of ['sqlite', 'ndjson']) {
    test(`every request names them, and the copy continues with them only (${format})`, () =>
      withService(three, [], async (to, folder, requests) => {
        const args = [...to, '--into', join(folder, 'copy'), '--format', format];
        const some = ['--subscription', '7002,7001', '--content-type', 'text'];
        const full = await pulled([...args, '--full', ...some]);
        assert.equal(full.code, 0, full.stderr);
        const stream = '/v1/detections/changes 7001,7002 text';
        assert.deepEqual([...new Set(chosen(requests))].sort(), [
          '/v1/detections 7001 text',
          '/v1/detections 7002 text',
          stream,
        ]);
        for (const same of [[], some, ['--subscription', '7001,7002']]) {
          requests.length = 0;
          assert.equal((await pulled([...args, ...same])).code, 0);
          assert.deepEqual(chosen(requests), [stream]);
        }
        requests.length = 0;
        for (const other of [
          ['--subscription', '7001'],
          ['--content-type', 'image'],
        ]) {
          const { code, stderr } = await pulled([...args, ...other]);
          assert.equal(code, 2, stderr);
          assert.match(stderr, /was started with --subscription 7001,7002 --content-type text\. Leave/);
        }
        assert.deepEqual(requests, []);
      }));

    test(`a copy started by an earlier version has all of them, or is refused (${format})`, () =>
      withService(three, [], async (to, folder, requests) => {
        const into = join(folder, 'copy');
        const args = [...to, '--into', into, '--format', format];
        assert.equal((await pulled(args)).code, 0);
        if (format === 'ndjson') {
          const { selection: _, ...place } = JSON.parse(readFileSync(`${into}.place`, 'utf8'));
          writeFileSync(`${into}.place`, JSON.stringify(place));
        } else {
          edit(into, 'PRAGMA user_version = 1');
          const { code, stderr } = await pulled(args);
          assert.deepEqual([code, /was created by another version.*--into/.test(stderr)], [1, true], stderr);
          return;
        }
        const { code, stderr } = await pulled([...args, '--subscription', '7001']);
        assert.equal(code, 2, stderr);
        assert.match(stderr, /was started without --subscription and --content-type/);
        requests.length = 0;
        assert.equal((await pulled(args)).code, 0);
        assert.deepEqual(chosen(requests), ['/v1/detections/changes  ']);
      }));
  }

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
    writeFileSync(`${into}.place`, JSON.stringify({ bytes: 0, head: '', cursor: 'months-old', walk }));
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
