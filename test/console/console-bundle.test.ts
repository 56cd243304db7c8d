/** The console's app without a browser: its size and its references. */
import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { TOPICS } from '../../src/manual/topics.ts';
import { consoleFiles } from '../../src/packed.ts';

const SOURCES = globSync(path.join(import.meta.dirname, '..', '..', 'src', 'console', '*.ts')).map((file) =>
  readFileSync(file, 'utf8'),
);
const COMPRESSED_MAX = 60_000;
const PICTURE_BYTES_MAX = 150_000;

test('the app is under 60 KB compressed, and names no other host', () => {
  const files = consoleFiles();
  assert.deepEqual(Object.keys(files).sort(), ['app.js', 'index.html', 'style.css']);
  const bytes = Object.values(files).map((text) => gzipSync(text).length);
  const all = bytes.reduce((sum, one) => sum + one, 0);
  assert.ok(all < COMPRESSED_MAX, `${all} bytes`);
  // The SVG namespace in a data URL and Preact's namespaces are names, not addresses.
  const named = Object.values(files).flatMap((text) => text.match(/https?:\/\/[a-z0-9.]+/g) ?? []);
  assert.deepEqual([...new Set(named)], ['http://www.w3.org']);
});

test('its screenshot in README is small', () => {
  const { size } = statSync(path.join(import.meta.dirname, '..', '..', 'src', 'manual', 'console.png'));
  assert.ok(size < PICTURE_BYTES_MAX, `${size} bytes`);
});

test('raw markup is inserted only for the manual', () => {
  const insertion = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc/i;
  const taking = SOURCES.filter((text) => insertion.test(text));
  assert.equal(taking.length, 1);
  assert.match(taking[0] ?? '', /The manual of this very version/);
});

test('each question mark links to a topic of the manual', () => {
  const questions = SOURCES.join('\n').matchAll(/\bhelp: '([^']+)'/g);
  const named = Array.from(questions, ([, topic = '']) => topic);
  assert.ok(named.length > 10);
  const topics = TOPICS.map(({ name }) => name);
  const unknown = named.filter((topic) => !topics.includes(topic));
  assert.deepEqual(unknown, []);
});
