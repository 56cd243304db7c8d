/** Which periods are valid, and how requests for them are parsed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContentType } from '../../src/detection/content-type.ts';
import { readParameters } from '../../src/query/parameters.ts';
import { requireFewShards, resolvePeriod, wholeSeconds } from '../../src/query/period.ts';
import { PERIOD_PARAMETERS, type PeriodReader, readPeriodRequest } from '../../src/query/period-request.ts';
import { zoneId } from '../../src/time-zone.ts';
import { words } from '../support/words.ts';

const NOW_MS = Date.parse('2026-11-21T12:00:00.500Z');

const parse = (query: string) => readParameters(query, PERIOD_PARAMETERS);
const refused = (run: () => unknown, message: RegExp) =>
  assert.throws(run, { code: 'invalid_request', message });

function resolve(from: string, to: string, zone = 'UTC', nowMs = NOW_MS) {
  const ends = `from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`;
  return resolvePeriod(parse(ends), zoneId(zone), nowMs);
}

const refusedPeriod = (message: RegExp, ...asked: Parameters<typeof resolve>) =>
  refused(() => resolve(...asked), message);

/** The period as the response shows it. */
function shown(from: string, to: string, zone?: string, nowMs = NOW_MS): string {
  const period = wholeSeconds(resolve(from, to, zone, nowMs), nowMs);
  return [period.from, period.to].map((second) => new Date(second * 1000).toISOString()).join(' ');
}

test('dates are whole days of the time zone; from and to of one date are one day', () => {
  assert.equal(shown('2026-11-20', '2026-11-20'), '2026-11-20T00:00:00.000Z 2026-11-21T00:00:00.000Z');
  const kathmandu = shown('2026-11-20', '2026-11-20', 'Asia/Kathmandu');
  assert.equal(kathmandu, '2026-11-19T18:15:00.000Z 2026-11-20T18:15:00.000Z');
});

test('instants have Z or an offset and up to nine fractional digits; a raw + in the offset is accepted', () => {
  const expected = '2026-11-20T08:00:00.000Z 2026-11-20T09:00:00.000Z';
  assert.equal(shown('2026-11-20T08:00:00Z', '2026-11-20T10:00:00+01:00'), expected);
  assert.equal(shown('2026-11-20T08:00:00.000Z', '2026-11-20T10:00:00.000 01:00'), expected);
  assert.equal(shown('2026-11-20T03:00:00-05:00', '2026-11-20T09:00:00Z', 'Europe/Berlin'), expected);
  const raw = parse('from=2026-11-20T08:00:00+00:00&to=2026-11-20');
  assert.deepEqual(raw.from, { kind: 'instant', ms: Date.parse('2026-11-20T08:00:00Z') });
  assert.deepEqual(raw.to, { kind: 'day', day: '2026-11-20' });
});

test('a bound is strictly a date or an instant', () => {
  const others = words('2026-02-30 2026-02-30T00:00:00Z 2026-11-20T08:00:00 1763625600 yesterday 2026-1-1');
  for (const text of ['2026-11-20T08 00:00+01:00', ...others]) {
    refusedPeriod(/^from: must be a date/, text, '2026-11-20');
    refusedPeriod(/^to: must be a date/, '2026-11-19', text);
  }
  refused(() => parse('to=2026-11-20'), /^from: required/);
  refused(() => parse('from=2026-11-20'), /^to: required/);
  refused(() => parse('from=&to=2026-11-20'), /^from: must not be empty/);
  const repeated = () => parse('from=2026-11-20&from=2026-11-20&to=2026-11-20');
  refused(repeated, /^from: must not be repeated/);
});

test('whole seconds cover the same detections as the requested milliseconds', () => {
  const later = shown('2026-11-20T08:00:00.001Z', '2026-11-20T08:00:02.001Z');
  assert.equal(later, '2026-11-20T08:00:01.000Z 2026-11-20T08:00:03.000Z');
  const within = shown('2026-11-20T08:00:00.200Z', '2026-11-20T08:00:00.700Z');
  assert.equal(within, '2026-11-20T08:00:01.000Z 2026-11-20T08:00:01.000Z');
});

test('a future to becomes now, before other checks', () => {
  for (const to of ['2026-11-21', '2027-12-31', '2026-11-21T12:00:00.501Z', '9999-12-31'])
    assert.equal(shown('2026-11-21', to), '2026-11-21T00:00:00.000Z 2026-11-21T12:00:00.000Z', to);
  // The requested period is too long, but not after it is cut at the current time.
  assert.equal(shown('2026-10-22', '9999-12-31').slice(25), '2026-11-21T12:00:00.000Z');
  refusedPeriod(/31 calendar days/, '2026-10-21', '9999-12-31');
  // In Tokyo it is already the next day.
  refusedPeriod(/31/, '2026-10-22', '9999-12-31', 'Asia/Tokyo', Date.parse('2026-11-21T15:00:00.001Z'));
  shown('2026-10-22', '9999-12-31', 'Asia/Tokyo', Date.parse('2026-11-21T15:00:00Z'));
  refusedPeriod(/^to: must be later than from.*counts as now/, '2026-11-22', '2026-11-23');
  refusedPeriod(/^to: must be later than from/, '2026-11-21T12:00:00.500Z', '2026-11-23');
  const now = shown('2026-11-21T12:00:00.499Z', '2026-11-23');
  assert.equal(now, '2026-11-21T12:00:01.000Z 2026-11-21T12:00:01.000Z');
});

test('to must be later than from', () => {
  refusedPeriod(/^to: must be later than from$/, '2026-11-20', '2026-11-19');
  refusedPeriod(/^to: must be later than from$/, '2026-11-20T08:00:00Z', '2026-11-20T08:00:00Z');
  refusedPeriod(/^to: must be later/, '2026-11-20T08:00:00Z', '2026-11-20T09:00:00+01:00');
  refusedPeriod(/^to: must be later/, '2026-11-20', '2026-11-20T00:00:00Z');
  assert.ok(resolve('2026-11-20T23:59:59.999Z', '2026-11-20'));
});

test('a period of dates is at most 31 calendar days, whatever their hours', () => {
  assert.ok(resolve('2026-10-01', '2026-10-31', 'Europe/Berlin'), 'with 31 x 24 hours and one');
  assert.ok(resolve('2026-03-01', '2026-03-31', 'Europe/Berlin'), 'with an hour less');
  refusedPeriod(/^from, to: .*31 calendar days/, '2026-10-01', '2026-11-01');
  // 31 days and an hour less: within the limit for instants, but these are dates.
  refusedPeriod(/31 calendar days/, '2026-03-01', '2026-04-01', 'Europe/Berlin');
});

test('any other period is at most 31 x 24 hours plus one', () => {
  assert.ok(resolve('2026-10-01T00:00:00Z', '2026-11-01T01:00:00Z'));
  refusedPeriod(/31 x 24 hours plus one hour/, '2026-10-01T00:00:00Z', '2026-11-01T01:00:00.001Z');
  const october = resolve('2026-10-01T00:00:00+02:00', '2026-10-31', 'Europe/Berlin');
  assert.ok(october, 'a month whose clocks change');
  refusedPeriod(/31 x 24 hours plus one hour/, '2026-10-01', '2026-11-01T01:00:01Z');
});

test('a shard is a stream on a UTC day that the period touches; 64 are possible', () => {
  requireFewShards(resolve('2026-10-01', '2026-10-31', 'Europe/Berlin'), 2);
  requireFewShards(resolve('2026-11-01', '2026-11-08'), 8);
  requireFewShards(resolve('2026-11-01T00:00:00Z', '2026-11-09T00:00:00Z'), 8);
  const tooMany = (message: RegExp, streams: number, ...asked: Parameters<typeof resolve>) =>
    refused(() => requireFewShards(resolve(...asked), streams), message);
  const detail = /96 stream-days.*narrow the period or the subscriptions$/;
  tooMany(detail, 3, '2026-10-01', '2026-10-31', 'Europe/Berlin');
  tooMany(/72 stream-days/, 8, '2026-11-01T00:00:00Z', '2026-11-09T00:00:00.001Z');
  tooMany(/65 stream-days/, 5, '2026-11-01', '2026-11-13');
  tooMany(/66 stream-days/, 2, '2026-10-01T23:30:00Z', '2026-11-02T00:00:00.001Z');
});

test('sort and time zone accept only their values', () => {
  const period = 'from=2026-11-20&to=2026-11-20';
  const sort = (text: string) => parse(`${period}&sort=${text}`).sort;
  assert.equal(parse(period).sort, 'descending');
  assert.equal(sort('-first_detected_at'), 'descending');
  assert.equal(sort('first_detected_at'), 'ascending');
  for (const text of ['%2Bfirst_detected_at', 'id', 'asc', '-FIRST_DETECTED_AT', 'first_detected_at,id'])
    refused(() => sort(text), /^sort: must be/);
  const zone = (text: string) =>
    parse(`from=2026-11-20T00:00:00Z&to=2026-11-20T01:00:00Z&time_zone=${text}`).time_zone;
  for (const text of ['Europe/Berlin', 'europe/berlin', 'UTC', 'utc', 'Europe/Kyiv', 'Etc/GMT-3'])
    assert.equal(zone(text), text, 'as written');
  for (const text of words('%2B01:00 -03:00 Z BST Europe/Nowhere Berlin Etc/GMT+3 1 local'))
    refused(() => zone(text), /^time_zone: must be/);
  refused(() => zone(''), /^time_zone: must not be empty/);
});

const TYPES: readonly ContentType[] = ['text', 'image'];

function subscription(id: number, types = TYPES, time_zone = 'Europe/Berlin') {
  return { id, content_types: types, time_zone };
}

const ENDS = 'from=2026-11-20&to=2026-11-20';

function request(query: string, subscriptions: PeriodReader['subscriptions'], enabled = TYPES, ends = ENDS) {
  const reader = { account: { id: 'acme' }, subscriptions };
  return readPeriodRequest(`${ends}${query}`, reader, new Set(enabled));
}

test('the time zone is the one given, else that of the only subscription, else UTC', () => {
  const one = [subscription(7001)];
  const two = [subscription(7001), subscription(7002, ['text'], 'Asia/Tokyo')];
  assert.equal(request('', one).resolved_zone, 'Europe/Berlin');
  assert.equal(request('', two).resolved_zone, 'UTC');
  assert.equal(request('&subscription_id=7002', two).resolved_zone, 'Asia/Tokyo');
  assert.equal(request('&subscription_id=7002,7002', two).resolved_zone, 'Asia/Tokyo');
  assert.equal(request('&content_type=image', two).resolved_zone, 'Europe/Berlin', 'only one has images');
  assert.equal(request('&subscription_id=7001,7002', two).resolved_zone, 'UTC');
  assert.equal(request('&subscription_id=7002&content_type=image', two).resolved_zone, 'Asia/Tokyo');
  assert.equal(request('', [...one, subscription(7002, [])]).resolved_zone, 'Europe/Berlin');
  assert.equal(request('&time_zone=asia/tokyo', one).resolved_zone, 'asia/tokyo');
  assert.equal(request('', one, ['text']).resolved_zone, 'Europe/Berlin');
  assert.equal(request('', [], ['text']).resolved_zone, 'UTC');
  const photos = subscription(7002, ['image'], 'Asia/Tokyo');
  const { resolved_zone } = request('', [...one, photos], ['text']);
  assert.equal(resolved_zone, 'Europe/Berlin', 'photos are switched off');
});

test('at most four subscriptions are read, named or not', () => {
  const photos = [2, 3, 4, 5].map((id) => subscription(id, ['image']));
  const { streams } = request('', [subscription(1), ...photos], ['text']);
  assert.equal(streams.length, 1, 'photos are switched off');
  const five = [1, 2, 3, 4, 5].map((id) => subscription(id, id === 5 ? ['text'] : TYPES));
  refused(() => request('', five), /^subscription_id: the request covers 5 subscriptions; at most 4/);
  const named = () => request('&subscription_id=1,2,3,4,5', five);
  refused(named, /^subscription_id: must not have more than 4 values/);
  assert.equal(request('&subscription_id=1,2,3,4,4,1', five).streams.length, 8);
  assert.equal(request('&content_type=image', five).streams.length, 4);
  assert.equal(request('', five.slice(1)).streams.length, 7);
});

test('limit is at most 1000, and 200 over more than one stream', () => {
  const one = [subscription(7001, ['text'])];
  const two = [subscription(7001)];
  assert.equal(request('&limit=1000', one).limit, 1000);
  assert.equal(request('&limit=1000', two).limit, 200);
  assert.equal(request('&limit=201', two).limit, 200);
  assert.equal(request('&limit=7', two).limit, 7);
  assert.equal(request('&limit=1000&content_type=text', two).limit, 1000);
  assert.equal(request('', two).limit, 100);
});

test('the hash of a request is stable across versions, so cursors stay valid', () => {
  const query =
    '&time_zone=europe/berlin&sort=first_detected_at&subscription_id=7002,7001&content_type=text&publisher_id=6,5&exclude_publisher_id=7&domain=b.example,A.example&exclude_domain=x.example&min_band=low&band=max,high&min_score=50&print=false&source_id=urn:x&article_id=456';
  const both = [subscription(7001), subscription(7002)];
  const { hash } = request(query, both, TYPES, 'from=2026-11-01&to=2026-11-20T10:00:00Z');
  assert.equal(hash, '14a8779c4a0f08c83b1e190f6175f92b');
});
