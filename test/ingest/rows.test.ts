/** What a row of an export may state, column by column, and what the detection made of it shows. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ExportName } from '../../src/detection/content-type.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import {
  type Appliance,
  createKey,
  type Detection,
  showLogOfFailures,
  startAppliance,
} from '../support/appliance.ts';
import { csv, fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());

before(async () => {
  // Files are renamed into the folder: they need no time to come to rest.
  appliance = await startAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
  appliance.cli(['account', 'add', 'licensed', '--name', 'Licensed']);
  appliance.cli(['account', 'set', 'licensed', '--print-metadata', 'on']);
  appliance.cli(['subscription', 'add', '7100', '--account', 'licensed']);
});
after(() => appliance?.stop());

/** Drops a file of these rows, which must be applied; @returns the detection of the last one, as the API shows it */
async function detectionOf(rows: readonly Row[], exportName: ExportName = 'newswire', key = appliance.key) {
  const line = await appliance.dropped(fileName(exportName, nextWindowMs()), ndjson(rows));
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
  const detection = await appliance.detection(idOf(rows.at(-1) ?? {}, exportName), key);
  assert.ok(detection !== null);
  return detection;
}

/** Drops a file of a good row and then this one, which must fail it; @returns the reasons given for it */
async function reasonsAgainst(row: Row, exportName: ExportName = 'newswire') {
  const good = newRow();
  const content = ndjson([good, row]);
  const line = await appliance.dropped(fileName(exportName, nextWindowMs()), content);
  assert.equal(line.msg, 'file failed', JSON.stringify(line));
  const path = join(appliance.drop, String(line.destination));
  assert.equal(readFileSync(path, 'utf8'), content);
  assert.equal(await appliance.detection(idOf(good, exportName)), null, 'nothing of a failed file is kept');
  const reason = JSON.parse(readFileSync(`${path}.reason.json`, 'utf8'));
  assert.equal(reason.errors_total, reason.errors.length);
  for (const error of reason.errors) assert.equal(error.line, 2);
  return reason.errors;
}

test('a newswire row with every column becomes a detection that shows them all', async () => {
  const row = newRow({
    first_detected_at: '2026-11-01T10:00:00Z',
    last_scored_at: '2026-11-01T10:05:00Z',
    first_detected_estimated: true,
    exported_at: '2026-11-01T10:06:00Z',
    source_id: 'urn:newsml:example.org:1',
    source_published_at: '2026-10-31T23:00:00Z',
    source_language: 'en',
    source_syndicated: true,
    source_sentences: 20,
    strength_matched_sentences: 12,
    strength_article_sentences: 31,
    article_url: 'https://www.example.co.uk/story?id=1',
    article_published_at: '2026-11-01T09:00:00Z',
    article_headline: 'A headline',
    article_publisher_id: 31,
    article_publisher_name: '  Example Times ',
    article_print: false,
  });
  const id = idOf(row);
  assert.deepEqual(await detectionOf([row]), {
    id,
    version: 1,
    content_type: 'text',
    match_type: 'sentence_fingerprint',
    subscription_id: 7001,
    first_detected_at: '2026-11-01T10:00:00Z',
    first_detected_estimated: true,
    last_scored_at: '2026-11-01T10:05:00Z',
    exported_at: '2026-11-01T10:06:00Z',
    source: {
      id: 'urn:newsml:example.org:1',
      internal_id: 501,
      published_at: '2026-10-31T23:00:00Z',
      language: 'en',
      syndicated: true,
      sentences: 20,
    },
    strength: { score: 61.5, band: 'medium', matched_sentences: 12, article_sentences: 31 },
    article: {
      id: row.article_id,
      url: 'https://www.example.co.uk/story?id=1',
      domain: 'example.co.uk',
      published_at: '2026-11-01T09:00:00Z',
      headline: 'A headline',
      publisher: { id: 31, name: 'Example Times' },
      print: false,
    },
    customer: null,
    classification: null,
  });
});

test('an imagewire row with every column becomes a detection that shows them all', async () => {
  const row = newRow({
    strength_score: 60,
    exported_at: '2026-11-01T10:06:00Z',
    first_detected_at: '2026-11-01T10:00:00Z',
    last_scored_at: '2026-11-01T10:05:00Z',
    source_id: 'b1946ac9-2c00-4c5a-9f53-6d1f0a4b8e11',
    source_published_at: '2026-10-31T23:00:00Z',
    source_image_url: 'https://photos.example.org/501.jpg',
    source_origin_url: 'https://origin.example.org/501',
    article_url: 'https://example.com/a',
    article_domain: 'news.example.com',
    article_image_url: 'https://cdn.example.com/a.jpg',
  });
  assert.deepEqual(await detectionOf([row], 'imagewire'), {
    id: idOf(row, 'imagewire'),
    version: 1,
    content_type: 'image',
    match_type: 'image_fingerprint',
    subscription_id: 7001,
    first_detected_at: '2026-11-01T10:00:00Z',
    first_detected_estimated: false,
    last_scored_at: '2026-11-01T10:05:00Z',
    exported_at: '2026-11-01T10:06:00Z',
    source: {
      id: 'b1946ac9-2c00-4c5a-9f53-6d1f0a4b8e11',
      internal_id: 501,
      published_at: '2026-10-31T23:00:00Z',
      image_url: 'https://photos.example.org/501.jpg',
      origin_url: 'https://origin.example.org/501',
    },
    strength: { score: 60, band: 'high' },
    article: {
      id: row.article_id,
      url: 'https://example.com/a',
      domain: 'example.com',
      published_at: null,
      headline: null,
      publisher: null,
      image_url: 'https://cdn.example.com/a.jpg',
    },
    customer: null,
    classification: null,
  });
});

test('what a row leaves out is null, false or the time of ingest', async () => {
  const before = formatMs(Date.now());
  const detection = await detectionOf([newRow({ source_language: '', article_url: null })]);
  const after = formatMs(Date.now());
  assert.ok(detection.exported_at >= before && detection.exported_at <= after, detection.exported_at);
  assert.equal(detection.first_detected_estimated, false);
  assert.deepEqual(detection.source, {
    id: null,
    internal_id: 501,
    published_at: null,
    language: null,
    syndicated: null,
    sentences: null,
  });
  assert.deepEqual(detection.strength, {
    score: 61.5,
    band: 'medium',
    matched_sentences: null,
    article_sentences: null,
  });
  const { id: _, ...article } = detection.article;
  assert.deepEqual(article, {
    url: null,
    domain: null,
    published_at: null,
    headline: null,
    publisher: null,
    print: false,
  });
});

test('a photo without an address of its own gets one that the appliance signs', async () => {
  const detection = await detectionOf([newRow()], 'imagewire');
  const { url } = appliance.serving();
  const address = detection.source.image_url ?? '';
  assert.match(address, /\/photos\/501\?signature=[\w-]{22}$/);
  assert.ok(address.startsWith(`${url}/photos/`), address);
});

for (const column of [
  'subscription_id',
  'source_internal_id',
  'article_id',
  'first_detected_at',
  'last_scored_at',
  'strength_score',
]) {
  test(`${column} is required`, async () => {
    const { [column]: _, ...without } = newRow();
    for (const row of [without, newRow({ [column]: null }), newRow({ [column]: '' })]) {
      const [error, ...others] = await reasonsAgainst(row);
      assert.deepEqual(others, []);
      assert.equal(error.column, column);
      assert.equal(error.value, row[column] ?? null);
      assert.equal(error.expected, 'a value: this column is required');
    }
  });
}

const AN_ID = 'an integer from 1 to 999,999,999,999,999';
const AN_ID_OR_ZERO = 'an integer from 0 to 999,999,999,999,999';
const A_TIME = 'an ISO 8601 time with Z or an offset, such as 2026-11-21T10:10:00Z';
const A_STRING = 'a string of valid Unicode';
const AN_ADDRESS = 'an absolute URL that begins with http:// or https://';
const WITH_SCHEME = 'an absolute URL that begins with http:// or https://';
const NO_BLANKS = 'a URL without white space or control characters';

const WRONG: readonly [column: string, values: readonly unknown[], expected: string, exports?: ExportName][] =
  [
    ['subscription_id', [0, -1, 1.5, '7001', true, [7001], { id: 1 }, 1_000_000_000_000_000], AN_ID],
    ['source_internal_id', [-1, 0.5, '1', 1_000_000_000_000_000, 1e300], AN_ID_OR_ZERO],
    ['article_id', [-1, '0', false, 1_000_000_000_000_000], AN_ID_OR_ZERO],
    ['article_publisher_id', [0, '31', 1_000_000_000_000_000], AN_ID],
    ['source_sentences', [-1, 1.5, '12'], AN_ID_OR_ZERO],
    ['strength_matched_sentences', [-1, '12'], AN_ID_OR_ZERO],
    ['strength_article_sentences', [-1, '12'], AN_ID_OR_ZERO],
    ['strength_score', [-0.1, 100.1, 101, '50', true], 'a number from 0 to 100'],
    ['strength_score', [-1, 99.5, 100], 'a number from 0 to 99', 'imagewire'],
    ['first_detected_estimated', ['true', 0, 1], 'true or false'],
    ['source_syndicated', ['yes', 1], 'true or false'],
    ['article_print', ['false', 0], 'true or false'],
    [
      'source_published_at',
      ['2026-11-01', '2026-11-01 10:00:00Z', '2026-11-01T10:00:00', '2026-02-30T00:00:00Z'],
      A_TIME,
    ],
    [
      'article_published_at',
      ['2026-11-01T24:00:00Z', '2026-11-01T10:00:60Z', '2026-11-01T10:00:00.Z', 1793000000],
      A_TIME,
    ],
    [
      'exported_at',
      ['now', '2026-11-01T10:00:00+0100', '2026-11-01T10:00:00+24:00', '2026-13-01T00:00:00Z'],
      A_TIME,
    ],
    ['last_scored_at', [0, '2026-11-01T10:00Z'], A_TIME],
    ['source_id', [7, true, ['a'], { a: 1 }], A_STRING],
    ['source_language', [1], A_STRING],
    ['article_headline', [1, false], A_STRING],
    ['article_publisher_name', [31], A_STRING],
    ['article_domain', [31], A_STRING],
    ['article_url', [1, true], AN_ADDRESS],
    [
      'article_url',
      ['example.com/a', '//example.com/a', '/a', 'ftp://example.com/a', 'mailto:a@example.com'],
      WITH_SCHEME,
    ],
    [
      'article_url',
      ['javascript:alert(1)', 'http:/example.com', 'https:example.com', '"https://example.com"'],
      WITH_SCHEME,
    ],
    [
      'article_url',
      ['https://', 'https:///path', 'http://?q', 'https://user@/a', 'https://:8080/a'],
      'a URL with a host',
    ],
    ['article_url', ['https://example.com/a b', ' https://example.com', 'https://example.com\n'], NO_BLANKS],
    [
      'article_url',
      [
        'https://exam\tple.com',
        'https://example.com/\u0000',
        'https://example.com/\u00a0',
        'https://example.com/\u0085',
      ],
      NO_BLANKS,
    ],
    ['source_image_url', ['photo.jpg'], WITH_SCHEME, 'imagewire'],
    ['source_origin_url', ['file:///etc/passwd'], WITH_SCHEME, 'imagewire'],
    ['article_image_url', ['data:image/png;base64,AA'], WITH_SCHEME, 'imagewire'],
  ];

const escaped = (values: unknown) =>
  JSON.stringify(values).replace(
    /[\u007f-\uffff]/g,
    (text) => `\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

for (const [column, values, expected, exportName = 'newswire'] of WRONG) {
  test(`${exportName} ${column}: ${expected}, not ${escaped(values)}`, async () => {
    for (const value of values) {
      const errors = await reasonsAgainst(newRow({ [column]: value }), exportName);
      assert.deepEqual(errors, [{ line: 2, column, value, expected }]);
    }
  });
}

test('integers above 2^53 are refused, however they are written', async () => {
  for (const number of ['9007199254740993', '18446744073709551616', '1e16']) {
    const text = JSON.stringify(newRow()).replace(/"article_id":\d+/, `"article_id":${number}`);
    const name = fileName('newswire', nextWindowMs());
    const line = await appliance.dropped(name, `${text}\n`);
    assert.equal(line.msg, 'file failed');
    const reason = JSON.parse(readFileSync(join(appliance.drop, `failed/${name}.reason.json`), 'utf8'));
    assert.equal(reason.errors[0].column, 'article_id');
  }
});

test('the greatest and the smallest numbers are taken', async () => {
  const most = 999_999_999_999_999;
  const row = newRow({
    source_internal_id: 0,
    article_id: most,
    article_publisher_id: most,
    source_sentences: 0,
    strength_matched_sentences: 0,
    strength_article_sentences: most,
    strength_score: 0,
  });
  const detection = await detectionOf([row]);
  assert.equal(detection.id, `t.7001.0.${most}`);
  assert.equal(detection.article.publisher?.id, most);
  assert.deepEqual(detection.strength, {
    score: 0,
    band: 'off',
    matched_sentences: 0,
    article_sentences: most,
  });
  const other = await detectionOf([newRow({ source_internal_id: most, article_id: 0, strength_score: 100 })]);
  assert.equal(other.id, `t.7001.${most}.0`);
  assert.equal(other.strength.band, 'max');
});

test('times with offsets and fractions are shown in whole seconds of UTC, cut and not rounded', async () => {
  const detection = await detectionOf([
    newRow({
      first_detected_at: '2026-11-01T01:30:00.999+02:00',
      last_scored_at: '2026-11-01T23:30:00-05:30',
      exported_at: '2026-11-02T00:00:00.123456789Z',
      source_published_at: '1969-12-31T23:59:59.5Z',
    }),
  ]);
  assert.equal(detection.first_detected_at, '2026-10-31T23:30:00Z');
  assert.equal(detection.last_scored_at, '2026-11-02T05:00:00Z');
  assert.equal(detection.exported_at, '2026-11-02T00:00:00Z');
  assert.equal(detection.source.published_at, '1969-12-31T23:59:59Z');
});

test('first_detected_at and last_scored_at lie within a day after the window, first_detected_at from 2000 on', async () => {
  const window = nextWindowMs();
  const latest = formatMs(window + WINDOW_MS + DAY_MS);
  const over = formatMs(window + WINDOW_MS + DAY_MS + 1000);
  const judge = async (members: Row) => {
    const name = fileName('newswire', window);
    const line = await appliance.dropped(name, ndjson([newRow(members)]));
    if (line.msg === 'file applied') return 'applied';
    const reason = readFileSync(join(appliance.drop, `${line.destination}.reason.json`), 'utf8');
    const { column, expected } = JSON.parse(reason).errors[0];
    return `${column}: ${expected}`;
  };
  assert.equal(await judge({ first_detected_at: latest, last_scored_at: latest }), 'applied');
  assert.equal(await judge({ first_detected_at: '2000-01-01T00:00:00Z', last_scored_at: latest }), 'applied');
  // last_scored_at is compared neither with first_detected_at nor with the earliest time.
  assert.equal(await judge({ first_detected_at: latest, last_scored_at: '1999-12-31T00:00:00Z' }), 'applied');
  // A bad second file for a window that is done leaves it done.
  assert.equal(await judge({ first_detected_at: over }), `first_detected_at: a time not after ${latest}`);
  assert.equal(await judge({ last_scored_at: over }), `last_scored_at: a time not after ${latest}`);
  assert.equal(
    await judge({ first_detected_at: '1999-12-31T23:59:59Z' }),
    'first_detected_at: a time not before 2000-01-01T00:00:00Z',
  );
  assert.equal(await judge({ exported_at: over, article_published_at: '2099-01-01T00:00:00Z' }), 'applied');
});

test('strings have at most 4 KiB of UTF-8', async () => {
  for (const [column, show] of [
    ['article_headline', (detection: Detection) => detection.article.headline],
    ['source_language', (detection: Detection) => detection.source.language],
  ] as const) {
    for (const longest of ['x'.repeat(4096), 'ü'.repeat(2048), '€'.repeat(1365), '😀'.repeat(1024)]) {
      assert.equal(show(await detectionOf([newRow({ [column]: longest })])), longest);
      const [error] = await reasonsAgainst(newRow({ [column]: `${longest}xx` }));
      assert.deepEqual([error.column, error.expected], [column, 'a string of at most 4 KiB']);
      assert.equal(error.value, `${`${longest}xx`.slice(0, 200)}…`, 'a long value is cut');
    }
  }
});

test('source_id has at most 200 characters, counted as characters', async () => {
  for (const longest of ['x'.repeat(200), 'ü'.repeat(200), '😀'.repeat(200)]) {
    const detection = await detectionOf([newRow({ source_id: longest })]);
    assert.equal(detection.source.id, longest);
    const [error] = await reasonsAgainst(newRow({ source_id: `${longest}x` }));
    assert.deepEqual([error.column, error.expected], ['source_id', 'a string of at most 200 characters']);
  }
});

test('an address has at most 8 KiB as it is given', async () => {
  const longest = `https://example.com/${'ü'.repeat(4086)}`;
  assert.equal(Buffer.byteLength(longest), 8192);
  const detection = await detectionOf([newRow({ article_url: longest })]);
  assert.equal(detection.article.url, encodeURI(longest));
  const [error] = await reasonsAgainst(newRow({ article_url: `${longest}x` }));
  assert.deepEqual([error.column, error.expected], ['article_url', 'a URL of at most 8 KiB']);
});

test('text of any language, quotes and control characters come out as they went in', async () => {
  for (const text of [
    'Grüße, "Welt" \\ </script>',
    '日本語 😀 \u2028 e\u0301',
    'line\nbreak\ttab \u0001\u0000\u007f',
  ]) {
    const detection = await detectionOf([
      newRow({
        article_headline: text,
        source_id: text,
        article_publisher_id: 1,
        article_publisher_name: text,
      }),
    ]);
    assert.equal(detection.article.headline, text);
    assert.equal(detection.source.id, text);
    assert.equal(detection.article.publisher?.name, text);
  }
});

test('half of a surrogate pair is no text', async () => {
  const rows = [
    { article_headline: 'a\ud800b' },
    { source_id: '\udc00' },
    { article_url: 'https://example.com/\ud83d' },
  ];
  for (const members of rows) {
    const [error, ...others] = await reasonsAgainst(newRow(members));
    assert.deepEqual(others, []);
    assert.equal(error.column, Object.keys(members)[0]);
  }
});

const ADDRESSES: readonly [given: string, shown: string, domain: string | null][] = [
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
  [
    'https://example.com/a[1]{2}|^`"<>',
    'https://example.com/a%5B1%5D%7B2%7D%7C%5E%60%22%3C%3E',
    'example.com',
  ],
  ['https://example.com/%41%2f%', 'https://example.com/%41%2f%25', 'example.com'],
  ['https://example.com/%zz%4', 'https://example.com/%25zz%254', 'example.com'],
  ['https://example.com/a#b#c', 'https://example.com/a#b%23c', 'example.com'],
  ['https://example.com/a?b?c/d', 'https://example.com/a?b?c/d', 'example.com'],
  ['https://example.com/../a/./b//c', 'https://example.com/../a/./b//c', 'example.com'],
  ['https://[2001:db8::1]:8080/a', 'https://[2001:db8::1]:8080/a', null],
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

test('an address is kept as given but for what must be encoded, and gives the domain', async () => {
  for (const [given, shown, domain] of ADDRESSES) {
    const { article } = await detectionOf([newRow({ article_url: given })]);
    assert.deepEqual([article.url, article.domain], [shown, domain], given);
  }
});

const DOMAINS: readonly [given: string, domain: string | null][] = [
  ['www.example.com', 'example.com'],
  ['Example.COM', 'example.com'],
  ['example.com.', 'example.com'],
  [' example.com ', 'example.com'],
  ['example.com:8080', 'example.com'],
  ['https://www.example.co.uk/a?b', 'example.co.uk'],
  ['//www.example.co.uk/a', 'example.co.uk'],
  ['www.example.com/path', 'example.com'],
  ['MÜNCHEN.de', 'xn--mnchen-3ya.de'],
  ['me.github.io', 'github.io'],
  ['com', null],
  ['co.uk', null],
  ['localhost', null],
  ['192.0.2.7', null],
  ['[2001:db8::1]', null],
  ['no domain at all', null],
  ['..', null],
];

test('a domain that is given wins over that of the address, and is reduced to the registrable one', async () => {
  for (const [given, domain] of DOMAINS) {
    const row = newRow({ article_url: 'https://other.example.net/a', article_domain: given });
    const { article } = await detectionOf([row]);
    assert.equal(article.domain, domain, given);
  }
});

test('a publisher needs an id; its name is trimmed and may be unknown', async () => {
  const publisherOf = async (members: Row) => (await detectionOf([newRow(members)])).article.publisher;
  assert.equal(await publisherOf({ article_publisher_name: 'Nameless' }), null);
  assert.deepEqual(await publisherOf({ article_publisher_id: 5 }), { id: 5, name: null });
  const blank = { article_publisher_id: 5, article_publisher_name: ' \t' };
  assert.deepEqual(await publisherOf(blank), { id: 5, name: null });
  const padded = { article_publisher_id: 5, article_publisher_name: '\u00a0 The  Times\n' };
  assert.deepEqual(await publisherOf(padded), { id: 5, name: 'The  Times' });
});

test('the address of a print article is shown with the licence only', async () => {
  const print = { article_url: 'https://print.example.com/a', article_print: true };
  const { article } = await detectionOf([newRow(print)]);
  assert.deepEqual([article.url, article.domain, article.print], [null, 'example.com', true]);
  const key = createKey(appliance.cli, 'licensed', '7100');
  const licensed = await detectionOf([newRow({ ...print, subscription_id: 7100 })], 'newswire', key);
  assert.equal(licensed.article.url, print.article_url);
  const online = await detectionOf([newRow({ ...print, article_print: false })]);
  assert.equal(online.article.url, print.article_url);
});

test('columns that mean nothing here are ignored, and named where the file is reported', async () => {
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
});

test('CSV columns named __proto__ and constructor are columns like others', async () => {
  const row = { ...newRow(), constructor: 'c' };
  const content = csv([row]).replace('constructor', '__proto__,constructor').replace(',c\r\n', ',p,c\r\n');
  const line = await appliance.dropped(fileName('newswire', nextWindowMs(), 'csv'), content);
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
  assert.deepEqual(line.ignored_columns, ['__proto__', 'constructor']);
});

const FOREIGN = {
  newswire: ['source_image_url', 'source_origin_url', 'article_image_url'],
  imagewire: [
    'source_language',
    'source_syndicated',
    'source_sentences',
    'strength_matched_sentences',
    'strength_article_sentences',
    'article_print',
  ],
} as const;

for (const exportName of ['newswire', 'imagewire'] as const) {
  test(`a column of the other export is an error in ${exportName}, also when it is null`, async () => {
    for (const column of FOREIGN[exportName]) {
      const expected = `no column ${column} in ${exportName} files`;
      const errors = await reasonsAgainst(newRow({ [column]: null }), exportName);
      assert.deepEqual(errors, [{ line: 2, column, value: null, expected }]);
      const name = fileName(exportName, nextWindowMs(), 'csv');
      await appliance.dropped(name, csv([newRow({ [column]: null })]));
      const reason = JSON.parse(readFileSync(join(appliance.drop, `failed/${name}.reason.json`), 'utf8'));
      assert.deepEqual([reason.errors[0].line, reason.errors[0].column], [1, column]);
    }
  });
}

test('content_type, match_type and strength_band may be there, and must agree', async () => {
  const agreed = {
    newswire: { content_type: 'text', match_type: 'sentence_fingerprint', strength_band: 'medium' },
    imagewire: { content_type: 'image', match_type: 'image_fingerprint', strength_band: 'high' },
  };
  for (const exportName of ['newswire', 'imagewire'] as const) {
    await detectionOf([newRow(agreed[exportName])], exportName);
    await detectionOf([newRow({ content_type: null, match_type: '', strength_band: null })], exportName);
    for (const [column, value] of Object.entries(agreed[exportName])) {
      for (const wrong of ['other', value.toUpperCase(), 1]) {
        const errors = await reasonsAgainst(newRow({ ...agreed[exportName], [column]: wrong }), exportName);
        assert.deepEqual(errors, [{ line: 2, column, value: wrong, expected: `"${value}", or no value` }]);
      }
    }
  }
});

const BANDS: readonly [ExportName, number, string][] = [
  ['newswire', 0, 'off'],
  ['newswire', 24.999, 'off'],
  ['newswire', 25, 'low'],
  ['newswire', 49.9, 'low'],
  ['newswire', 50, 'medium'],
  ['newswire', 74.999, 'medium'],
  ['newswire', 75, 'high'],
  ['newswire', 94.999, 'high'],
  ['newswire', 95, 'max'],
  ['newswire', 100, 'max'],
  ['imagewire', 0, 'low'],
  ['imagewire', 29.999, 'low'],
  ['imagewire', 30, 'medium'],
  ['imagewire', 59.999, 'medium'],
  ['imagewire', 60, 'high'],
  ['imagewire', 99, 'high'],
];

test('a band begins at its threshold, judged on the unrounded score', async () => {
  for (const [exportName, score, band] of BANDS) {
    const { strength } = await detectionOf([newRow({ strength_score: score })], exportName);
    assert.deepEqual([strength.score, strength.band], [score, band]);
  }
});

test('a row says all that is wrong with it, and a file counts the errors that it does not name', async () => {
  const row = newRow({ strength_score: 101, article_url: 'nowhere', source_id: 5 });
  const errors = await reasonsAgainst(row);
  assert.deepEqual(errors.map((error: { column: string }) => error.column).sort(), [
    'article_url',
    'source_id',
    'strength_score',
  ]);
  const name = fileName('newswire', nextWindowMs());
  await appliance.dropped(name, ndjson(Array.from({ length: 50 }, () => newRow({ strength_score: 101 }))));
  const reason = JSON.parse(readFileSync(join(appliance.drop, `failed/${name}.reason.json`), 'utf8'));
  assert.equal(reason.errors_total, 50);
  assert.deepEqual(
    reason.errors.map((error: { line: number }) => error.line),
    Array.from({ length: 20 }, (_, at) => at + 1),
  );
});

test('a value nested beyond all depth fails its file, and ingest goes on', async () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  for (const column of ['article_id', 'unknown']) {
    const text = JSON.stringify(newRow({ nested: 0 })).replace('"nested":0', `"${column}":${deep}`);
    const line = await appliance.dropped(fileName('newswire', nextWindowMs()), `${text}\n`);
    assert.equal(line.msg, column === 'article_id' ? 'file failed' : 'file applied');
  }
});

test('two rows of one detection in one file make two versions', async () => {
  const row = newRow();
  const later = {
    ...row,
    last_scored_at: formatMs(Date.parse(String(row.last_scored_at)) + 1000),
    strength_score: 80,
  };
  const detection = await detectionOf([row, later]);
  assert.deepEqual([detection.version, detection.strength.score], [2, 80]);
});
