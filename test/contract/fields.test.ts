/**
 * Every field of a detection, one test each: its value for a row with all columns, and for one with only the required
 * columns, for stories and photos, on the stream, in a period and by id.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatMs, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';

const ABSENT = Symbol('absent');
/** Stands for the time of ingest: any whole second near the present. */
const INGESTED = Symbol('ingested');
type Expected = unknown;

const SHARED = {
  source_id: 'urn:newsml:agency.example:1',
  source_published_at: '2026-10-01T12:00:00.999+02:00',
  exported_at: '2026-10-02T00:00:00Z',
  first_detected_estimated: true,
  article_url: 'https://news.example.co.uk/a?b=c#d',
  article_published_at: '2026-10-01T11:00:00Z',
  article_headline: 'Ünïcode “headline”',
  article_publisher_id: 77,
  article_publisher_name: '  The Example  ',
};

const startMs = Date.now();
const appliance = await sharedAppliance({ WIREWATCH_SERVER_BASE_URL: 'https://api.example/ww/' });
const windowMs = nextWindowMs();
const windowStart = `${new Date(windowMs).toISOString().slice(0, 19)}Z`;
/** In the order of the expectations: a story with all columns and with the required ones, then a photo with both. */
const ROWS = [
  newRow({
    ...SHARED,
    source_language: 'de',
    source_syndicated: true,
    source_sentences: 12,
    strength_score: 75,
    strength_matched_sentences: 9,
    strength_article_sentences: 30,
    article_print: false,
  }),
  newRow({ subscription_id: 7002, source_internal_id: 0, strength_score: 24.9 }),
  newRow({
    ...SHARED,
    strength_score: 59.5,
    source_image_url: 'https://photos.agency.example/1.jpg',
    source_origin_url: 'https://origin.example/1',
    article_image_url: 'https://cdn.example.net/x.png',
  }),
  newRow({ strength_score: 60 }),
];
const IDS = ROWS.map((row, at) => idOf(row, at < 2 ? 'newswire' : 'imagewire'));
for (const [exportName, rows] of [
  ['newswire', ROWS.slice(0, 2)],
  ['imagewire', ROWS.slice(2)],
] as const) {
  const line = await appliance.dropped(fileName(exportName, windowMs), ndjson(rows));
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
}
const read = async (path: string) => JSON.parse(await (await appliance.get(path)).text());
const since = new Date(startMs - MINUTE_MS).toISOString();
const stream = await read(`/v1/detections/changes?since=${since}`);
const period = await read(`/v1/detections?from=${windowStart}&to=${new Date().toISOString()}`);
const pick = (data: Record<string, unknown>[]) =>
  IDS.map((id) => data.find((detection) => detection.id === id) ?? {});
/** The four detections, by endpoint. */
const shown = new Map<string, Record<string, unknown>[]>([
  ['stream', pick(stream.data)],
  ['period', pick(period.data)],
  ['alone', await Promise.all(IDS.map((id) => read(`/v1/detections/${id}`)))],
]);

/** In the order of the contract. */
const paths: string[] = [];

/** @param expected one value for each row, or a function of the row */
function fieldTest(path: string, ...expected: Expected[]): void {
  paths.push(path);
  test(path, () => {
    assert.equal(expected.length, ROWS.length);
    for (const [endpoint, detections] of shown) {
      for (const [at, detection] of detections.entries()) {
        const what = `${endpoint}, ${IDS[at]}`;
        const value = valueAt(detection, path);
        const wanted = expected[at];
        if (path === 'event' && endpoint !== 'stream') assert.equal(value, ABSENT, what);
        else if (wanted === INGESTED) assertIngested(value, what);
        else assert.deepEqual(value, typeof wanted === 'function' ? wanted(ROWS[at], IDS[at]) : wanted, what);
      }
    }
  });
}

/** The value at a path; null if an object on the path is null. */
function valueAt(detection: Record<string, unknown>, path: string): unknown {
  let value: unknown = detection;
  for (const name of path.split('.')) {
    if (value === null) return null;
    if (typeof value !== 'object' || !Object.hasOwn(value, name)) return ABSENT;
    value = Object.entries(value).find(([member]) => member === name)?.[1];
  }
  return value;
}

function assertIngested(value: unknown, what: string): void {
  assert.match(String(value), /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/, what);
  const ms = Date.parse(String(value));
  assert.ok(ms >= startMs - 1000 && ms <= Date.now(), `${what}: ${value}`);
}

const all = (value: unknown): Expected[] => [value, value, value, value];
const member = (name: string) => (row: Row) => row[name];

fieldTest('id', ...all((_row: Row, id: string) => id));
fieldTest('version', ...all(1));
fieldTest('event', ...all('created'));
fieldTest('content_type', 'text', 'text', 'image', 'image');
const [SENTENCE, IMAGE] = ['sentence_fingerprint', 'image_fingerprint'];
fieldTest('match_type', SENTENCE, SENTENCE, IMAGE, IMAGE);
fieldTest('subscription_id', 7001, 7002, 7001, 7001);
fieldTest('first_detected_at', ...all(member('first_detected_at')));
fieldTest('first_detected_estimated', true, false, true, false);
fieldTest('last_scored_at', ...all(member('last_scored_at')));
fieldTest('exported_at', '2026-10-02T00:00:00Z', INGESTED, '2026-10-02T00:00:00Z', INGESTED);
fieldTest('source.id', SHARED.source_id, null, SHARED.source_id, null);
fieldTest('source.internal_id', 501, 0, 501, 501);
fieldTest('source.published_at', '2026-10-01T10:00:00Z', null, '2026-10-01T10:00:00Z', null);
fieldTest('source.language', 'de', null, ABSENT, ABSENT);
fieldTest('source.syndicated', true, null, ABSENT, ABSENT);
fieldTest('source.sentences', 12, null, ABSENT, ABSENT);
paths.push('source.image_url');
test('source.image_url', async () => {
  for (const [endpoint, detections] of shown) {
    const [text, least, given, own] = detections.map((detection) => valueAt(detection, 'source.image_url'));
    assert.deepEqual([text, least], [ABSENT, ABSENT], endpoint);
    assert.equal(given, 'https://photos.agency.example/1.jpg', endpoint);
    assert.match(String(own), /^https:\/\/api\.example\/ww\/photos\/501\?signature=[\w-]+$/, endpoint);
  }
  // It serves the photo once that exists, and never expires.
  const url = String(valueAt(shown.get('alone')?.[3] ?? {}, 'source.image_url'));
  const address = url.replace('https://api.example/ww', appliance.serving().url);
  assert.equal((await fetch(address)).status, 404);
  mkdirSync(join(appliance.data, 'photos'));
  writeFileSync(join(appliance.data, 'photos', '501.webp'), 'a photo');
  const photo = await fetch(address);
  assert.deepEqual([photo.headers.get('content-type'), await photo.text()], ['image/webp', 'a photo']);
});
fieldTest('source.origin_url', ABSENT, ABSENT, 'https://origin.example/1', null);
fieldTest('strength.score', 75, 24.9, 59.5, 60);
fieldTest('strength.band', 'high', 'off', 'medium', 'high');
fieldTest('strength.matched_sentences', 9, null, ABSENT, ABSENT);
fieldTest('strength.article_sentences', 30, null, ABSENT, ABSENT);
fieldTest('article.id', ...all(member('article_id')));
fieldTest('article.url', SHARED.article_url, null, SHARED.article_url, null);
fieldTest('article.domain', 'example.co.uk', null, 'example.co.uk', null);
fieldTest('article.published_at', '2026-10-01T11:00:00Z', null, '2026-10-01T11:00:00Z', null);
fieldTest('article.headline', SHARED.article_headline, null, SHARED.article_headline, null);
fieldTest('article.publisher', { id: 77, name: 'The Example' }, null, { id: 77, name: 'The Example' }, null);
fieldTest('article.publisher.id', 77, null, 77, null);
fieldTest('article.publisher.name', 'The Example', null, 'The Example', null);
fieldTest('article.print', false, false, ABSENT, ABSENT);
fieldTest('article.image_url', ABSENT, ABSENT, 'https://cdn.example.net/x.png', null);
fieldTest('customer', ...all(null));
fieldTest('classification', ...all(null));

/** Fields without a value here. */
const RESERVED: Readonly<Record<string, string>> = { customer: 'boolean', classification: 'string' };

function typeOf(path: string, values: readonly unknown[]): string | undefined {
  const [value, ...others] = values.filter((one) => one !== null);
  if (value === undefined) return RESERVED[path];
  if (typeof value === 'number') return [value, ...others].every(Number.isInteger) ? 'integer' : 'number';
  return /^\d{4}-\d\d-\d\dT/.test(String(value)) ? 'timestamp' : typeof value;
}

test('the schema lists every field, in order, with the type, the nulls and the content types that are served', async () => {
  const { schema_version, fields, ...more } = await read('/v1/schema/detection');
  assert.deepEqual([schema_version, more], ['v1', {}]);
  const served = paths.map((path) => {
    const values = pick(stream.data).map((detection) => valueAt(detection, path));
    const content_types = ['text', 'image'].filter((_, at) => values[2 * at] !== ABSENT);
    const present = values.filter((value) => value !== ABSENT);
    return { path, type: typeOf(path, present), nullable: present.includes(null), content_types };
  });
  const said = ({ path, type, nullable, content_types }: (typeof served)[number]) =>
    [path, type, nullable, content_types].join(' ');
  assert.deepEqual(fields.map(said), served.filter(({ path }) => path !== 'article.publisher').map(said));
});

test('as_of is the earliest newest_done of health for the content types read', async () => {
  const laterMs = nextWindowMs();
  const line = await appliance.dropped(fileName('newswire', laterMs), '');
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
  const { exports } = await read('/v1/health');
  const newest = [exports.newswire.newest_done, exports.imagewire.newest_done];
  assert.deepEqual(newest, [formatMs(laterMs + WINDOW_MS), formatMs(Date.parse(windowStart) + WINDOW_MS)]);
  for (const list of [
    `/v1/detections/changes?since=${new Date(startMs).toISOString()}`,
    `/v1/detections?from=${windowStart}&to=${new Date().toISOString()}`,
  ]) {
    assert.equal((await read(list)).as_of, newest[1], list);
    assert.equal((await read(`${list}&content_type=text`)).as_of, newest[0], list);
    assert.equal((await read(`${list}&content_type=image`)).as_of, newest[1], list);
  }
});
