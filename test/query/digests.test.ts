/** Digests of the pages of a period (GET /v1/digests). */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setKey } from '../../src/auth/keys.ts';
import { DIGESTS_MAX } from '../../src/limits/contract-limits.ts';
import { formatMs } from '../../src/time.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';

const ROWS = 50;
let server: TestServer;
let key: string;
let keyId: string;

before(async () => {
  server = await startTestServer({ base_url: 'https://api.example/ww', requests_per_minute: 100_000 });
  const rows = Array.from({ length: ROWS }, (_, at) => ({
    content_type: 'text' as const,
    version: 1,
    row: {
      source_internal_id: at + 1,
      // Several in the same second, so that their order depends on their ids.
      first_detected_at: formatMs(NOW_MS - Math.floor(at / 4) * 3_600_000 - 3_600_000),
      article_headline: '},{"id":"x","last_scored_at":"2026-11-21T10:10:00Z" Größe',
    },
  }));
  const photo = { source_internal_id: 601 };
  server.store.deliver([...rows, { content_type: 'image', version: 1, row: photo }], NOW_MS - 1000);
  ({ key, id: keyId } = server.makeKey());
});
after(() => server.close());

interface Digest {
  readonly cursor: string | null;
  readonly rows: number;
  readonly last: { readonly id: string; readonly first_detected_at: string };
  readonly digest: string;
}

interface Page<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
  readonly has_more: boolean;
}

async function ask(path: string, withKey = key) {
  const response = await server.get(path, withKey);
  const text = await response.text();
  return { status: response.status, headers: response.headers, text };
}

async function digests(query: string): Promise<Page<Digest>> {
  const { status, text } = await ask(`/v1/digests?${query}`);
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

/** The digest as specified in the OpenAPI document: each row as received, without the excluded members. */
function expectedDigest(rows: readonly Record<string, unknown>[]): string {
  const texts = rows.map(({ last_scored_at: _, exported_at: __, ...row }) =>
    JSON.stringify(row).replace('"image_url":"https://api.example/ww', '"image_url":"'),
  );
  return sha256(texts.map(sha256).join(''));
}

const DAYS = 'from=2026-11-20&to=2026-11-21';

for (const query of [
  `${DAYS}&content_type=text`,
  `${DAYS}&content_type=text&sort=first_detected_at`,
  `${DAYS}&content_type=text&fields=strength.score,last_scored_at`,
  `${DAYS}&min_score=1`,
  `${DAYS}&content_type=image`,
])
  test(`an entry is the digest of the page at its cursor: ${query}`, async () => {
    let path: string | null = `${query}&limit=7`;
    let expectedCursor: string | null = null;
    let seen = 0;
    while (path !== null) {
      const page = await digests(path);
      for (const { cursor, rows, last, digest } of page.data) {
        assert.equal(cursor, expectedCursor);
        const { text } = await ask(
          `/v1/detections?${query}&limit=7${cursor === null ? '' : `&cursor=${cursor}`}`,
        );
        const { data, next_cursor } = JSON.parse(text);
        assert.deepEqual([data.length, data.at(-1).id], [rows, last.id]);
        if (!query.includes('fields')) assert.equal(data.at(-1).first_detected_at, last.first_detected_at);
        assert.equal(digest, expectedDigest(data));
        expectedCursor = next_cursor;
        seen += rows;
      }
      path = page.next_cursor === null ? null : `${query}&limit=7&cursor=${page.next_cursor}`;
    }
    const expected = query.includes('image') ? 1 : query.includes('text') ? ROWS : ROWS + 1;
    assert.equal(seen, expected);
  });

test('a rescore in place changes no digest, and any other change does', async () => {
  const query = `${DAYS}&content_type=text`;
  const [first] = (await digests(query)).data;
  const db = server.store.writer;
  const [row] = db.prepare<[], { place: number; body: string }>('SELECT place, body FROM stream_row').all();
  assert.ok(row !== undefined);
  const rescored = row.body
    .replace('"event":"created",', '')
    .replace(/("(?:last_scored_at|exported_at)":)"[^"]*"/g, '$1"2026-11-21T11:59:00Z"');
  db.prepare('INSERT INTO rescored VALUES (?, ?)').run(row.place, rescored);
  const { text } = await ask(`/v1/detections?${query}&limit=1000`);
  assert.match(text, /"last_scored_at":"2026-11-21T11:59:00Z"/);
  assert.deepEqual((await digests(query)).data[0], first);
  db.prepare('UPDATE rescored SET body = ?').run(rescored.replace('Größe', 'Grösse'));
  assert.notEqual((await digests(query)).data[0]?.digest, first?.digest);
  db.prepare('DELETE FROM rescored').run();
});

test('a response has a bounded number of digests, and a link to the next', async () => {
  const query = `${DAYS}&content_type=text&limit=1`;
  const { headers, text } = await ask(`/v1/digests?${query}`);
  const page: Page<Digest> = JSON.parse(text);
  assert.deepEqual([page.data.length, page.has_more], [DIGESTS_MAX, true]);
  assert.match(
    `${headers.get('link')}`,
    new RegExp(`^<https://api\\.example/ww/v1/digests\\?.*cursor=${page.next_cursor}>; rel="next"$`),
  );
  const next = await digests(`${query}&cursor=${page.next_cursor}`);
  assert.equal(next.data[0]?.cursor, page.next_cursor);
  assert.notEqual(next.data[0]?.last.id, page.data.at(-1)?.last.id);
});

test('a digest counts as one row; once the allowance is used up, there are none', async () => {
  const usedBefore = server.dailyRows.used('key', keyId, NOW_MS);
  await digests(`${DAYS}&content_type=text&limit=10`);
  assert.equal(server.dailyRows.used('key', keyId, NOW_MS) - usedBefore, ROWS / 10);
  setKey(server.access, keyId, { daily_rows: 1 });
  assert.equal((await ask(`/v1/digests?${DAYS}`)).status, 429);
  setKey(server.access, keyId, { daily_rows: null });
});

test('invalid parameters and foreign subscriptions are refused as for rows', async () => {
  for (const query of [
    '',
    'from=2026-11-19',
    `${DAYS}&limit=1001`,
    `${DAYS}&digest=1`,
    `${DAYS}&subscription_id=9009`,
    'from=2026-09-01&to=2026-11-20',
    `${DAYS}&cursor=x`,
  ]) {
    const [rows, other] = [await ask(`/v1/detections?${query}`), await ask(`/v1/digests?${query}`)];
    assert.equal(other.status, 400, query);
    assert.equal(JSON.parse(other.text).detail, JSON.parse(rows.text).detail);
  }
  assert.equal(
    (await ask(`/v1/digests?${DAYS}`, server.makeKey({ scopes: ['reports:read'] }).key)).status,
    403,
  );
  assert.equal((await ask(`/v1/digests?${DAYS}`, 'none')).status, 401);
});
