/** What `ingest status`, `validate` and `explain` say of waiting files, errors and withheld URLs. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitingFiles } from '../../src/drop/waiting-names.ts';
import { parseFileName } from '../../src/exports/file-name.ts';
import { formatMs, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { testFolder } from '../support/test-folder.ts';

const appliance = await sharedAppliance();
const run = (...args: string[]) => appliance.cli(args, { anyStatus: true }).stdout;

test('rows of print articles without the licence are counted, with the way to change it', async () => {
  const url = 'https://www.example.com/1';
  const rows = [newRow({ article_print: true, article_url: url }), newRow({ article_url: url })];
  const name = fileName('newswire', nextWindowMs());
  const path = join(appliance.data, name);
  writeFileSync(path, ndjson(rows));
  const said = /1 row of print articles without article\.url[\s\S]*account set ID --print-metadata on/;
  assert.match(run('ingest', 'validate', path), said);
  assert.match(run('ingest', 'explain', path), said);
  await appliance.dropped(name, ndjson(rows));
  assert.match(run('ingest', 'status'), said);
  run('account', 'set', 'agency', '--print-metadata', 'on');
  assert.equal(JSON.parse(run('ingest', 'explain', path, '--json')).urls_withheld, 0);
  run('ingest', 'replay');
  assert.doesNotMatch(run('ingest', 'status'), said);
});

test('the first error of a failed file is in ingest status', async () => {
  const rows = [140, -1].map((strength_score) => newRow({ strength_score }));
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
  const said = /line 1, strength_score: expected a number from 0 to 100, found 140; 1 more error/;
  assert.match(run('ingest', 'status'), said);
});

test('a file of the running window says until when it waits', () => {
  const start = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS + WINDOW_MS;
  const until = formatMs(start + WINDOW_MS).slice(11, 16);
  const name = fileName('newswire', start);
  const path = join(appliance.data, name);
  writeFileSync(path, '');
  assert.match(run('ingest', 'explain', path), new RegExp(`until its window has ended, until ${until} UTC`));
  appliance.put(name, '');
  const waits = new RegExp(`${name}; .* waits until ${until} UTC, when its window ends`);
  assert.match(run('ingest', 'status'), waits);
});

test('links and folders do not count as waiting files', () => {
  const before = JSON.parse(run('ingest', 'status', '--json')).waiting;
  symlinkSync('/nowhere', join(appliance.drop, fileName('newswire', nextWindowMs())));
  mkdirSync(join(appliance.drop, fileName('newswire', nextWindowMs(), 'csv')));
  assert.equal(JSON.parse(run('ingest', 'status', '--json')).waiting, before);
});

test('of any number of waiting files, a bounded number of names is kept', () => {
  const root = testFolder();
  for (let at = 0; at < 50; at += 1) writeFileSync(join(root, `newswire.backfill-${at}.ndjson`), '');
  const { exports, exports_count } = waitingFiles({ root, parse: parseFileName }, undefined, 2);
  assert.deepEqual([exports.length, exports_count], [2, 50]);
});

test('explain says that it has no permission to read a file', {
  skip: process.geteuid?.() === 0 && 'root reads all',
}, () => {
  const path = join(appliance.data, fileName('newswire', nextWindowMs()));
  writeFileSync(path, '');
  chmodSync(path, 0);
  assert.match(run('ingest', 'explain', path), /no permission to read the file/);
  assert.match(run('ingest', 'validate', path), /no permission to read the file/);
});
