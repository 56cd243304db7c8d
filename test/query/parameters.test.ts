/** Strict parameters, case by case. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseChangesParameters } from '../../src/query/changes-parameters.ts';
import { VIEW_PARAMETERS } from '../../src/query/filters.ts';
import { readParameters } from '../../src/query/parameters.ts';
import { parseFields, projected } from '../../src/query/projection.ts';
import { selectStreams } from '../../src/query/streams.ts';
import { parseDomain } from '../../src/query/value-kinds.ts';
import { Refused } from '../../src/refused.ts';
import { words } from '../support/words.ts';

const NOW_MS = Date.parse('2026-11-21T12:00:00.500Z');
const OLDEST_MS = NOW_MS - 31 * 24 * 3_600_000;

function parse(query: string) {
  return parseChangesParameters(query, NOW_MS, () => ({ position: 17, epoch: 3 }));
}

/** Adds a cursor, so that only the tested parameter can be wrong. */
function parseFilters(query: string) {
  return parse(`cursor=c&${query}`).filters;
}

function refusal(detail: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof Refused);
    assert.equal(error.code, 'invalid_request');
    assert.match(error.message, detail);
    return true;
  };
}

const REFUSED: readonly [query: string, detail: RegExp][] = [
  ['', /since, cursor: one of them is required/],
  ['since=2026-11-21T10:00:00Z&cursor=c', /since, cursor: mutually exclusive/],
  ['cursor=c&limti=1', /unknown parameter "limti"/],
  ['cursor=c&=1', /unknown parameter ""/],
  ['cursor=c&__proto__=1', /unknown parameter "__proto__"/],
  ['cursor=c&toString=1', /unknown parameter "toString"/],
  [`cursor=c&${'x'.repeat(5000)}=1`, /^unknown parameter "x{60}" …$/],
  ['cursor=c&limit=', /limit: must not be empty/],
  ['cursor=c&limit', /limit: must not be empty/],
  ['cursor=c&limit=1&limit=1', /limit: must not be repeated/],
  ['cursor=c&cursor=c', /cursor: must not be repeated/],
  ['cursor=c&fields=id&fields=id', /fields: must not be repeated/],
  ['cursor=c&source_id=%', /percent-encoded/],
  ['cursor=c&source_id=%zz', /percent-encoded/],
  ['cursor=c&source_id=%ff', /percent-encoded/],
  ['cursor=c&%c3=1', /percent-encoded/],
  ...['0', '1001', '01', '+1', '%2B1', '-1', '1.0', '1e2', '0x1', ' 1', '1%00', '9'.repeat(40), 'x'].map(
    (limit): [string, RegExp] => [`cursor=c&limit=${limit}`, /limit: must be an integer from 1 to 1000/],
  ),
  ['cursor=c&subscription_id=1,', /subscription_id: must not contain an empty value/],
  ['cursor=c&subscription_id=,1', /subscription_id: must not contain an empty value/],
  ['cursor=c&subscription_id=1,,2', /subscription_id: must not contain an empty value/],
  ['cursor=c&subscription_id=1&subscription_id=', /subscription_id: must not/],
  ['cursor=c&subscription_id=0', /subscription_id: must be an integer from 1/],
  ['cursor=c&subscription_id=1000000000000000', /subscription_id: must be/],
  ['cursor=c&subscription_id=1,2,3&subscription_id=4,5', /subscription_id: must not have more than 4 values/],
  ['cursor=c&content_type=Text', /content_type: must be text or image/],
  ['cursor=c&content_type=text,image', /content_type: must be/],
  [`cursor=c&publisher_id=${numbers(51)}`, /^publisher_id: must not have more than 50 values/],
  [`cursor=c&exclude_publisher_id=${numbers(51)}`, /^exclude_publisher_id: must not have more than 50/],
  [`cursor=c&domain=${domains(21)}`, /^domain: must not have more than 20/],
  [`cursor=c&exclude_domain=${domains(21)}`, /^exclude_domain: must not have more than 20/],
  ['cursor=c&domain=https://example.com/x', /domain: must be a domain/],
  ['cursor=c&min_band=strong', /min_band: must be off, low, medium, high or max/],
  ['cursor=c&min_band=low,high', /min_band: must be/],
  ['cursor=c&band=low,LOW', /band: must be/],
  ['cursor=c&min_score=101', /min_score: must be an integer from 0 to 100/],
  ['cursor=c&min_score=49.5', /min_score/],
  ['cursor=c&print=1', /print: must be true or false/],
  ['cursor=c&print=TRUE', /print/],
  [`cursor=c&source_id=${'x'.repeat(201)}`, /source_id: must not exceed 200 characters/],
  ['cursor=c&article_id=0', /article_id: must be an integer from 1/],
  ['cursor=c&article_id=1,2', /article_id/],
  ['cursor=c&fields=id,', /fields: must not contain an empty value/],
  ['cursor=c&fields=id,nope', /fields: unknown path "nope"/],
  ['cursor=c&fields=article.', /fields: unknown path/],
  // A secret in the wrong parameter is not repeated.
  ['cursor=c&fields=Bearer%20sk0123456789abcdef', /fields: unknown path "Bearer \[redacted\]"/],
  [
    'cursor=c&fields=ww_live_abcdefghij23_0123456789',
    /fields: unknown path "ww_live_abcdefghij23_\[redacted\]"/,
  ],
  [`cursor=c&fields=id,sk${'0a1b2c3d'.repeat(8)}`, /fields: unknown path "\[redacted\]"/],
  [`cursor=c&${'0a1b2c3d'.repeat(8)}=1`, /unknown parameter "\[redacted\]"/],
  ['cursor=c&fields=__proto__', /fields: unknown path/],
  ['cursor=c&fields=article.publisher.nope', /fields: unknown path/],
  ['cursor=c&schema_version=v2', /schema_version: must be v1/],
  ...[
    '2026-11-21 10:00:00Z',
    ...words(`
      2026-02-30T00:00:00Z 2026-11-21 2026-11-21T10:00:00 2026-11-21T10:00Z 2026-11-21T10:00:00.Z
      2026-11-21T10:00:00.1234567890Z 2026-11-21T10:00:00%2B0100 2026-11-21+10:00:00Z 2026-11-21T24:00:00Z
      2026-11-21T10:00:00%2B24:00 1700000000`),
  ].map((since): [string, RegExp] => [`since=${since}`, /since: must be an ISO 8601 time/]),
  ['since=2026-11-21T12:00:00.501Z', /since: must not be in the future/],
  [`since=${new Date(OLDEST_MS - 1).toISOString()}`, /since: must be within the last 31 days/],
];

test('invalid values are refused, and the detail names the parameter', () => {
  for (const [query, detail] of REFUSED) assert.throws(() => parse(query), refusal(detail), query);
});

const SINCE: readonly [text: string, expected: string][] = [
  ['2026-11-21T10:00:00Z', '2026-11-21T10:00:00.000Z'],
  ['2026-11-21T10:00:00.5Z', '2026-11-21T10:00:00.500Z'],
  ['2026-11-21T12:00:00.500Z', '2026-11-21T12:00:00.500Z'],
  ['2026-11-21T10:00:00%2B01:30', '2026-11-21T08:30:00.000Z'],
  ['2026-11-21T10:00:00+01:30', '2026-11-21T08:30:00.000Z'],
  ['2026-11-21T10:00:00.250+01:30', '2026-11-21T08:30:00.250Z'],
  // Python: datetime.now(timezone.utc).isoformat(), encoded and not.
  ['2026-11-21T10:00:00.250999%2B00:00', '2026-11-21T10:00:00.250Z'],
  ['2026-11-21T10:00:00.250999+00:00', '2026-11-21T10:00:00.250Z'],
  ['2026-11-21T10:00:00.123456789+01:30', '2026-11-21T08:30:00.123Z'],
  ['2026-11-21t10:00:00z', '2026-11-21T10:00:00.000Z'],
  ['2026-11-21T05:00:00-05:00', '2026-11-21T10:00:00.000Z'],
  [new Date(OLDEST_MS).toISOString(), new Date(OLDEST_MS).toISOString()],
];

test('since is an instant with Z or an offset; a raw + in the offset is parsed as +', () => {
  for (const [text, expected] of SINCE) {
    assert.deepEqual(parse(`since=${text}`).start, { kind: 'since', since_ms: Date.parse(expected) }, text);
  }
});

test('lists may be repeated, comma-separated and mixed; duplicates count once', () => {
  assert.deepEqual(parseFilters('publisher_id=3,1&publisher_id=2,3').publisher_id, [3, 1, 2]);
  assert.deepEqual(parseFilters('publisher_id=3%2C1').publisher_id, [3, 1]);
  assert.deepEqual(
    parse('cursor=c&subscription_id=1,1,2,3&subscription_id=4,4').selection.subscription_id,
    [1, 2, 3, 4],
  );
  assert.equal(parseFilters(`publisher_id=${numbers(50)},1,2,3`).publisher_id?.length, 50);
  assert.deepEqual(parseFilters('domain=Example.com,https://example.com/').domain, ['example.com']);
});

test('filters are parsed', () => {
  assert.equal(parseFilters('min_band=off').min_band, 0);
  assert.deepEqual(parseFilters('band=max,off').band, [4, 0]);
  assert.equal(parseFilters('print=false').print, false);
  assert.equal(parseFilters('min_score=0').min_score, 0);
  assert.equal(parseFilters('source_id=urn%3Aa+b%2Bc').source_id, 'urn:a b+c');
  assert.equal(parseFilters(`source_id=${encodeURIComponent('𝄞'.repeat(200))}`).source_id?.length, 400);
  assert.equal(parseFilters('article_id=999999999999999').article_id, 999_999_999_999_999);
  assert.equal(parse('cursor=c').limit, 100);
  assert.equal(parse('cursor=c&limit=1000').limit, 1000);
  assert.deepEqual(parse('cursor=c&&schema_version=v1&').start, { kind: 'after', position: 17 });
});

test('the id endpoint accepts only fields and schema_version', () => {
  assert.equal(readParameters('schema_version=v1', VIEW_PARAMETERS).fields, null);
  assert.throws(() => readParameters('limit=1', VIEW_PARAMETERS), refusal(/unknown parameter "limit"/));
});

const DOMAINS: readonly [text: string, expected: string | null][] = [
  ['example.com', 'example.com'],
  ['EXAMPLE.Com', 'example.com'],
  ['https://example.com', 'example.com'],
  ['http://example.com/', 'example.com'],
  ['HTTPS://Example.com/', 'example.com'],
  ['www.example.co.uk', 'www.example.co.uk'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['a_b.example', 'a_b.example'],
  ['example.com/', null],
  ['https://example.com//', null],
  ['https://example.com/a', null],
  ['https://example.com:443', null],
  ['example.com:80', null],
  ['https://user@example.com', null],
  ['https://example.com?x', null],
  ['https://example.com/?', null],
  ['https://example.com#x', null],
  ['ftp://example.com', null],
  ['https://', null],
  ['https:///', null],
  ['example..com', null],
  ['.example.com', null],
  ['-example.com', null],
  ['exam ple.com', null],
  ['exam\tple.com', null],
  ['ex%61mple.com', null],
  ['example.com\\x', null],
  ['[::1]', null],
  [`${'a'.repeat(64)}.com`, null],
  [`${'a.'.repeat(130)}com`, null],
];

test('a domain is a host and nothing else, in lower case and punycode', () => {
  for (const [text, expected] of DOMAINS) assert.equal(parseDomain(text), expected, text);
});

const DETECTION =
  '{"id":"i.1.2.3","version":2,"event":"updated","content_type":"image","source":{"id":null,"image_url":"u"},' +
  '"strength":{"score":1},"article":{"id":3,"url":null,"publisher":null,"image_url":null},"customer":null}';

const PROJECTIONS: readonly [fields: string, expected: string][] = [
  ['id', '{"id":"i.1.2.3","version":2}'],
  ['event,id', '{"id":"i.1.2.3","version":2,"event":"updated"}'],
  [
    'strength.score,content_type',
    '{"id":"i.1.2.3","version":2,"content_type":"image","strength":{"score":1}}',
  ],
  ['article.image_url,article.id', '{"id":"i.1.2.3","version":2,"article":{"id":3,"image_url":null}}'],
  ['source,source.id', '{"id":"i.1.2.3","version":2,"source":{"id":null,"image_url":"u"}}'],
  ['source.id,source', '{"id":"i.1.2.3","version":2,"source":{"id":null,"image_url":"u"}}'],
  ['source.language,article.print', '{"id":"i.1.2.3","version":2}'],
  ['article.publisher.name', '{"id":"i.1.2.3","version":2,"article":{"publisher":null}}'],
  ['customer,customer', '{"id":"i.1.2.3","version":2,"customer":null}'],
];

test('fields keeps the order of the detection, accepts complete objects and omits what a type lacks', () => {
  const nested = '{"id":"t","version":1,"article":{"id":3,"publisher":{"id":5,"name":"x"}}}';
  const nestedPart = '{"id":"t","version":1,"article":{"publisher":{"name":"x"}}}';
  for (const [fields, expected] of PROJECTIONS)
    assert.equal(`${projected(Buffer.from(DETECTION), parseFields(fields))}`, expected, fields);
  const both = Buffer.from(`${nested},${nested}`);
  assert.equal(`${projected(both, parseFields('article.publisher.name'))}`, `${nestedPart},${nestedPart}`);
});

const SUBSCRIPTIONS = [
  { id: 1, content_types: ['text', 'image'] as const },
  { id: 2, content_types: ['text'] as const },
  { id: 3, content_types: [] },
];
const BOTH = new Set(['text', 'image'] as const);
const ALL = { subscription_id: null, content_type: null };

test('a request reads the streams of its key that it selects', () => {
  const select = (ids: number[] | null, type: 'text' | 'image' | null, enabled = BOTH) => {
    const selection = { subscription_id: ids, content_type: type };
    const { streams, content_types } = selectStreams(SUBSCRIPTIONS, selection, enabled);
    return { streams, content_types };
  };
  assert.deepEqual(select(null, null), {
    streams: ['1:text', '1:image', '2:text'],
    content_types: ['text', 'image'],
  });
  assert.deepEqual(select([2], null), { streams: ['2:text'], content_types: ['text'] });
  assert.deepEqual(select([2, 1], 'image'), { streams: ['1:image'], content_types: ['image'] });
  assert.deepEqual(select([2], 'image'), { streams: [], content_types: ['image'] });
  assert.deepEqual(select([3], null), { streams: [], content_types: [] });
  assert.deepEqual(select(null, null, new Set(['text'])), {
    streams: ['1:text', '2:text'],
    content_types: ['text'],
  });
  assert.deepEqual(select(null, 'image', new Set(['text'])), { streams: [], content_types: [] });
  assert.throws(
    () => select([4], null),
    refusal(/^subscription_id: every value must be one of the key's subscriptions; GET \/v1\/me lists them$/),
  );
  assert.throws(
    () => selectStreams([{ id: 2, content_types: ['text'] }], { ...ALL, content_type: 'image' }, BOTH),
    refusal(/^content_type: must be one that the key can read; GET \/v1\/me lists them$/),
  );
});

function numbers(count: number): string {
  return Array.from({ length: count }, (_, index) => index + 1).join(',');
}

function domains(count: number): string {
  return Array.from({ length: count }, (_, index) => `d${index}.example`).join(',');
}
