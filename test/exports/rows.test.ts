/** The columns of an export row, its addresses, domains and publishers, and the detection that results. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { createKey, sharedAppliance } from '../support/appliance.ts';
import { csv, fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';

const { detectionOf, reasonsFor } = exportTrials(() => appliance);

// Files are renamed into the folder, so they are complete immediately.
const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
appliance.cli(['account', 'add', 'licensed', '--name', 'Licensed']);
appliance.cli(['account', 'set', 'licensed', '--print-metadata', 'on']);
appliance.cli(['subscription', 'add', '7100', '--account', 'licensed']);

test('a newswire row with every column becomes a detection with all of them', async () => {
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
    strength_score: 74.999,
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
    strength: { score: 74.999, band: 'medium', matched_sentences: 12, article_sentences: 31 },
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

test('an imagewire row with every column becomes a detection with all of them', async () => {
  const row = newRow({
    strength_score: 99,
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
    strength: { score: 99, band: 'high' },
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

test('omitted values are null, false or the time of ingest', async () => {
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

test('a photo without a URL gets one that Wirewatch signs', async () => {
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
      const [error, ...others] = await reasonsFor(row);
      assert.deepEqual(others, []);
      assert.equal(error.column, column);
      assert.equal(error.value, row[column] ?? null);
      assert.equal(error.expected, 'a value: this column is required');
    }
  });
}

test('unknown columns are ignored, and named in the report of the file', async () => {
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

test('CSV columns named __proto__ and constructor are ordinary columns', async () => {
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
      const errors = await reasonsFor(newRow({ [column]: null }), exportName);
      assert.deepEqual(errors, [{ line: 2, column, value: null, expected }]);
      const name = fileName(exportName, nextWindowMs(), 'csv');
      await appliance.dropped(name, csv([newRow({ [column]: null })]));
      const reason = JSON.parse(readFileSync(join(appliance.drop, `failed/${name}.reason.json`), 'utf8'));
      assert.deepEqual([reason.errors[0].line, reason.errors[0].column], [1, column]);
    }
  });
}

test('content_type, match_type and strength_band are optional, and must match', async () => {
  const agreed = {
    newswire: { content_type: 'text', match_type: 'sentence_fingerprint', strength_band: 'medium' },
    imagewire: { content_type: 'image', match_type: 'image_fingerprint', strength_band: 'high' },
  };
  for (const exportName of ['newswire', 'imagewire'] as const) {
    await detectionOf([newRow(agreed[exportName])], exportName);
    await detectionOf([newRow({ content_type: null, match_type: '', strength_band: null })], exportName);
    for (const [column, value] of Object.entries(agreed[exportName])) {
      for (const wrong of ['other', value.toUpperCase(), 1]) {
        const errors = await reasonsFor(newRow({ ...agreed[exportName], [column]: wrong }), exportName);
        assert.deepEqual(errors, [{ line: 2, column, value: wrong, expected: `"${value}", or no value` }]);
      }
    }
  }
});

test('all errors of a row are reported, and a file counts those that it does not list', async () => {
  const row = newRow({ strength_score: 101, article_url: 'nowhere', source_id: 5 });
  const errors = await reasonsFor(row);
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

test('a too deeply nested value fails its file, and ingest continues', async () => {
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

test('a URL is kept, except for encoded characters, and gives the domain', async () => {
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

test('article_domain wins over the URL, and is reduced to the registrable domain', async () => {
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

test('the URL of a print article is shown only with the licence', async () => {
  const print = { article_url: 'https://print.example.com/a', article_print: true };
  const { article } = await detectionOf([newRow(print)]);
  assert.deepEqual([article.url, article.domain, article.print], [null, 'example.com', true]);
  const key = createKey(appliance.cli, 'licensed', '7100');
  const licensed = await detectionOf([newRow({ ...print, subscription_id: 7100 })], 'newswire', key);
  assert.equal(licensed.article.url, print.article_url);
  const online = await detectionOf([newRow({ ...print, article_print: false })]);
  assert.equal(online.article.url, print.article_url);
});
