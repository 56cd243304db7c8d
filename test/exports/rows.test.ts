/** The rows of an export: which columns there are, what their values may be, and what they are read as. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPORT_NAMES, type ExportName } from '../../src/detection/content-type.ts';
import { checkRow, type RawRow, type RowError } from '../../src/exports/check-row.ts';
import { timesOf } from '../../src/exports/file-name.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { csv, fileName, idOf, ndjson, newRow, newRows, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import { words } from '../support/words.ts';

// Files are renamed into the folder, so they are complete immediately.
const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
const { reasonBeside } = exportTrials(() => appliance);
const dropped = (rows: readonly RawRow[]) =>
  appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));

const WINDOW = { window_start: Date.parse('2026-11-01T10:00:00Z'), label: null };
const TIMES = timesOf({ ...WINDOW, name: '', export: 'newswire' }, Date.now(), null);
const MOST = 999_999_999_999_999;
/** The required columns. */
const ROW: RawRow = {
  subscription_id: 7001,
  source_internal_id: 501,
  article_id: 1,
  first_detected_at: '2026-11-01T10:00:00Z',
  last_scored_at: '2026-11-01T10:05:00Z',
  strength_score: 61.5,
};

const checked = (members: RawRow, exportName: ExportName = 'newswire', estimated = false) =>
  checkRow({ ...ROW, ...members }, { ...TIMES, export: exportName, estimated }, new Set());

function errorsOf(members: RawRow, exportName?: ExportName): readonly RowError[] {
  const row = checked(members, exportName);
  assert.ok(row.kind === 'bad', `accepted: ${JSON.stringify(members)}`);
  return row.errors;
}

function rowOf(members: RawRow, exportName?: ExportName) {
  const row = checked(members, exportName);
  assert.ok(row.kind === 'row', JSON.stringify(row));
  return row.row;
}

const TIME = 'an ISO 8601 time with Z or an offset, such as 2026-11-21T10:10:00Z';
const ADDRESS = 'an absolute URL that begins with http:// or https://';
const ADDRESSES = ['newswire article_url', 'imagewire source_image_url source_origin_url article_image_url'];
const OVER = '2026-11-02T10:10:01Z';

/** The export, and the columns that each take none of these values. */
const WRONG: readonly [columns: string, values: readonly unknown[], expected: string][] = [
  [
    'newswire subscription_id article_publisher_id',
    [0, -1, 1.5, '7001', true, [7001], { id: 1 }, MOST + 1, 1e300],
    'an integer from 1 to 999,999,999,999,999',
  ],
  [
    `newswire source_internal_id article_id source_sentences strength_matched_sentences
      strength_article_sentences`,
    [-1, 0.5, '1', false, MOST + 1, 2 ** 53, 2 ** 64],
    'an integer from 0 to 999,999,999,999,999',
  ],
  ['newswire strength_score', [-0.1, 100.1, 101, Infinity, '50', true], 'a number from 0 to 100'],
  ['imagewire strength_score', [-1, 99.5, 100], 'a number from 0 to 99'],
  [
    'newswire first_detected_estimated source_syndicated article_print',
    ['true', 'yes', 0, 1],
    'true or false',
  ],
  [
    'newswire first_detected_at last_scored_at exported_at source_published_at article_published_at',
    [0, 1793000000, 'now', '2026-11-01', '2026-11-01T10:00:00', '2026-02-30T00:00:00Z'],
    TIME,
  ],
  ['newswire first_detected_at last_scored_at', [OVER], 'a time not after 2026-11-02T10:10:00Z'],
  ['newswire first_detected_at', ['2021-11-01T09:59:59Z'], 'a time not before 2021-11-01T10:00:00Z'],
  [
    'newswire source_id source_language article_headline article_publisher_name article_domain',
    [7, true, ['a'], { a: 1 }, 'a\ud800b', '\udc00'],
    'a string of valid Unicode',
  ],
  ...ADDRESSES.flatMap((columns): typeof WRONG => [
    [
      columns,
      [
        ...[1, true, 'https://example.com/\ud83d', 'photo.jpg', 'example.com/a', '//example.com/a', '/a'],
        ...['ftp://example.com/a', 'mailto:a@example.com', 'file:///etc/passwd', 'data:image/png;base64,AA'],
        ...['javascript:alert(1)', 'http:/example.com', 'https:example.com', '"https://example.com"'],
      ],
      ADDRESS,
    ],
    [columns, words('https:// https:///path http://?q https://user@/a https://:8080/a'), 'a URL with a host'],
    [
      columns,
      [
        ...['https://example.com/a b', ' https://example.com', 'https://example.com\n'],
        ...['https://exam\tple.com', 'https://example.com/\u0000', 'https://example.com/\u00a0'],
        'https://example.com/\u0085',
      ],
      'a URL without white space or control characters',
    ],
  ]),
];

test('a value that its column does not take is an error, with what is expected', () => {
  for (const [columns, values, expected] of WRONG) {
    const [exportName, ...names] = words(columns);
    for (const column of names)
      for (const value of values) {
        const exports = EXPORT_NAMES.find((name) => name === exportName);
        const errors = errorsOf({ [column]: value }, exports);
        const shown = errors.map(({ what_to_do: _, ...error }) => error);
        assert.deepEqual(shown, [{ column, value, expected }]);
        assert.equal(/earliest_time/.test(errors[0]?.what_to_do ?? ''), expected.includes('not before'));
      }
  }
});

test('the largest and smallest values are accepted; a missing one is null or false', () => {
  const numbers = { source_sentences: 0, strength_article_sentences: MOST, article_publisher_id: MOST };
  for (const members of [
    { ...numbers, source_internal_id: 0, article_id: MOST, strength_score: 0 },
    { source_internal_id: MOST, article_id: 0, strength_score: 100 },
    { first_detected_at: '2021-11-01T10:00:00Z', last_scored_at: '1999-12-31T00:00:00Z' },
    { first_detected_at: '2026-11-02T10:10:00Z', last_scored_at: '2026-11-02T10:10:00Z' },
    { exported_at: OVER, article_published_at: '2099-01-01T00:00:00Z', first_detected_estimated: true },
  ]) {
    const nothing = { source_language: '', article_url: null };
    const { article_print, article_url, source_language, ...row } = rowOf({ ...members, ...nothing });
    assert.deepEqual([article_print, article_url, source_language], [false, null, null]);
    for (const [column, value] of Object.entries(members)) assert.equal(Reflect.get(row, column), value);
  }
  assert.ok(Object.is(rowOf({ strength_score: -0 }).strength_score, 0));
  assert.equal(rowOf({ strength_score: 99 }, 'imagewire').strength_score, 99);
});

test('times with offsets and fractions are shown in whole seconds of UTC, truncated', () => {
  // Stored times are compared as text: older scorings with small letters once won.
  for (const [given, read] of [
    ['2026-11-01T01:30:00.999+02:00', '2026-10-31T23:30:00Z'],
    ['2026-11-01T23:30:00-05:30', '2026-11-02T05:00:00Z'],
    ['2026-11-02T00:00:00.123456789Z', '2026-11-02T00:00:00Z'],
    ['2026-11-01t10:10:00z', '2026-11-01T10:10:00Z'],
  ]) {
    const columns = words('first_detected_at last_scored_at exported_at source_published_at');
    const row = rowOf(Object.fromEntries(columns.map((column) => [column, given])));
    for (const column of columns) assert.equal(Reflect.get(row, column), read, column);
  }
  const beforeEpoch = rowOf({ source_published_at: '1969-12-31T23:59:59.5Z' });
  assert.equal(beforeEpoch.source_published_at, '1969-12-31T23:59:59Z');
});

/** Each of the longest values is kept; with one more character it is an error. */
function limitTest(columns: string, longest: readonly string[], expected: string): void {
  for (const column of words(columns))
    for (const value of longest) {
      assert.equal(Reflect.get(rowOf({ [column]: value }), column), value, column);
      assert.deepEqual(errorsOf({ [column]: `${value}x` }), [{ column, value: `${value}x`, expected }]);
    }
}

test('strings have at most 4 KiB of UTF-8', () => {
  const longest = ['x'.repeat(4096), 'ü'.repeat(2048), '😀'.repeat(1024), `x${'€'.repeat(1365)}`];
  limitTest('article_headline source_language', longest, 'a string of at most 4 KiB');
});

test('source_id has at most 200 characters, counted in code points', () => {
  const longest = ['x'.repeat(200), 'ü'.repeat(200), '😀'.repeat(200)];
  limitTest('source_id', longest, 'a string of at most 200 characters');
});

test('a URL has at most 8 KiB as exported', () => {
  const longest = `https://example.com/${'ü'.repeat(4086)}`;
  assert.equal(Buffer.byteLength(longest), 8192);
  assert.equal(rowOf({ article_url: longest }).article_url, encodeURI(longest));
  const [error] = errorsOf({ article_url: `${longest}x` });
  assert.equal(error?.expected, 'a URL of at most 8 KiB');
});

test('text in any language, quotes and control characters are unchanged', async () => {
  for (const text of [
    'Grüße, "Welt" \\ </script>',
    '日本語 😀 \u2028 e\u0301',
    'line\nbreak\t \u0001\u0000\u007f',
  ]) {
    const publisher = { article_publisher_id: 1, article_publisher_name: text };
    const row = newRow({ article_headline: text, source_id: text, ...publisher });
    assert.equal((await dropped([row])).msg, 'file applied');
    const { article, source } = (await appliance.detection(idOf(row))) ?? assert.fail();
    assert.deepEqual([article.headline, source.id, article.publisher?.name], [text, text, text]);
  }
});

const KEPT: readonly [given: string, shown: string, domain: string | null][] = [
  ['https://www.example.com', 'https://www.example.com', 'example.com'],
  ['HTTPS://WWW.Example.COM/Path', 'HTTPS://WWW.Example.COM/Path', 'example.com'],
  ['http://example.com:8080/a?b=c&d#e', 'http://example.com:8080/a?b=c&d#e', 'example.com'],
  ['https://user:secret@example.com/a', 'https://user:secret@example.com/a', 'example.com'],
  ['https://example.com\\@evil.net/a', 'https://example.com%5C@evil.net/a', 'example.com'],
  ['https://example.com?x=https://evil.net/', 'https://example.com?x=https://evil.net/', 'example.com'],
  ['https://example.com#@evil.net', 'https://example.com#@evil.net', 'example.com'],
  ['https://evil.net@example.com/', 'https://evil.net@example.com/', 'example.com'],
  ['https://a@b@example.org/', 'https://a%40b@example.org/', 'example.org'],
  ['https://a:b:c@example.org:80/', 'https://a:b:c@example.org:80/', 'example.org'],
  ['https://example.com:abc/', 'https://example.com%3Aabc/', null],
  ['https://example.com:80:80/', 'https://example.com%3A80:80/', null],
  ['https://[2001:db8::1]:8080/', 'https://[2001:db8::1]:8080/', null],
  ['https://[v1.fe80::a]/', 'https://[v1.fe80::a]/', null],
  ['https://[::zz]/', 'https://%5B%3A%3Azz%5D/', null],
  ['https://[fe80::1%eth0]/', 'https://%5Bfe80%3A%3A1%25eth0%5D/', null],
  ['https://[fe80::1%25eth0]/', 'https://%5Bfe80%3A%3A1%25eth0%5D/', null],
  ['https://[::1', 'https://%5B%3A:1', null],
  ['https://example.com/ünï?q=é#ø', 'https://example.com/%C3%BCn%C3%AF?q=%C3%A9#%C3%B8', 'example.com'],
  ['https://example.com/😀', 'https://example.com/%F0%9F%98%80', 'example.com'],
  ['https://example.com/a[]{}|^`"<>', 'https://example.com/a%5B%5D%7B%7D%7C%5E%60%22%3C%3E', 'example.com'],
  ['https://example.com/%41%2f%', 'https://example.com/%41%2f%25', 'example.com'],
  ['https://example.com/%zz%4', 'https://example.com/%25zz%254', 'example.com'],
  ['https://example.com/a#b#c', 'https://example.com/a#b%23c', 'example.com'],
  ['https://example.com/a?b?c/d', 'https://example.com/a?b?c/d', 'example.com'],
  ['https://example.com/../a/./b//c', 'https://example.com/../a/./b//c', 'example.com'],
  ['https://192.0.2.7/a', 'https://192.0.2.7/a', null],
  ['https://localhost/a', 'https://localhost/a', null],
  ['https://co.uk/a', 'https://co.uk/a', null],
  ['https://news.bbc.co.uk/a', 'https://news.bbc.co.uk/a', 'bbc.co.uk'],
  ['https://me.github.io/a', 'https://me.github.io/a', 'github.io'],
  ['https://www.example.com./a', 'https://www.example.com./a', 'example.com'],
  ['https://www.münchen.de/a', 'https://www.m%C3%BCnchen.de/a', 'xn--mnchen-3ya.de'],
  ['https://www.xn--mnchen-3ya.de/a', 'https://www.xn--mnchen-3ya.de/a', 'xn--mnchen-3ya.de'],
  ['https://新聞.香港/a', 'https://%E6%96%B0%E8%81%9E.%E9%A6%99%E6%B8%AF/a', 'xn--efvv70d.xn--j6w193g'],
];

test('a URL is kept, except for encoded characters, and gives the domain', () => {
  for (const [given, shown, domain] of KEPT) {
    const { article_url, article_domain } = rowOf({ article_url: given });
    assert.deepEqual([article_url, article_domain], [shown, domain], given);
  }
});

const DOMAINS: Readonly<Record<string, readonly string[]>> = {
  'example.com': [
    ...['www.example.com', 'Example.COM', 'example.com.', ' example.com ', 'example.com:8080'],
    'www.example.com/path',
  ],
  'example.co.uk': ['https://www.example.co.uk/a?b', '//www.example.co.uk/a'],
  'xn--mnchen-3ya.de': ['MÜNCHEN.de'],
  'github.io': ['me.github.io'],
  none: ['com', 'co.uk', 'localhost', '192.0.2.7', '[2001:db8::1]', 'no domain at all', '..'],
};

test('article_domain wins over the URL, and is reduced to the registrable domain', () => {
  for (const [domain, values] of Object.entries(DOMAINS))
    for (const given of values) {
      const row = rowOf({ article_url: 'https://other.example.net/a', article_domain: given });
      assert.equal(row.article_domain ?? 'none', domain, given);
    }
});

test('a publisher needs an id; its name is trimmed and may be unknown', () => {
  for (const [id, name, read] of [
    [null, 'Nameless', [null, null]],
    [5, null, [5, null]],
    [5, ' \t', [5, null]],
    [5, '\u00a0 The  Times\n', [5, 'The  Times']],
  ] as const) {
    const row = rowOf({ article_publisher_id: id, article_publisher_name: name });
    assert.deepEqual([row.article_publisher_id, row.article_publisher_name], read);
  }
});

test('required columns have a value, each; columns of the other export are errors, also when they are null', () => {
  for (const column of Object.keys(ROW))
    for (const value of [undefined, null, ''])
      assert.deepEqual(errorsOf({ [column]: value }), [
        { column, value: value ?? null, expected: 'a value: this column is required' },
      ]);
  for (const [exportName, columns] of [
    ['newswire', 'source_image_url source_origin_url article_image_url'],
    [
      'imagewire',
      `source_language source_syndicated source_sentences strength_matched_sentences
        strength_article_sentences article_print`,
    ],
  ] as const)
    for (const column of words(columns)) {
      const expected = `no column ${column} in ${exportName} files`;
      assert.deepEqual(errorsOf({ [column]: null }, exportName), [{ column, value: null, expected }]);
    }
});

test('content_type, match_type and strength_band are optional, and must match', () => {
  const agreed = {
    newswire: { content_type: 'text', match_type: 'sentence_fingerprint', strength_band: 'medium' },
    imagewire: { content_type: 'image', match_type: 'image_fingerprint', strength_band: 'high' },
  };
  for (const exportName of EXPORT_NAMES) {
    rowOf(agreed[exportName], exportName);
    rowOf({ content_type: null, match_type: '', strength_band: null }, exportName);
    for (const [column, value] of Object.entries(agreed[exportName]))
      for (const wrong of ['other', value.toUpperCase(), 1]) {
        const errors = errorsOf({ ...agreed[exportName], [column]: wrong }, exportName);
        assert.deepEqual(errors, [{ column, value: wrong, expected: `"${value}", or no value` }]);
      }
  }
});

test('a file with an error in one row is not stored; it lists 20 errors, each with its value, and counts all', async () => {
  const good = newRow();
  const wrong = { strength_score: 101, article_url: 'x'.repeat(9000), source_id: 5 };
  const line = await dropped([good, ...newRows(50).map((row) => ({ ...row, ...wrong }))]);
  assert.equal(line.msg, 'file failed');
  assert.equal(await appliance.detection(idOf(good)), null);
  const { errors, errors_total } = reasonBeside(line.destination);
  assert.equal(errors_total, 102, 'reading ends after a hundred');
  assert.equal(errors.length, 20);
  const [first, second, third] = errors;
  assert.deepEqual(
    [first.line, first.column, first.value, second.value, third.value],
    [2, 'strength_score', 101, `${'x'.repeat(200)}…`, 5],
  );
});

test('unknown columns are ignored, and named in the report of the file, whatever their names', async () => {
  const text = JSON.stringify(
    newRow({ zeta: [1, { a: 2 }], constructor: 'x', toString: null, id: 'mine', version: 9 }),
  );
  const line = await appliance.dropped(
    fileName('newswire', nextWindowMs()),
    `${text.replace('{', '{"__proto__":{"article_headline":"sneaked in"},')}\n`,
  );
  assert.equal(line.msg, 'file applied');
  assert.deepEqual(line.ignored_columns, ['__proto__', 'constructor', 'id', 'toString', 'version', 'zeta']);
  assert.equal((await appliance.detection(idOf(JSON.parse(text))))?.article.headline, null);
  const table = csv([{ ...newRow(), constructor: 'c' }]);
  const content = table.replace('constructor', '__proto__,constructor').replace(',c\r\n', ',p,c\r\n');
  const other = await appliance.dropped(fileName('newswire', nextWindowMs(), 'csv'), content);
  assert.deepEqual([other.msg, other.ignored_columns], ['file applied', ['__proto__', 'constructor']]);
});

test('a too deeply nested value fails its file, and ingest continues', async () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  for (const column of ['article_id', 'unknown']) {
    const text = JSON.stringify(newRow({ nested: 0 })).replace('"nested":0', `"${column}":${deep}`);
    const line = await appliance.dropped(fileName('newswire', nextWindowMs()), `${text}\n`);
    assert.equal(line.msg, column === 'article_id' ? 'file failed' : 'file applied');
  }
});
