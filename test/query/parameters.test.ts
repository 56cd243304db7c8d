/** Strict parameters, case by case. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseChanges } from '../../src/query/changes-parameters.ts';
import { parseDomain } from '../../src/query/value-kinds.ts';
import { words } from '../support/words.ts';

const NOW_MS = Date.parse('2026-11-21T12:00:00.500Z');
const OLDEST_MS = NOW_MS - 31 * 24 * 3_600_000;

const parse = (query: string) => parseChanges(query, NOW_MS, () => ({ position: 17, epoch: 3 }));

/** Adds a cursor, so that only the tested parameter can be wrong. */
const parseFilters = (query: string) => parse(`cursor=c&${query}`);

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1).join();
const domains = (count: number) => Array.from({ length: count }, (_, index) => `d${index}.example`).join();

const refusal = (message: RegExp) => ({ code: 'invalid_request', message });

/** With a cursor, so that nothing else is wrong: what is sent, and the detail. */
const REFUSED: readonly (readonly [detail: RegExp, ...queries: string[]])[] = [
  [/^unknown parameter "limti"/, 'limti=1'],
  [/^unknown parameter ""/, '=1'],
  [/^unknown parameter "(__proto__|toString)"/, '__proto__=1', 'toString=1'],
  [/^unknown parameter "x{60}" …$/, `${'x'.repeat(5000)}=1`],
  [/^limit: must not be empty/, 'limit=', 'limit'],
  [/^(limit|cursor|fields): must not be repeated/, 'limit=1&limit=1', 'cursor=c', 'fields=id&fields=id'],
  [/percent-encoded/, 'source_id=%', 'source_id=%zz', 'source_id=%ff', '%c3=1'],
  [
    /^limit: must be an integer from 1 to 1000/,
    ...['0', '1001', '01', '+1', '%2B1', '-1', '1.0', '1e2', '0x1', ' 1', '1%00', '9'.repeat(40), 'x'].map(
      (limit) => `limit=${limit}`,
    ),
  ],
  [
    /^subscription_id: must not (contain an|be) empty/,
    ...['1,', ',1', '1,,2', '1&subscription_id='].map((ids) => `subscription_id=${ids}`),
  ],
  [
    /^subscription_id: must be an integer from 1 to 999,999,999,999,999$/,
    ...['subscription_id=0', 'subscription_id=1000000000000000'],
  ],
  [/^subscription_id: must not have more than 4 values/, 'subscription_id=1,2,3&subscription_id=4,5'],
  [/^content_type: must be text or image/, 'content_type=Text', 'content_type=text,image'],
  [/^publisher_id: must not have more than 50 values/, `publisher_id=${numbers(51)}`],
  [/^exclude_publisher_id: must not have more than 50/, `exclude_publisher_id=${numbers(51)}`],
  [/^domain: must not have more than 20/, `domain=${domains(21)}`],
  [/^exclude_domain: must not have more than 20/, `exclude_domain=${domains(21)}`],
  [/^domain: must be a domain/, 'domain=https://example.com/x'],
  [
    /^(min_)?band: must be off, low, medium, high or max/,
    ...['min_band=strong', 'min_band=low,high', 'band=low,LOW'],
  ],
  [/^min_score: must be an integer from 0 to 100/, 'min_score=101', 'min_score=49.5'],
  [/^print: must be true or false/, 'print=1', 'print=TRUE'],
  [/^source_id: must not exceed 200 characters/, `source_id=${'x'.repeat(201)}`],
  [/^article_id: must be an integer from 1/, 'article_id=0', 'article_id=1,2'],
  [/^fields: must not contain an empty value/, 'fields=id,'],
  [/^fields: unknown path "nope"/, 'fields=id,nope'],
  [
    /^fields: unknown path/,
    ...['article.', '__proto__', 'article.publisher.nope'].map((path) => `fields=${path}`),
  ],
  // A secret in the wrong parameter is not repeated.
  [/^fields: unknown path "Bearer \[redacted\]"/, 'fields=Bearer%20sk0123456789abcdef'],
  [/^fields: unknown path "ww_live_abcdefghij23_\[redacted\]"/, 'fields=ww_live_abcdefghij23_0123456789'],
  [/^fields: unknown path "\[redacted\]"/, `fields=id,sk${'0a1b2c3d'.repeat(8)}`],
  [/^unknown parameter "\[redacted\]"/, `${'0a1b2c3d'.repeat(8)}=1`],
  [/^schema_version: must be v1/, 'schema_version=v2'],
];

/** In place of a cursor. */
const REFUSED_STARTS: typeof REFUSED = [
  [/^since, cursor: one of them is required/, ''],
  [/^since, cursor: mutually exclusive/, 'since=2026-11-21T10:00:00Z&cursor=c'],
  [
    /^since: must be an ISO 8601 time/,
    'since=2026-11-21 10:00:00Z',
    ...['since=2026-11-21', 'since=2026-11-21T10:00:00', 'since=2026-11-21+10:00:00Z', 'since=1700000000'],
    'since=2026-11-21T10:00:00.1234567890Z',
  ],
  [/^since: must not be in the future/, 'since=2026-11-21T12:00:00.501Z'],
  [/^since: must be within the last 31 days/, `since=${new Date(OLDEST_MS - 1).toISOString()}`],
];

test('invalid values are refused, and the detail names the parameter', () => {
  for (const [detail, ...queries] of REFUSED)
    for (const query of queries) assert.throws(() => parse(`cursor=c&${query}`), refusal(detail), query);
  for (const [detail, ...queries] of REFUSED_STARTS)
    for (const query of queries) assert.throws(() => parse(query), refusal(detail), query);
});

const SINCE: readonly [text: string, expected: string][] = [
  ['2026-11-21T10:00:00Z', '2026-11-21T10:00:00.000Z'],
  ['2026-11-21T12:00:00.500Z', '2026-11-21T12:00:00.500Z'],
  ['2026-11-21T10:00:00%2B01:30', '2026-11-21T08:30:00.000Z'],
  ['2026-11-21T10:00:00+01:30', '2026-11-21T08:30:00.000Z'],
  // Python: datetime.now(timezone.utc).isoformat(), encoded.
  ['2026-11-21T10:00:00.250999%2B00:00', '2026-11-21T10:00:00.250Z'],
  ['2026-11-21T10:00:00.123456789+01:30', '2026-11-21T08:30:00.123Z'],
  [new Date(OLDEST_MS).toISOString(), new Date(OLDEST_MS).toISOString()],
];

test('since is an instant with Z or an offset; a raw + in the offset is parsed as +', () => {
  for (const [text, expected] of SINCE)
    assert.deepEqual(parse(`since=${text}`).start, { kind: 'since', since_ms: Date.parse(expected) }, text);
});

test('lists may be repeated, comma-separated and mixed; duplicates count once', () => {
  assert.deepEqual(parseFilters('publisher_id=3,1&publisher_id=2,3').publisher_id, [3, 1, 2]);
  assert.deepEqual(parseFilters('publisher_id=3%2C1').publisher_id, [3, 1]);
  assert.deepEqual(parseFilters('subscription_id=1,1,2,3&subscription_id=4,4').subscription_id, [1, 2, 3, 4]);
  assert.equal(parseFilters(`publisher_id=${numbers(50)},1,2,3`).publisher_id?.length, 50);
  assert.deepEqual(parseFilters('domain=Example.com,https://example.com/').domain, ['example.com']);
});

test('values are decoded, and characters are counted, not code units', () => {
  assert.equal(parseFilters('source_id=urn%3Aa+b%2Bc').source_id, 'urn:a b+c');
  assert.equal(parseFilters(`source_id=${encodeURIComponent('𝄞'.repeat(200))}`).source_id?.length, 400);
  assert.equal(parse('cursor=c').limit, 100);
  assert.equal(parse('cursor=c&limit=1000').limit, 1000);
  assert.deepEqual(parse('cursor=c&&schema_version=v1&').start, { kind: 'after', position: 17, epoch: 3 });
});

const DOMAINS: Readonly<Record<string, string>> = {
  'example.com': 'example.com EXAMPLE.Com https://example.com http://example.com/ HTTPS://Example.com/',
  'www.example.co.uk': 'www.example.co.uk',
  'xn--bcher-kva.example': 'bücher.example xn--bcher-kva.example',
  'a_b.example': 'a_b.example',
};
const NO_DOMAINS = [
  ...words(`
    example.com/ https://example.com// https://example.com/a https://example.com:443 example.com:80
    https://user@example.com https://example.com?x https://example.com/? https://example.com#x ftp://example.com
    https:// https:/// example..com .example.com -example.com ex%61mple.com [::1]`),
  ...['exam ple.com', 'exam\tple.com', 'example.com\\x', `${'a'.repeat(64)}.com`, `${'a.'.repeat(130)}com`],
];

test('a domain is a host and nothing else, in lower case and punycode', () => {
  for (const [domain, texts] of Object.entries(DOMAINS))
    for (const text of words(texts)) assert.equal(parseDomain(text), domain, text);
  for (const text of NO_DOMAINS) assert.equal(parseDomain(text), null, text);
});
