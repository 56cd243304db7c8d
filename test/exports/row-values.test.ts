/** The values of a row: numbers, times and strings, their bounds, and invalid values. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ExportName } from '../../src/detection/content-type.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { type Detection, sharedAppliance } from '../support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';

const { detectionOf, reasonsFor } = exportTrials(() => appliance);

// Files are renamed into the folder, so they are complete immediately.
const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
appliance.cli(['account', 'add', 'licensed', '--name', 'Licensed']);
appliance.cli(['account', 'set', 'licensed', '--print-metadata', 'on']);
appliance.cli(['subscription', 'add', '7100', '--account', 'licensed']);

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
      const errors = await reasonsFor(newRow({ [column]: value }), exportName);
      assert.deepEqual(errors, [{ line: 2, column, value, expected }]);
    }
  });
}

test('integers above 2^53 are refused, in any notation', async () => {
  for (const number of ['9007199254740993', '18446744073709551616', '1e16']) {
    const text = JSON.stringify(newRow()).replace(/"article_id":\d+/, `"article_id":${number}`);
    const name = fileName('newswire', nextWindowMs());
    const line = await appliance.dropped(name, `${text}\n`);
    assert.equal(line.msg, 'file failed');
    const reason = JSON.parse(readFileSync(join(appliance.drop, `failed/${name}.reason.json`), 'utf8'));
    assert.equal(reason.errors[0].column, 'article_id');
  }
});

test('the largest and smallest numbers are accepted', async () => {
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

test('times with offsets and fractions are shown in whole seconds of UTC, truncated', async () => {
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

test('times with a lower-case t and z are shown, and compared with others, as with upper-case letters', async () => {
  const members = { source_internal_id: 4242, article_id: 4242 };
  const detection = await detectionOf([
    newRow({
      ...members,
      first_detected_at: '2026-11-01t10:10:00z',
      last_scored_at: '2026-11-01t10:10:00z',
      exported_at: '2026-11-01t10:10:00z',
      strength_score: 10,
    }),
    newRow({
      ...members,
      first_detected_at: '2026-11-01T12:00:00Z',
      last_scored_at: '2026-11-01T12:00:00Z',
      exported_at: '2026-11-01T12:00:00Z',
      source_published_at: '2026-11-01t00:00:00z',
      strength_score: 90,
    }),
  ]);
  assert.equal(detection.first_detected_at, '2026-11-01T10:10:00Z');
  assert.equal(detection.last_scored_at, '2026-11-01T12:00:00Z');
  assert.equal(detection.exported_at, '2026-11-01T12:00:00Z');
  assert.equal(detection.source.published_at, '2026-11-01T00:00:00Z');
  assert.equal(detection.strength.score, 90);
});

test('first_detected_at and last_scored_at lie within a day after the window, first_detected_at from five years before it on', async () => {
  const window = nextWindowMs();
  const latest = formatMs(window + WINDOW_MS + DAY_MS);
  const over = formatMs(window + WINDOW_MS + DAY_MS + 1000);
  const earliestMs = new Date(window).setUTCFullYear(new Date(window).getUTCFullYear() - 5);
  const earliest = formatMs(earliestMs);
  const errorFor = async (members: Row) => {
    const name = fileName('newswire', window);
    const line = await appliance.dropped(name, ndjson([newRow(members)]));
    if (line.msg === 'file applied') return 'applied';
    const reason = readFileSync(join(appliance.drop, `${line.destination}.reason.json`), 'utf8');
    const { column, expected, what_to_do = '' } = JSON.parse(reason).errors[0];
    return `${column}: ${expected}${what_to_do}`;
  };
  assert.equal(await errorFor({ first_detected_at: latest, last_scored_at: latest }), 'applied');
  assert.equal(await errorFor({ first_detected_at: earliest, last_scored_at: latest }), 'applied');
  // last_scored_at is compared neither with first_detected_at nor with the earliest time.
  assert.equal(
    await errorFor({ first_detected_at: latest, last_scored_at: '1999-12-31T00:00:00Z' }),
    'applied',
  );
  assert.equal(await errorFor({ last_scored_at: latest.toLowerCase() }), 'applied');
  // A bad second file does not change a window that is done.
  assert.equal(await errorFor({ first_detected_at: over }), `first_detected_at: a time not after ${latest}`);
  assert.equal(await errorFor({ last_scored_at: over }), `last_scored_at: a time not after ${latest}`);
  assert.match(
    await errorFor({ first_detected_at: formatMs(earliestMs - 1000) }),
    new RegExp(`^first_detected_at: a time not before ${earliest}.*earliest_time .*five years before`),
  );
  assert.equal(
    await errorFor({ exported_at: over, article_published_at: '2099-01-01T00:00:00Z' }),
    'applied',
  );
});

test('strings have at most 4 KiB of UTF-8', async () => {
  for (const [column, show] of [
    ['article_headline', (detection: Detection) => detection.article.headline],
    ['source_language', (detection: Detection) => detection.source.language],
  ] as const) {
    for (const longest of ['x'.repeat(4096), 'ü'.repeat(2048), '€'.repeat(1365), '😀'.repeat(1024)]) {
      assert.equal(show(await detectionOf([newRow({ [column]: longest })])), longest);
      const [error] = await reasonsFor(newRow({ [column]: `${longest}xx` }));
      assert.deepEqual([error.column, error.expected], [column, 'a string of at most 4 KiB']);
      assert.equal(error.value, `${`${longest}xx`.slice(0, 200)}…`, 'a long value must be truncated');
    }
  }
});

test('source_id has at most 200 characters, counted in code points', async () => {
  for (const longest of ['x'.repeat(200), 'ü'.repeat(200), '😀'.repeat(200)]) {
    const detection = await detectionOf([newRow({ source_id: longest })]);
    assert.equal(detection.source.id, longest);
    const [error] = await reasonsFor(newRow({ source_id: `${longest}x` }));
    assert.deepEqual([error.column, error.expected], ['source_id', 'a string of at most 200 characters']);
  }
});

test('a URL has at most 8 KiB as exported', async () => {
  const longest = `https://example.com/${'ü'.repeat(4086)}`;
  assert.equal(Buffer.byteLength(longest), 8192);
  const detection = await detectionOf([newRow({ article_url: longest })]);
  assert.equal(detection.article.url, encodeURI(longest));
  const [error] = await reasonsFor(newRow({ article_url: `${longest}x` }));
  assert.deepEqual([error.column, error.expected], ['article_url', 'a URL of at most 8 KiB']);
});

test('text in any language, quotes and control characters are unchanged', async () => {
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

test('half of a surrogate pair is not valid text', async () => {
  const rows = [
    { article_headline: 'a\ud800b' },
    { source_id: '\udc00' },
    { article_url: 'https://example.com/\ud83d' },
  ];
  for (const members of rows) {
    const [error, ...others] = await reasonsFor(newRow(members));
    assert.deepEqual(others, []);
    assert.equal(error.column, Object.keys(members)[0]);
  }
});
