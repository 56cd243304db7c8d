/** `wirewatch generate`: its options, output and refusals; its files are valid exports. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { EXPORT_NAMES } from '../../../src/detection/content-type.ts';
import { WINDOW_MS } from '../../../src/time.ts';
import { runToEnd, succeed } from '../../support/command.ts';
import { csvValues } from '../../support/sample-rows.ts';
import { testFolder } from '../../support/test-folder.ts';
import { words } from '../../support/words.ts';

const written = (...args: string[]): Record<string, unknown>[] =>
  JSON.parse(succeed(['generate', '--json', ...args]).stdout);

test('by default the last window has just ended', () => {
  const newest = () => Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS - WINDOW_MS;
  const before = newest();
  const files = written('--out', testFolder(), '--rows', '0', '--windows', '3', '--export', 'newswire');
  const starts = files.map(({ window_start }) => Date.parse(String(window_start)));
  const last = starts.at(-1) ?? 0;
  assert.ok(last === before || last === newest());
  const distances = starts.map((start) => (start - last) / WINDOW_MS);
  assert.deepEqual(distances, [-2, -1, 0]);
});

test('the command writes what it reports, rows of the subscriptions with the content type', () => {
  const out = path.join(testFolder(), 'new', 'drop');
  const window = ['--out', out, '--start', '20261121T1010Z', '--windows', '2', '--rows', '20'];
  const args = [...window, '--form', 'csv', '--subscriptions', '7001:text,7002:image'];
  const expected = ['10', '20'].flatMap((minute) =>
    EXPORT_NAMES.map((name) => ({
      file: path.join(out, `${name}.20261121T10${minute}Z.csv`),
      export: name,
      window_start: `2026-11-21T10:${minute}:00Z`,
      rows: 20,
    })),
  );
  assert.deepEqual(written(...args), expected);
  const files = expected.map(({ file }) => file);
  assert.deepEqual(readdirSync(out).toSorted(), files.map((file) => path.basename(file)).toSorted());
  for (const file of files) {
    const rows = csvValues(readFileSync(file, 'utf8'));
    const own = path.basename(file).startsWith('newswire') ? '7001' : '7002';
    assert.ok(rows.every((row) => row.subscription_id === own));
  }
});

test('every row keeps to the export format', () => {
  for (const form of ['ndjson', 'csv.zst']) {
    const files = written('--out', testFolder(), '--rows', '3000', '--form', form);
    const paths = files.map(({ file }) => String(file));
    const verdicts = JSON.parse(succeed(['ingest', 'validate', ...paths, '--json']).stdout);
    assert.equal(verdicts.length, 2);
    for (const { valid, rows, errors, ignored_columns } of verdicts)
      assert.deepEqual([valid, rows, errors, ignored_columns], [true, 3000, [], []]);
  }
});

test('impossible option values are wrong usage', () => {
  const wrong = `--start 2026-11-21T10:11:00Z; --start 2026-02-30T00:00:00Z; --start 1999-12-31T00:00:00Z;
    --start 2099-12-31T23:50:00Z --windows 2; --form csv --trailer; --form json; --windows 0; --rows 1e3;
    --export text; --subscriptions 7001,; --subscriptions 7001:video; --backfill Autumn`;
  for (const options of wrong.split(';'))
    assert.equal(runToEnd(['generate', '--out', 'never', ...words(options)]).status, 2, options);
  assert.equal(runToEnd(['generate', '--rows', '1']).status, 2, '--out is missing');
});
