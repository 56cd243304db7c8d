/** Addresses, domains and publishers of a row. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKey, sharedAppliance } from '../support/appliance.ts';
import { newRow, type Row } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';

const { detectionOf } = exportTrials(() => appliance);

// Files are renamed into the folder, so they are complete immediately.
const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
appliance.cli(['account', 'add', 'licensed', '--name', 'Licensed']);
appliance.cli(['account', 'set', 'licensed', '--print-metadata', 'on']);
appliance.cli(['subscription', 'add', '7100', '--account', 'licensed']);

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
