/** `ingest explain` and `ingest validate`: their result equals that of ingest; and what `ingest status` says of files. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitingFiles } from '../../src/drop/waiting-names.ts';
import { parseFileName } from '../../src/exports/file-name.ts';
import { FirstRows } from '../../src/ingest/reading/dry-run.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { createInstallation, sharedAppliance } from '../support/appliance.ts';
import { assertFailed, runToEnd } from '../support/command.ts';
import { fileName, ndjson, newRow, newRows, nextWindowMs, packed } from '../support/export-files.ts';
import { alertsOf } from '../support/installation-state.ts';
import { testFolder } from '../support/test-folder.ts';

const appliance = await sharedAppliance({
  WIREWATCH_INGEST_QUIET_MS: '0',
  WIREWATCH_INGEST_TRUNCATED_SECONDS: '0.2',
  WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false',
});

const run = (...args: string[]) => appliance.cli(args, { anyStatus: true }).stdout;

/** Explains a file outside of the drop folder. @returns the explanation */
function explain(name: string, content: string | Buffer) {
  const path = join(appliance.data, name);
  writeFileSync(path, content);
  const asked = appliance.cli(['ingest', 'explain', path, '--json'], { anyStatus: true });
  const explained = JSON.parse(asked.stdout);
  assert.equal(asked.status, explained.valid === true ? 0 : 1);
  const validated = appliance.cli(['ingest', 'validate', path, '--json'], { anyStatus: true });
  assert.equal(JSON.parse(validated.stdout).valid, explained.valid);
  assert.equal(validated.status, explained.valid === true ? 0 : 1);
  return explained;
}

/** The outcomes of `explain` whose names differ in the log. */
const OUTCOMES: Readonly<Record<string, string>> = { fail: 'failed', 'change nothing': 'repeated' };

/** Explains a file, drops it, and compares its destination and its changes. */
async function explainAndDrop(name: string, content: string | Buffer, expected: RegExp) {
  const explained = explain(name, content);
  assert.match(explained.when_dropped, expected);
  const line = await appliance.dropped(name, content);
  const fate =
    /would (?:be )?(applied|held|refused|fail|change nothing)/.exec(explained.when_dropped)?.[1] ?? '';
  assert.equal(line.msg, `file ${OUTCOMES[fate] ?? fate}`, JSON.stringify(line));
  return { explained, line };
}

test('a good window: the number of created, changed and unchanged detections', async () => {
  const known = newRow();
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([known]));
  const windowMs = nextWindowMs();
  const scored = { ...known, strength_score: 12.5, last_scored_at: formatMs(windowMs) };
  const rows = [known, scored, newRow(), newRow({ subscription_id: 7999 })];
  const name = fileName('newswire', windowMs);
  const { explained, line } = await explainAndDrop(name, ndjson(rows), /^it would be applied$/);
  const { created, updated, rescored, unchanged } = line;
  assert.deepEqual(explained.effect, { rows: 3, created, updated, rescored, unchanged });
  assert.deepEqual([created, updated, rescored, unchanged], [1, 1, 0, 1]);
  assert.deepEqual(explained.unknown_rows, line.unknown_rows);
  assert.equal(explained.export, 'newswire');
  assert.deepEqual(explained.history, []);

  const nothing = new RegExp(`^it would change nothing, because file number ${line.number} `);
  const again = await explainAndDrop(name, ndjson(rows), nothing);
  assert.equal(again.explained.window_status, 'done');
  assert.equal(again.explained.same_content_as, line.number);
  assert.equal(again.explained.history[0].outcome, 'applied');
  assert.equal(again.line.msg, 'file repeated');
});

test('what keeps a file waiting, and what is left out of it, is said', () => {
  const name = fileName('newswire', nextWindowMs());
  appliance.cli(['ingest', 'pause']);
  const { when_dropped } = explain(name, ndjson([newRow()]));
  const paused = 'it would stay where it is until "wirewatch ingest resume", and then be applied';
  assert.equal(when_dropped, paused);
  appliance.cli(['ingest', 'resume']);
  const path = join(appliance.data, name);
  writeFileSync(path, ndjson([newRow(), newRow({ strength_score: 500 })]));
  const explained = runToEnd(['ingest', 'explain', path, '--data', appliance.data], {
    WIREWATCH_INGEST_BAD_ROWS: 'skip',
  });
  // The first search for missing windows may have found its own.
  const effect = /without its bad rows\.\n(Window status: missing\n)?effect: 1 created, .* unchanged\n/;
  assert.match(explained.stdout, effect);
});

test('by its name alone, the file that waits is explained, and one that is never read is said to be', async () => {
  const name = fileName('newswire', nextWindowMs());
  await appliance.dropped(name, 'broken\n');
  await appliance.dropped(name, ndjson([newRow()]));
  const { file, valid, when_dropped } = JSON.parse(run('ingest', 'explain', name, '--json'));
  assert.deepEqual([file, valid], [join(appliance.drop, name), true]);
  assert.match(when_dropped, /^it would be held, because its window is failed/);
  const [target, link] = [join(appliance.data, 'target'), join(appliance.drop, 'newswire.backfill-l.ndjson')];
  writeFileSync(target, ndjson([newRow()]));
  symlinkSync(target, link);
  const isLeft = /: not a regular file[\s\S]*it would stay where it is, and never be read/;
  assert.match(run('ingest', 'explain', link), isLeft);
  rmSync(link);
});

test('before the first start, everything is new', () => {
  using fresh = createInstallation();
  const row = newRow();
  const path = join(fresh.data, fileName('newswire', nextWindowMs()));
  writeFileSync(path, ndjson([row, newRow(), row]));
  const { effect } = JSON.parse(fresh.cli(['ingest', 'explain', path, '--json']).stdout);
  assert.deepEqual(effect, { rows: 3, created: 2, updated: 0, rescored: 0, unchanged: 1 });
});

test('a link to a file is followed; a folder is refused', () => {
  const [path, link, inFolder] = ['target', 'link', 'folder'].map((label) =>
    join(appliance.data, `newswire.backfill-${label}.ndjson`),
  ) as [string, string, string];
  writeFileSync(path, ndjson([newRow()]));
  symlinkSync(path, link);
  mkdirSync(inFolder);
  for (const command of ['validate', 'explain']) {
    assert.equal(JSON.parse(appliance.cli(['ingest', command, link, '--json']).stdout).rows, 1);
    const { status, stderr } = appliance.cli(['ingest', command, inFolder], { anyStatus: true });
    assert.deepEqual([status, stderr.includes('folder.ndjson is a folder. Give the path of an ')], [1, true]);
  }
  const mistyped = appliance.cli(['ingest', 'validate', path, `${path}.old`], { anyStatus: true });
  assert.deepEqual([mistyped.stdout, mistyped.stderr.includes('cannot read')], ['', true]);
});

test('the first rows are shown whatever they hold', () => {
  const first = new FirstRows();
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  first.add({ line: 1, raw: { deep, long: 'x'.repeat(1_000_000), strength_score: 7 }, origin: null });
  const shown = JSON.parse(JSON.stringify(first.rows))[0].columns;
  assert.deepEqual(shown.strength_score, { value: 7 });
  assert.equal(shown.deep.value, '(nested too deeply to show)');
  assert.equal(shown.long.value.length, 201);
});

test('a bad window fails with the same reasons, and its next file is held', async () => {
  const windowMs = nextWindowMs();
  const bad = ndjson([newRow(), newRow({ strength_score: 'high' })]);
  const name = fileName('newswire', windowMs);
  const { explained, line } = await explainAndDrop(name, bad, /^it would fail, and none/);
  assert.equal(explained.valid, false);
  assert.equal(explained.effect, null);
  assert.equal(explained.errors_total, 1);
  assert.deepEqual(explained.errors[0].line, 2);
  assert.equal(line.msg, 'file failed');
  const good = ndjson([newRow()]);
  const held = await explainAndDrop(name, good, /^it would be held, because its window is failed$/);
  assert.equal(held.line.msg, 'file held');
});

test('errors are counted by column and kind, with their first lines', () => {
  const rows = newRows(1200, { strength_score: 'high' });
  rows.push(newRow({ article_id: -1 }), newRow());
  const path = join(appliance.data, fileName('newswire', nextWindowMs()));
  writeFileSync(path, ndjson(rows));
  const output = appliance.cli(['ingest', 'validate', path], { anyStatus: true }).stdout;
  assert.deepEqual(output.split('\n').slice(1, -1), [
    '  strength_score: expected a number from 0 to 100, found for example "high" (1200 times, lines 1, 2, 3, 4, 5, …)',
    '  article_id: expected an integer from 0 to 999,999,999,999,999, found -1 (line 1201)',
  ]);
  assert.match(output, /^invalid: 1201 errors in 1201 of 1202 rows/);
  const validated = appliance.cli(['ingest', 'validate', path, '--json'], { anyStatus: true });
  const { error_groups, rows_with_errors } = JSON.parse(validated.stdout);
  assert.equal(rows_with_errors, 1201);
  const groups = error_groups.map(({ column, count }: Record<string, unknown>) => `${column} ${count}`);
  assert.deepEqual(groups, ['strength_score 1200', 'article_id 1']);
});

test('names without an id, and misspelled columns, are noted', async () => {
  const name = fileName('newswire', nextWindowMs());
  const rows = [
    newRow({ article_publisher_name: 'Nobody', publisher_name: 'x', article_headlin: 'y' }),
    newRow({ article_publisher_name: 'Somebody', article_publisher_id: 5 }),
  ];
  assert.equal(explain(name, ndjson(rows)).names_without_id, 1);
  const output = appliance.cli(['ingest', 'validate', join(appliance.data, name)]).stdout;
  assert.match(output, /^valid: 2 rows/);
  const unnamed = /1 row with article_publisher_name but without article_publisher_id: the name is ignored/;
  assert.match(output, unnamed);
  const ignored = /ignored columns: article_headlin \(did you mean article_headline\?\), publisher_name/;
  assert.match(output, ignored);
  const line = await appliance.dropped(name, ndjson(rows));
  assert.equal(line.names_without_id, 1);
});

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
  for (const command of ['explain', 'validate']) {
    const ended = appliance.cli(['ingest', command, path], { anyStatus: true });
    assertFailed(ended, 1, /cannot read .*: permission denied\. .* as the user that Wirewatch runs as/);
  }
});

test('a file of another export, name or window, and a truncated one; an old window is advised to be a backfill', async () => {
  const nowMs = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS;
  const good = ndjson([newRow()]);
  const early = fileName('newswire', nowMs + 2 * WINDOW_MS);
  const isEarly = /^it would stay where it is until its window has ended, .*, and then be /;
  assert.match(explain(early, good).when_dropped, new RegExp(`${isEarly.source}read$`));
  const off = explain(early.replace('newswire', 'imagewire'), 'x').when_dropped;
  assert.match(off, new RegExp(`${isEarly.source}refused: the export imagewire is switched off`));
  appliance.put(early, good);
  const isOff = /^it would be refused: the export imagewire is switched off/;
  const isAhead = /^it would be refused, because its window is more than a day in the future$/;
  for (const [name, content, expected] of [
    [fileName('imagewire', nextWindowMs()), ndjson([newRow({ unique_id: 'x' })]), isOff],
    [fileName('imagewire', nextWindowMs()), 'no row', isOff],
    [fileName('newswire', nowMs + 2 * DAY_MS), good, isAhead],
    ['newswire.tomorrow.xml', 'x', /^it would be refused, because of its name$/],
    [
      fileName('newswire', nextWindowMs(), 'ndjson.gz'),
      packed('ndjson.gz', good).subarray(0, -10),
      /^it would fail unless it is still being written/,
    ],
  ] as const)
    await explainAndDrop(name, content, expected);
  assert.ok(existsSync(join(appliance.drop, early)), 'later files were processed, but this one waits');
  assert.match(explain('.newswire.part', 'x').when_dropped, /ignored until it has its final name/);
  const old = explain(fileName('newswire', nowMs - 91 * DAY_MS), good);
  assert.match(old.advice, /more than 90 days ago\..*rename the file to newswire\.backfill-LABEL\.ndjson$/);
  assert.equal(explain(fileName('newswire', nextWindowMs()), good).advice, null);
});

test('by the name of a dropped file, the archived one is found, and unknown subscriptions are named', async () => {
  const name = fileName('newswire', nextWindowMs());
  await appliance.dropped(name, ndjson([newRow()]));
  await appliance.dropped(name, ndjson([newRow(), newRow({ subscription_id: 7998 })]));
  const explained = JSON.parse(appliance.cli(['ingest', 'explain', name, '--json']).stdout);
  // The newest one, under its numbered name.
  assert.match(explained.file, /\/drop\/archive\/.*\.\d+\.ndjson$/);
  assert.deepEqual([explained.valid, explained.rows, explained.history.length], [true, 2, 2]);
  assert.deepEqual(explained.unknown_rows, { '7998:text': 1 });
  const { stdout } = appliance.cli(['ingest', 'explain', name]);
  assert.match(stdout, /skipped: 1 row of 7998:text, because there is no such subscription/);
  const skipped = (await alertsOf(appliance)).find((alert) => alert.name === 'rows skipped');
  assert.match(skipped?.detail ?? '', /rows were skipped in .*: 1 row of subscription 7998 \(text\)$/);
  assert.ok(skipped?.what_to_do.endsWith(`wirewatch ingest explain ${name}`), skipped?.what_to_do);
});

test('a known name has a history, even without a file', async () => {
  const windowMs = nextWindowMs();
  const name = fileName('newswire', windowMs);
  const line = await appliance.dropped(name, ndjson([newRow()]));
  rmSync(join(appliance.drop, String(line.destination)));
  const { window_start, history } = JSON.parse(appliance.cli(['ingest', 'explain', name, '--json']).stdout);
  const outcomes = history.map(({ outcome }: { outcome: string }) => outcome);
  assert.deepEqual([window_start, outcomes], [formatMs(windowMs), ['applied']]);
  const nothing =
    /If dropped now, nothing would happen: the file is no longer there, and only its history is/;
  assert.match(appliance.cli(['ingest', 'explain', name]).stdout, nothing);
  const unknown = appliance.cli(['ingest', 'explain', 'newswire.never.ndjson'], { anyStatus: true });
  assert.equal(unknown.status, 1);
});
