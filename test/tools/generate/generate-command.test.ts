/** `wirewatch generate`: its options, output and refusals. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Command, CommanderError } from 'commander';
import { type GenerateOptions, plannedFiles, register } from '../../../src/cli/generate.ts';
import { EXPORT_NAMES } from '../../../src/detection/content-type.ts';
import { Refused } from '../../../src/refused.ts';
import type { SampleSubscription } from '../../../src/tools/generate/rows.ts';
import { runToEnd } from '../../support/command.ts';
import { BOTH, csvValues, folderOf, START_MS, WINDOW_MS } from '../../support/sample-rows.ts';

const wirewatch = (...args: string[]) => runToEnd(args);

const OPTIONS: GenerateOptions = {
  out: 'drop',
  rows: 10,
  seed: '1',
  export: 'both',
  form: 'ndjson.gz',
  subscriptions: BOTH,
};

test('by default the last window has just ended', () => {
  const nowMs = START_MS + 12 * 60_000;
  const files = plannedFiles({ ...OPTIONS, windows: 3 }, nowMs);
  assert.deepEqual(
    files.map(({ exportName, windowStartMs }) => [exportName, windowStartMs - START_MS]),
    [-2, -1, 0].flatMap((at) => [
      ['newswire', at * WINDOW_MS],
      ['imagewire', at * WINDOW_MS],
    ]),
  );
  assert.equal(plannedFiles(OPTIONS, START_MS + WINDOW_MS)[0]?.windowStartMs, START_MS);
  assert.equal(plannedFiles(OPTIONS, START_MS + WINDOW_MS - 1)[0]?.windowStartMs, START_MS - WINDOW_MS);
});

test('conflicting options are wrong usage', () => {
  const text: SampleSubscription[] = [{ id: 7001, contentTypes: ['text'] }];
  for (const wrong of [
    { form: 'csv', trailer: true },
    { export: 'imagewire', subscriptions: text },
    { start: Date.parse('1999-12-31T00:00:00Z') },
    { start: Date.parse('2099-12-31T23:50:00Z'), windows: 2 },
  ] satisfies Partial<GenerateOptions>[]) {
    assert.throws(
      () => plannedFiles({ ...OPTIONS, ...wrong }, START_MS),
      (error: unknown) => error instanceof Refused && error.code === 'usage',
      JSON.stringify(wrong),
    );
  }
  assert.equal(plannedFiles({ ...OPTIONS, subscriptions: text }, START_MS).length, 2);
});

test('the command writes what it reports, and refuses to overwrite it', (t) => {
  const out = path.join(folderOf(t), 'new', 'drop');
  const args = [
    'generate',
    '--out',
    out,
    '--start',
    '20261121T1010Z',
    '--windows',
    '2',
    '--rows',
    '20',
    '--form',
    'csv',
    '--subscriptions',
    '7001:text,7001:image',
    '--json',
  ];
  const first = wirewatch(...args);
  assert.equal(first.status, 0, first.stderr);
  const written: unknown = JSON.parse(first.stdout);
  const windows = [
    ['20261121T1010Z', '2026-11-21T10:10:00Z'],
    ['20261121T1020Z', '2026-11-21T10:20:00Z'],
  ];
  const expected = windows.flatMap(([name, window_start]) =>
    EXPORT_NAMES.map((exportName) => ({
      file: path.join(out, `${exportName}.${name}.csv`),
      export: exportName,
      window_start,
      rows: 20,
    })),
  );
  assert.deepEqual(written, expected);
  assert.deepEqual(readdirSync(out).toSorted(), expected.map(({ file }) => path.basename(file)).toSorted());
  assert.ok(
    csvValues(readFileSync(path.join(out, 'imagewire.20261121T1020Z.csv'), 'utf8')).every(
      (row) => row.subscription_id === '7001',
    ),
  );
  const again = wirewatch(...args);
  assert.equal(again.status, 1);
  assert.match(again.stderr, /newswire\.20261121T1010Z\.csv already exists/);
  assert.equal(again.stdout, '');
});

test('impossible option values are wrong usage', () => {
  for (const wrong of [
    ['--start', '2026-11-21T10:11:00Z'],
    ['--start', '2026-02-30T00:00:00Z'],
    ['--start', ''],
    ['--windows', '0'],
    ['--rows', '-1'],
    ['--rows', '1e3'],
    ['--seed', ''],
    ['--export', 'text'],
    ['--form', 'json'],
    ['--subscriptions', ''],
    ['--subscriptions', '7001,'],
    ['--subscriptions', '0'],
    ['--subscriptions', '7001:video'],
    ['--subscriptions', '7001:text:image'],
    ['--backfill', 'Autumn'],
    ['--backfill', ''],
  ]) {
    const program = new Command('wirewatch').exitOverride().configureOutput({ writeErr() {} });
    register(program);
    assert.throws(
      () => program.parse(['generate', '--out', 'never', ...wrong], { from: 'user' }),
      (error: unknown) => error instanceof CommanderError && error.exitCode === 1,
      wrong.join(' '),
    );
  }
  const ended = wirewatch('generate', '--rows', '1');
  assert.equal(ended.status, 2, '--out is missing');
});
