/** The drop folder: which names are read, what is left alone, and where each file ends. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DAY_MS, formatMs, HOUR_MS, utcDay, WINDOW_MS } from '../../src/time.ts';
import { type Appliance, createKey, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { followStream } from '../support/arrivals.ts';
import {
  contentOf,
  fileName,
  idOf,
  ndjson,
  newRow,
  nextWindowMs,
  type Row,
} from '../support/export-files.ts';
import type { LogLine } from '../support/program.ts';

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());

before(async () => {
  appliance = await startAppliance();
});
after(() => appliance?.stop());

const inDrop = (...names: string[]) => join(appliance.drop, ...names);
const reasonBeside = (destination: unknown) =>
  JSON.parse(readFileSync(inDrop(`${destination}.reason.json`), 'utf8'));

/** Drops one more file and waits for it: by then what was there before has been seen. */
async function lookedAt(): Promise<void> {
  const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(line.msg, 'file applied');
}

function windowStatus(exportName: string, windowMs: number): string | undefined {
  const { stdout } = appliance.cli(['window', 'list', exportName, '--limit', '100000', '--json']);
  const windows: { window_start: string; status: string }[] = JSON.parse(stdout);
  return windows.find(({ window_start }) => window_start === formatMs(windowMs))?.status;
}

function later(row: Row, members: Row = {}): Row {
  const scored = formatMs(Date.parse(String(row.last_scored_at)) + 60_000);
  return { ...row, last_scored_at: scored, ...members };
}

test('names that are being written are left alone', async () => {
  const window = nextWindowMs();
  const whole = fileName('newswire', window);
  const names = [`.${whole}`, `${whole}.tmp`, `${whole}.part`, `${whole}.partial`, '.hidden', 'x.tmp'];
  for (const name of names) writeFileSync(inDrop(name), ndjson([newRow()]));
  await lookedAt();
  await lookedAt();
  for (const name of names) assert.ok(existsSync(inDrop(name)), name);
  for (const name of names) rmSync(inDrop(name));
});

test('every other name goes to refused/ with a reason, its content untouched', async () => {
  const names = [
    'readme.txt',
    'newswire',
    'newswire.ndjson',
    'newswire.20261101T1010Z',
    'newswire.20261101T1010Z.json',
    'newswire.20261101T1010Z.ndjson.bz2',
    'newswire.20261101T1010Z.NDJSON',
    'Newswire.20261101T1010Z.ndjson',
    'textwire.20261101T1010Z.ndjson',
    'newswire.20261101T1011Z.ndjson',
    'newswire.20261101T101000Z.ndjson',
    'newswire.20261301T1010Z.ndjson',
    'newswire.20260230T1010Z.ndjson',
    'newswire.20261101T2400Z.ndjson',
    'newswire.20261101T1010.ndjson',
    'newswire.2026-11-01T10:10Z.ndjson',
    'newswire..ndjson',
    'newswire.backfill-.ndjson',
    'newswire.backfill-Upper.ndjson',
    'newswire.backfill-a b.ndjson',
    `newswire.backfill-${'x'.repeat(65)}.ndjson`,
    'newswire.backfill.ndjson',
    ' newswire.20261101T1010Z.ndjson',
    'new\nline.csv',
    'newswire.20261101T1010Z.ndjson\n',
    'tab\tand \u001b[31mcolour',
    'größe.ndjson',
    '__proto__',
    '-rf',
    'x'.repeat(250),
    'ü'.repeat(125),
  ];
  for (const name of names) {
    writeFileSync(inDrop(name), `content of ${name}`);
    const line = await appliance.dealtWith(name);
    assert.equal(line.msg, 'file refused');
    assert.ok(!existsSync(inDrop(name)));
    assert.equal(readFileSync(inDrop(String(line.destination)), 'utf8'), `content of ${name}`);
    const reason = reasonBeside(line.destination);
    assert.equal(reason.file, name);
    assert.match(reason.reason, /expected <export>\.<window start>\.<form>/);
  }
});

test('a name that only differs by what was shortened does not overwrite another', async () => {
  for (const end of ['a', 'b', 'c']) {
    const name = `${'x'.repeat(200)}${end}`;
    writeFileSync(inDrop(name), name);
    const line = await appliance.dealtWith(name);
    assert.equal(readFileSync(inDrop(String(line.destination)), 'utf8'), name);
  }
});

test('a window that has not ended stays where it is; one more than a day ahead is refused', async () => {
  const now = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS;
  const early = [now + WINDOW_MS, now + 2 * WINDOW_MS, now + DAY_MS - HOUR_MS];
  for (const window of early) appliance.put(fileName('newswire', window), ndjson([newRow()]));
  await lookedAt();
  await lookedAt();
  for (const window of early) {
    assert.ok(existsSync(inDrop(fileName('newswire', window))));
    rmSync(inDrop(fileName('newswire', window)));
  }
  const ahead = await appliance.dropped(
    fileName('newswire', now + DAY_MS + 2 * WINDOW_MS),
    ndjson([newRow()]),
  );
  assert.equal(ahead.msg, 'file refused');
  const { reason, next } = reasonBeside(ahead.destination);
  assert.match(reason, /more than a day in the future/);
  assert.match(next, /the problem given as the reason, then drop the file again/);
  assert.doesNotMatch(next, /name/, 'the name is right');
});

test('a window that ended just now is read', async () => {
  const window = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS - WINDOW_MS;
  const line = await appliance.dropped(fileName('imagewire', window), ndjson([newRow()]));
  assert.equal(line.msg, 'file applied');
});

test('links, pipes and folders are left alone, whatever they are called', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'wirewatch-outside-'));
  try {
    const target = join(outside, 'target.ndjson');
    const row = newRow();
    writeFileSync(target, ndjson([row]));
    mkdirSync(join(outside, 'folder'));
    const [toFile, toNothing, toFolder, folder, pipe] = Array.from({ length: 5 }, () =>
      inDrop(fileName('newswire', nextWindowMs())),
    );
    assert.ok(toFile && toNothing && toFolder && folder && pipe);
    symlinkSync(target, toFile);
    symlinkSync(join(outside, 'nothing'), toNothing);
    symlinkSync(join(outside, 'folder'), toFolder);
    mkdirSync(folder);
    assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
    symlinkSync('/', inDrop('root'));
    await lookedAt();
    await lookedAt();
    assert.equal(readlinkSync(toFile), target);
    assert.equal(readFileSync(target, 'utf8'), ndjson([row]));
    assert.ok(lstatSync(toNothing).isSymbolicLink() && lstatSync(toFolder).isSymbolicLink());
    assert.ok(lstatSync(folder).isDirectory() && lstatSync(pipe).isFIFO());
    assert.equal(await appliance.detection(idOf(row)), null);
    const alone = appliance.serving().log.filter(({ msg }) => msg.startsWith('ignored in the drop folder'));
    assert.equal(alone.length, 6, 'each is named once on the log');
    for (const path of [toFile, toNothing, toFolder, folder, pipe, inDrop('root')])
      rmSync(path, { recursive: true });
  } finally {
    rmSync(outside, { recursive: true });
  }
});

test('a name that is no UTF-8 is left alone', async () => {
  const path = Buffer.concat([
    Buffer.from(inDrop('newswire.')),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('.ndjson'),
  ]);
  writeFileSync(path, 'x');
  await lookedAt();
  await lookedAt();
  assert.ok(existsSync(path));
  rmSync(path);
});

test('a good file ends in archive/, in the folder of its UTC day', async () => {
  const days = [utcDay(Date.now())];
  const name = fileName('newswire', nextWindowMs(), 'csv.gz');
  const content = contentOf('csv.gz', [newRow()]);
  const line = await appliance.dropped(name, content);
  days.push(utcDay(Date.now()));
  assert.ok(
    days.some((day) => line.destination === join('archive', day, name)),
    String(line.destination),
  );
  assert.ok(readFileSync(inDrop(String(line.destination))).equals(content));
  assert.ok(!existsSync(inDrop(name)));
  assert.deepEqual(readdirSync(inDrop('.taken')), []);
});

test('the same content for the same window changes nothing', async () => {
  const window = nextWindowMs();
  const rows = [newRow(), newRow()];
  const name = fileName('newswire', window);
  const first = await appliance.dropped(name, ndjson(rows));
  const again = await appliance.dropped(name, ndjson(rows));
  assert.equal(again.msg, 'file repeated');
  assert.equal(again.reason, `same content as file ${first.number}, which was already applied`);
  assert.equal(again.destination, String(first.destination).replace(/\.ndjson$/, `.${again.number}.ndjson`));
  for (const line of [first, again]) {
    assert.equal(readFileSync(inDrop(String(line.destination)), 'utf8'), ndjson(rows));
  }
  for (const row of rows) assert.equal((await appliance.detection(idOf(row)))?.version, 1);
  // For another window it is merged row by row.
  const other = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
  assert.deepEqual([other.msg, other.unchanged], ['file applied', 2]);
});

test('a correction is merged, and withdraws nothing', async () => {
  const window = nextWindowMs();
  const [kept, corrected, rescored] = [newRow(), newRow(), newRow()];
  await appliance.dropped(fileName('newswire', window), ndjson([kept, corrected, rescored]));
  const correction = ndjson([later(corrected, { strength_score: 97 }), later(rescored), newRow()]);
  const line = await appliance.dropped(fileName('newswire', window), correction);
  assert.equal(line.msg, 'file applied');
  assert.deepEqual([line.created, line.updated, line.rescored, line.unchanged], [1, 1, 1, 0]);
  assert.equal((await appliance.detection(idOf(kept)))?.version, 1);
  const changed = await appliance.detection(idOf(corrected));
  assert.deepEqual([changed?.version, changed?.strength.band], [2, 'max']);
  const same = await appliance.detection(idOf(rescored));
  assert.deepEqual([same?.version, same?.last_scored_at], [1, later(rescored).last_scored_at]);
});

test('a bad second file for a window that is done fails, and the window stays done', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  await appliance.dropped(name, ndjson([newRow()]));
  const line = await appliance.dropped(name, 'broken\n');
  assert.deepEqual([line.msg, line.destination], ['file failed', `failed/${name}`]);
  assert.equal(windowStatus('newswire', window), 'done');
  const good = await appliance.dropped(name, ndjson([newRow()]));
  assert.equal(good.msg, 'file applied', 'and its next file is read');
});

test('files for a failed window are held; window reset reads the newest of them', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const rows = [newRow(), newRow(), newRow()];
  assert.equal((await appliance.dropped(name, 'broken\n')).msg, 'file failed');
  assert.equal(windowStatus('newswire', window), 'failed');
  assert.match(reasonBeside(`failed/${name}`).next, /wirewatch window reset newswire 2026-/);
  const held = await appliance.dropped(name, ndjson(rows.slice(0, 1)));
  assert.deepEqual([held.msg, held.destination], ['file held', `held/${name}`]);
  const newest = await appliance.dropped(name, ndjson(rows.slice(1)));
  assert.equal(newest.destination, `held/${name.replace('.ndjson', `.${newest.number}.ndjson`)}`);
  for (const row of rows) assert.equal(await appliance.detection(idOf(row)), null);
  const arrived = await followStream(appliance);

  const start = name.split('.')[1] ?? '';
  const { stdout } = appliance.cli(['window', 'reset', 'newswire', start, '--json']);
  assert.equal(JSON.parse(stdout).outcome, 'applied');
  assert.equal(windowStatus('newswire', window), 'done');
  assert.ok(!existsSync(inDrop(String(newest.destination))));
  assert.ok(!existsSync(inDrop(`${newest.destination}.reason.json`)));
  assert.ok(existsSync(inDrop('held', name)), 'the older one stays');
  const shown = await Promise.all(rows.map((row) => appliance.detection(idOf(row))));
  assert.deepEqual(
    shown.map((detection) => detection?.version),
    [undefined, 1, 1],
  );
  assert.deepEqual(
    await arrived(),
    rows.slice(1).map((row) => `${idOf(row)} 1 created`),
    'they reach the stream then',
  );
  const again = appliance.cli(['window', 'reset', 'newswire', start], { anyStatus: true });
  assert.equal(again.status, 1);
  assert.match(again.stderr, /is done/);
});

test('window reset --all reads the held file of every failed window', async () => {
  const windows = [nextWindowMs(), nextWindowMs(), nextWindowMs()];
  const [first = 0, second = 0, third = 0] = windows;
  for (const window of windows) await appliance.dropped(fileName('newswire', window), 'broken\n');
  const rows = [newRow(), newRow()];
  await appliance.dropped(fileName('newswire', second), ndjson(rows.slice(1)));
  await appliance.dropped(fileName('newswire', first), ndjson(rows.slice(0, 1)));
  const list: { name: string; what_to_do: string }[] = JSON.parse(
    appliance.cli(['alert', 'list', '--json']).stdout,
  );
  const told = list.find(({ name }) => name === 'held windows');
  assert.match(told?.what_to_do ?? '', /To read them, run: wirewatch window reset newswire --all$/);
  const reset = JSON.parse(appliance.cli(['window', 'reset', 'newswire', '--all', '--json']).stdout);
  assert.deepEqual(
    reset.map(({ window_start, status }: Record<string, string>) => [window_start, status]),
    [first, second].map((window) => [formatMs(window), 'done']),
  );
  for (const row of rows) assert.ok(await appliance.detection(idOf(row)));
  assert.equal(windowStatus('newswire', third), 'failed', 'no file is held for it');
  assert.equal(appliance.cli(['window', 'reset', 'newswire', '--all', '--json']).stdout, '[]\n');
  for (const args of [['newswire'], ['newswire', formatMs(third), '--all']])
    assert.equal(appliance.cli(['window', 'reset', ...args], { anyStatus: true }).status, 2);
  await appliance.dropped(fileName('newswire', third), ndjson([newRow()]));
  appliance.cli(['window', 'reset', 'newswire', formatMs(third)]);
});

test('window reset without a held file reads the failed one again', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const row = newRow();
  await appliance.dropped(name, 'broken\n');
  const reset = () =>
    appliance.cli(['window', 'reset', 'newswire', formatMs(window), '--json'], { anyStatus: true });
  const failing = reset();
  assert.equal(failing.status, 1);
  assert.equal(JSON.parse(failing.stdout).outcome, 'failed');
  assert.equal(windowStatus('newswire', window), 'failed');
  assert.equal(readFileSync(inDrop('failed', name), 'utf8'), 'broken\n');
  assert.equal(reasonBeside(`failed/${name}`).errors[0].line, 1);
  // An operator mends it where it lies.
  writeFileSync(inDrop('failed', name), ndjson([row]));
  const arrived = await followStream(appliance);
  const mended = reset();
  assert.equal(mended.status, 0, mended.stderr);
  assert.equal(windowStatus('newswire', window), 'done');
  assert.deepEqual(await arrived(), [`${idOf(row)} 1 created`]);
  assert.ok(await appliance.detection(idOf(row)));
  assert.ok(!existsSync(inDrop('failed', name)) && !existsSync(inDrop('failed', `${name}.reason.json`)));
});

test('nothing is overwritten where names are taken', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const numbered = (number: unknown) => name.replace('.ndjson', `.${number}.ndjson`);
  const failed = await appliance.dropped(name, 'broken 1\n');
  // What an operator or an odd name put there before is kept too.
  const next = Number(failed.number) + 1;
  writeFileSync(inDrop('held', name), 'here before');
  writeFileSync(inDrop('held', numbered(next)), 'here before as well');
  const held = await appliance.dropped(name, ndjson([newRow()]));
  assert.equal(held.number, next);
  assert.equal(held.destination, `held/${name.replace('.ndjson', `.${next}.1.ndjson`)}`);
  assert.equal(readFileSync(inDrop('held', name), 'utf8'), 'here before');
  assert.equal(readFileSync(inDrop('held', numbered(next)), 'utf8'), 'here before as well');

  writeFileSync(inDrop('refused', 'taken.txt.reason.json'), '{}');
  const refused = await appliance.dropped('taken.txt', 'x');
  assert.equal(refused.destination, `refused/taken.txt.${refused.number}`);
  assert.equal(readFileSync(inDrop('refused', 'taken.txt.reason.json'), 'utf8'), '{}');
});

test('files that wait together are read in the order of their windows', async () => {
  const windows = [nextWindowMs(), nextWindowMs(), nextWindowMs(), nextWindowMs()];
  appliance.cli(['ingest', 'pause']);
  const names = windows.map((window) => fileName('newswire', window));
  for (const name of names.toReversed()) appliance.put(name, ndjson([newRow()]));
  appliance.put('newswire.backfill-in-order.ndjson', ndjson([newRow()]));
  appliance.cli(['ingest', 'resume']);
  const lines = await Promise.all(
    [...names, 'newswire.backfill-in-order.ndjson'].map((name) => appliance.dealtWith(name)),
  );
  const numbers = lines.map(({ number }) => Number(number));
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  );
});

test('a pause leaves dropped files where they are, also over a restart', async () => {
  appliance.cli(['ingest', 'pause']);
  const name = fileName('newswire', nextWindowMs());
  const row = newRow();
  appliance.put(name, ndjson([row]));
  await appliance.restart();
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.ok(existsSync(inDrop(name)));
  appliance.cli(['ingest', 'resume']);
  assert.equal((await appliance.dealtWith(name)).msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
});

test('rows of unknown subscriptions are skipped and counted, and a replay brings them in', async () => {
  const [known, unknown, other] = [
    newRow(),
    newRow({ subscription_id: 7300 }),
    newRow({ subscription_id: 999_999 }),
  ];
  const text = await appliance.dropped(
    fileName('newswire', nextWindowMs()),
    ndjson([known, unknown, unknown, other]),
  );
  assert.deepEqual([text.msg, text.rows, text.created], ['file applied', 4, 1]);
  assert.deepEqual(text.unknown_rows, { '7300:text': 2, '999999:text': 1 });
  // 7002 has no photos.
  const photo = newRow({ subscription_id: 7002 });
  const image = await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([photo]));
  assert.deepEqual([image.msg, image.unknown_rows], ['file applied', { '7002:image': 1 }]);

  appliance.cli(['subscription', 'add', '7300', '--account', 'agency', '--content-types', 'text']);
  const key = createKey(appliance.cli, 'agency', '7300');
  assert.equal(await appliance.detection(idOf(unknown), key), null);
  const before = await appliance.detection(idOf(known));
  const replayed = JSON.parse(appliance.cli(['ingest', 'replay', '--json']).stdout);
  assert.equal(replayed.created, 1);
  assert.equal(replayed.updated, 0);
  assert.equal((await appliance.detection(idOf(unknown), key))?.version, 1);
  assert.deepEqual(await appliance.detection(idOf(known)), before);
  const again = JSON.parse(appliance.cli(['ingest', 'replay', '--json']).stdout);
  assert.deepEqual([again.created, again.updated, again.rescored], [0, 0, 0]);
});

test('turning the print licence on or off holds from then on; a replay brings what is there up to date', async () => {
  const print = newRow({ article_print: true, article_url: 'https://print.example.com/1' });
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([print]));
  const shown = async () => {
    const detection = await appliance.detection(idOf(print));
    return [detection?.version, detection?.article.url];
  };
  assert.deepEqual(await shown(), [1, null]);
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
  assert.deepEqual(await shown(), [1, null]);
  appliance.cli(['ingest', 'replay']);
  assert.deepEqual(await shown(), [2, 'https://print.example.com/1']);
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'off']);
  appliance.cli(['ingest', 'replay']);
  assert.deepEqual(await shown(), [3, null]);
});

test('bad_rows = skip leaves bad rows out, and writes them with their reasons beside the archived file', async () => {
  await appliance.restart({ WIREWATCH_INGEST_BAD_ROWS: 'skip' });
  const [good, bad, alsoGood] = [newRow(), newRow({ strength_score: 101, source_id: 7 }), newRow()];
  const deep = `{"deep":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
  const content = `${ndjson([good])}not json\n${ndjson([bad, alsoGood])}${deep}\n`;
  const line = await appliance.dropped(fileName('newswire', nextWindowMs()), content);
  assert.deepEqual([line.msg, line.rows, line.created, line.bad_rows], ['file applied', 5, 2, 3]);
  const skipped = readFileSync(inDrop(`${line.destination}.skipped.ndjson`), 'utf8')
    .trim()
    .split('\n');
  const [first, second, third] = skipped.map((text) => JSON.parse(text));
  assert.deepEqual([first.line, first.row], [2, 'not json']);
  assert.deepEqual([second.line, second.row], [3, bad]);
  assert.deepEqual(second.errors.map(({ column }: { column: string }) => column).sort(), [
    'source_id',
    'strength_score',
  ]);
  assert.equal(third.line, 5);
  for (const row of [good, alsoGood]) assert.ok(await appliance.detection(idOf(row)));
  // The next file, without bad rows, has nothing beside it.
  const clean = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.ok(!existsSync(inDrop(`${clean.destination}.skipped.ndjson`)));
  // A file that cannot be read as a whole fails all the same.
  const wrong = await appliance.dropped(
    fileName('newswire', nextWindowMs()),
    `${content}{"end_of_export":true,"rows":1}\n`,
  );
  assert.equal(wrong.msg, 'file failed');
});

test('a file whose rows are mostly bad fails as a whole, and its notes are bounded however many there are', async () => {
  const good = (count: number) => ndjson(Array.from({ length: count }, () => newRow()));
  const bad = (count: number) => '{"x":1}\n'.repeat(count);
  const drop = (content: string) => appliance.dropped(fileName('newswire', nextWindowMs()), content);
  const enough = await drop(good(899) + bad(100));
  assert.deepEqual([enough.msg, enough.created, enough.bad_rows], ['file applied', 899, 100]);
  const few = await drop(good(909) + bad(101));
  assert.deepEqual([few.msg, few.bad_rows], ['file applied', 101], 'a tenth');
  const more = await drop(good(908) + bad(101));
  assert.deepEqual([more.msg, more.bad_rows], ['file failed', 101]);
  const { errors, errors_total } = reasonBeside(more.destination);
  assert.deepEqual(errors[0], {
    line: 0,
    column: null,
    value: 101,
    expected: 'at most 100 bad rows, or 10% of the 1009 rows in the file, so that they can be skipped',
  });
  assert.deepEqual([errors.length, errors[1].line], [20, 909]);
  assert.ok(errors_total > 101);

  const bomb = await drop(bad(40_000));
  assert.equal(bomb.msg, 'file failed');
  const notes = readFileSync(inDrop(`${bomb.destination}.skipped.ndjson`), 'utf8');
  assert.ok(notes.length < 4 * 1024 * 1024 + 100, `${notes.length}`);
  const lines = notes.trimEnd().split('\n');
  assert.equal(lines.length - 1 + JSON.parse(lines.at(-1) ?? '').more_rows, 40_000);
});

test('skipped rows of a file that was not taken do not end beside another', async () => {
  // Cut off behind a bad row: its reading notes the row, and is given up.
  const whole = contentOf(
    'ndjson.gz',
    Array.from({ length: 3000 }, () => newRow({ strength_score: 101 })),
  );
  const cutOff = fileName('newswire', nextWindowMs(), 'ndjson.gz');
  appliance.put(cutOff, whole.subarray(0, whole.length - 20));
  await new Promise((resolve) => setTimeout(resolve, 150));
  const good = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.deepEqual([good.msg, good.bad_rows], ['file applied', 0]);
  assert.ok(!existsSync(inDrop(`${good.destination}.skipped.ndjson`)));
  assert.equal((await appliance.dealtWith(cutOff)).msg, 'file failed');
});

test('require_trailer makes the trailer mandatory for NDJSON, and for NDJSON only', async () => {
  await appliance.restart({ WIREWATCH_INGEST_REQUIRE_TRAILER: 'true' });
  const without = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(without.msg, 'file failed');
  assert.equal(
    reasonBeside(without.destination).errors[0].expected,
    'a last line {"end_of_export":true,"rows":N}',
  );
  const trailer = '{"end_of_export":true,"rows":1}\n';
  const withOne = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]) + trailer);
  assert.equal(withOne.msg, 'file applied');
  const table = await appliance.dropped(
    fileName('newswire', nextWindowMs(), 'csv'),
    contentOf('csv', [newRow()]),
  );
  assert.equal(table.msg, 'file applied');
});

test('a failed window of an export that is switched off is not reset, and its file stays', async () => {
  const window = nextWindowMs();
  const line = await appliance.dropped(fileName('imagewire', window), 'broken\n');
  assert.equal(line.msg, 'file failed');
  const off = { WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' };
  await appliance.restart(off);
  const reset = appliance.cli(['window', 'reset', 'imagewire', formatMs(window)], { anyStatus: true });
  assert.equal(reset.status, 1);
  assert.match(reset.stderr, /imagewire is switched off.*enabled = true/);
  assert.ok(existsSync(inDrop(String(line.destination))));
  await appliance.restart();
  assert.equal(windowStatus('imagewire', window), 'failed');
});

test('files of an export that is switched off are refused', async () => {
  await appliance.restart({ WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' });
  const window = nextWindowMs();
  for (const name of [fileName('imagewire', window), 'imagewire.backfill-off.ndjson']) {
    const line = await appliance.dropped(name, ndjson([newRow()]));
    assert.equal(line.msg, 'file refused');
    assert.match(reasonBeside(line.destination).reason, /imagewire is switched off/);
  }
  assert.equal(windowStatus('imagewire', window), undefined);
  await lookedAt();
});

test('earliest_time moves the bound of first_detected_at', async () => {
  await appliance.restart({ WIREWATCH_INGEST_EARLIEST_TIME: '2020-06-01T00:00:00Z' });
  const on = (time: string) => ndjson([newRow({ first_detected_at: time })]);
  const late = await appliance.dropped(fileName('newswire', nextWindowMs()), on('2020-06-01T00:00:00Z'));
  assert.equal(late.msg, 'file applied');
  const early = await appliance.dropped(fileName('newswire', nextWindowMs()), on('2020-05-31T23:59:59Z'));
  assert.equal(early.msg, 'file failed');
});

test('what was dropped while nothing ran is read at the next start', async () => {
  await appliance.serving().stop();
  const name = fileName('newswire', nextWindowMs());
  appliance.put(name, ndjson([newRow()]));
  await appliance.restart();
  assert.equal((await appliance.dealtWith(name)).msg, 'file applied');
});

test('one of the own folders that is a link is refused at the start', async () => {
  await appliance.serving().stop();
  const elsewhere = mkdtempSync(join(tmpdir(), 'wirewatch-outside-'));
  try {
    rmSync(inDrop('refused'), { recursive: true });
    symlinkSync(elsewhere, inDrop('refused'));
    const result = appliance.cli(['serve', '--port', '0'], { anyStatus: true });
    assert.equal(result.status, 78);
    assert.match(result.stderr, /refused is not a folder: expected a real folder, not a link/);
  } finally {
    rmSync(inDrop('refused'));
    rmSync(elsewhere, { recursive: true });
    await appliance.restart();
  }
});

test('one of the own folders that becomes a link is not followed: nothing is read until it is a folder again', async () => {
  for (const own of ['archive', 'failed', 'refused', 'held', '.taken']) {
    const elsewhere = mkdtempSync(join(tmpdir(), 'wirewatch-outside-'));
    const good = fileName('newswire', nextWindowMs());
    const bad = fileName('newswire', nextWindowMs());
    const alone = `no-export-${own}`;
    const names = [good, bad, alone];
    const seen = appliance.serving().log.length;
    const isUnusable = ({ msg }: LogLine) => msg.startsWith('cannot use the drop folder');
    const isNew = (line: LogLine) => appliance.serving().log.indexOf(line) >= seen;
    renameSync(inDrop(own), inDrop('.away'));
    try {
      symlinkSync(elsewhere, inDrop(own));
      for (const name of names) appliance.put(name, name === good ? ndjson([newRow()]) : 'no rows\n');
      await appliance.serving().logged('that it is not used', (line) => isUnusable(line) && isNew(line));
      assert.equal((await fetch(`${appliance.serving().url}/v1/health`)).status, 503);
      assert.deepEqual(readdirSync(elsewhere), []);
    } finally {
      rmSync(inDrop(own));
      renameSync(inDrop('.away'), inDrop(own));
    }
    const outcomes = [];
    for (const name of names) outcomes.push((await appliance.dealtWith(name)).msg);
    assert.deepEqual(outcomes, ['file applied', 'file failed', 'file refused'], own);
    assert.deepEqual(readdirSync(elsewhere), []);
    rmSync(elsewhere, { recursive: true });
  }
});

test('failed_windows = read reads a file for a failed window, and the one that failed leaves failed/', async () => {
  await appliance.restart({ WIREWATCH_INGEST_FAILED_WINDOWS: 'read' });
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const failed = [await appliance.dropped(name, 'broken 1\n'), await appliance.dropped(name, 'broken 2\n')];
  assert.deepEqual(
    failed.map(({ msg }) => msg),
    ['file failed', 'file failed'],
  );
  const row = newRow();
  assert.equal((await appliance.dropped(name, ndjson([row]))).msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
  assert.equal(windowStatus('newswire', window), 'done');
  assert.deepEqual(
    readdirSync(inDrop('failed')).filter((file) => file.startsWith(name.split('.ndjson')[0] ?? '')),
    [],
  );
  const archive = join('archive', utcDay(Date.now()));
  assert.equal(readFileSync(inDrop(archive, `${name}.failed`), 'utf8').slice(0, 7), 'broken ');
  assert.match(
    reasonBeside(join(archive, `${name}.failed`)).next,
    /^Nothing needs to be done: the window was read/,
  );
  assert.equal(readdirSync(inDrop(archive)).filter((file) => file.startsWith(`${name}.failed`)).length, 4);
});
