/** `wirewatch pull --compare`: it accepts every good copy, and detects every bad one (contract: Client procedures). */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openApiDocument } from '../../../src/openapi/document.ts';
import { DAY_MS, formatMs } from '../../../src/time.ts';
import type { Comparison } from '../../../src/tools/pull/compare.ts';
import { sharedAppliance } from '../../support/appliance.ts';
import { assertFailed, runBeside, succeedBeside } from '../../support/command.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../../support/export-files.ts';
import { words } from '../../support/manual.ts';
import { inFolder } from '../../support/program.ts';
import { pullArgs, sqlIn } from '../../support/pull.ts';

// Separators of lines and paragraphs, which end no line of NDJSON.
const headlines = ['Mills\u2028 A', 'Mills\u2029 A', ...Array.from({ length: 28 }, () => 'Mills')];
const texts = headlines.map((article_headline) => newRow({ article_headline }));
const image = newRow({ source_internal_id: 601 });

const appliance = await sharedAppliance();
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(texts));
await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([image]));

type Compared = Comparison & { readonly equal: boolean };

const argsIn = (folder: string, into: string, ...more: string[]) =>
  pullArgs(appliance, folder, '--into', into, ...more);

/** Runs `use` for a full copy, in its own folder. */
const withCopy = (use: (folder: string, into: string) => Promise<void>) =>
  inFolder(async (folder) => {
    const into = join(folder, 'copy.db');
    await succeedBeside(argsIn(folder, into, '--full'));
    await use(folder, into);
  });

async function compared(folder: string, into: string, ...more: string[]): Promise<Compared> {
  const { status, stderr, stdout } = await runBeside(argsIn(folder, into, '--compare', '--json', ...more));
  assert.equal(stderr, '');
  const found: Compared = JSON.parse(stdout);
  assert.equal(status, found.equal ? 0 : 1);
  return found;
}

/** Rescores a row with a later time: no visible member changes, except for `changes`. */
async function scoredAgain(row: Row, changes: Row = {}): Promise<void> {
  const windowMs = nextWindowMs();
  const again = { ...row, last_scored_at: formatMs(windowMs), exported_at: formatMs(windowMs), ...changes };
  await appliance.dropped(fileName('newswire', windowMs), ndjson([again]));
}

const at = (index: number): Row => texts[index] ?? {};

function bodyIn(into: string, id: string): Record<string, unknown> {
  const [row] = sqlIn(into, `SELECT body FROM detections WHERE id = '${id}'`);
  return JSON.parse(String(row?.body));
}

test('the guide and the OpenAPI document say which members change in place', () => {
  const told = /last_scored_at and exported_at.*(updated|brought up to date) in place/;
  for (const text of [words('client-guide'), JSON.stringify(openApiDocument())])
    assert.match(text.replace(/[\s`]+/g, ' '), told);
});

test('finds a copy equal after a rescore in place', () =>
  withCopy(async (folder, into) => {
    const id = idOf(at(0));
    await scoredAgain(at(0));
    await succeedBeside(argsIn(folder, into));
    const [copied, served] = [bodyIn(into, id), await appliance.detection(id)];
    assert.equal(copied.version, served?.version);
    // A naive comparison would find differences.
    assert.notEqual(copied.last_scored_at, served?.last_scored_at);
    assert.notEqual(copied.exported_at, served?.exported_at);
    const all = texts.length + 1;
    const same = { into, equal: true, detections: all, changed_since: 0, differences: [] };
    const not_read = { detections: 0, streams: [] };
    assert.deepEqual(await compared(folder, into), { ...same, not_read });
    const { stdout } = await succeedBeside(argsIn(folder, into, '--compare'));
    assert.equal(stdout, `The copy ${into} matches the service: ${all} detections compared.\n`);
  }));

test('accepts separators of lines within a text, in either format, and half a line at the end', () =>
  inFolder(async (folder) => {
    for (const format of ['sqlite', 'ndjson']) {
      const into = join(folder, `copy.${format}`);
      await succeedBeside(argsIn(folder, into, '--format', format, '--full'));
      for (const headline of ['Mills\u2028 A', 'Mills\u2029 A'])
        assert.ok(readFileSync(into, 'utf8').includes(headline), `${format} must have the line separators`);
      // As after a crash.
      if (format === 'ndjson') writeFileSync(into, '{"id":"t.70', { flag: 'a' });
      assert.equal((await compared(folder, into, '--format', format)).equal, true, format);
    }
  }));

test('finds a copy equal after the appliance was moved to another address', () =>
  withCopy(async (folder, into) => {
    const id = idOf(image, 'imagewire');
    await appliance.restart({ WIREWATCH_SERVER_BASE_URL: 'https://moved.example/ww' });
    try {
      const [copied, served] = [bodyIn(into, id), await appliance.detection(id)];
      assert.notDeepEqual(copied.source, served?.source);
      assert.equal((await compared(folder, into)).equal, true);
    } finally {
      await appliance.restart();
    }
  }));

test('finds missing and extra detections, other versions and other content', () =>
  withCopy(async (folder, into) => {
    const [missing, older, other, foreign] = [idOf(at(1)), idOf(at(2)), idOf(at(3)), 't.7001.9.9'];
    const changed = { ...bodyIn(into, other), article: { id: 5 } };
    sqlIn(
      into,
      `DELETE FROM detections WHERE id = '${missing}';
       UPDATE detections SET version = 7, body = json_set(body, '$.version', 7) WHERE id = '${older}';
       UPDATE detections SET body = '${JSON.stringify(changed)}' WHERE id = '${other}';
       INSERT INTO detections SELECT '${foreign}', 1, json_set(body, '$.id', '${foreign}')
         FROM detections WHERE id = '${other}'`,
    );
    const { equal, detections, differences } = await compared(folder, into);
    assert.deepEqual([equal, detections], [false, texts.length + 1]);
    const byKind = differences.map((one) => [one.kind, [one.id, one.copy_version, one.service_version]]);
    assert.deepEqual(Object.fromEntries(byKind), {
      'not in the copy': [missing, null, 1],
      'other version': [older, 7, 1],
      'other content': [other, 1, 1],
      'not in the service': [foreign, 1, null],
    });
    assert.equal(differences.length, 4);
    const { status, stdout } = await runBeside(argsIn(folder, into, '--compare'));
    assert.equal(status, 1);
    assert.match(stdout, /other content +1 +1$/m);
    assert.match(stdout, /^The copy .*copy\.db differs from the service: 4 differences in 31 detections\.$/m);
  }));

test('ignores changes since the copy was last updated', () =>
  withCopy(async (folder, into) => {
    await scoredAgain(at(4), { strength_score: 99 });
    const early = await compared(folder, into);
    assert.deepEqual([early.equal, early.changed_since, early.differences], [true, 1, []]);
    await succeedBeside(argsIn(folder, into));
    const late = await compared(folder, into);
    assert.deepEqual([late.equal, late.changed_since], [true, 0]);
  }));

test('says which detections the key no longer reads, and what an empty copy lacks; one of the future is no difference', () =>
  withCopy(async (folder, into) => {
    const add = (id: string, changes: string) =>
      sqlIn(
        into,
        `INSERT INTO detections SELECT '${id}', 1, json_set(body, '$.id', '${id}', ${changes})
         FROM detections WHERE id = '${idOf(at(5))}'`,
      );
    add('t.7001.1.77', `'$.first_detected_at', '${formatMs(Date.now() + DAY_MS)}'`);
    assert.equal((await compared(folder, into)).equal, true, 'no period has one of the future');
    sqlIn(into, "DELETE FROM detections WHERE id = 't.7001.1.77'");
    add('t.7009.1.1', "'$.subscription_id', 7009");
    const { equal, not_read } = await compared(folder, into);
    assert.deepEqual([equal, not_read], [true, { detections: 1, streams: ['7009 text'] }]);
    const compare = async () => (await runBeside(argsIn(folder, into, '--compare'))).stdout;
    const all = texts.length + 1;
    const others = 'Not compared: 1 detection of 7009 text, which this key no longer reads.\n';
    const same = `The copy ${into} matches the service: ${all} detections compared.\n`;
    assert.equal(await compare(), same + others);
    sqlIn(into, 'DELETE FROM detections');
    const missing = `\nThe copy ${into} differs from the service: ${all} differences in 0 detections.\n`;
    assert.ok((await compare()).endsWith(missing));
  }));

test('accepts lines of another client: the highest version of each, members in any order, with --since', async () => {
  const since = new Date().toISOString();
  await scoredAgain(at(6), { strength_score: 12 });
  await withCopy(async (folder, into) => {
    const upToDate = new Date().toISOString();
    const current = sqlIn(into, 'SELECT body FROM detections').map(({ body }) =>
      Object.entries(JSON.parse(String(body))).reverse(),
    );
    const first = [['version', 1], ...(current[0] ?? []).filter(([name]) => name !== 'version')];
    const lines = [...current, first].map((members) => `${JSON.stringify(Object.fromEntries(members))}\n`);
    const mine = join(folder, 'mine.ndjson');
    writeFileSync(mine, lines.join(''));
    assert.equal((await compared(folder, mine, '--format', 'ndjson')).equal, true);
    assert.ok(!existsSync(`${mine}.place`) && !existsSync(`${mine}.lock`), 'no file may be created');
    writeFileSync(mine, lines.filter((line) => !line.includes(idOf(at(6)))).join(''));
    assert.equal((await compared(folder, mine, '--format', 'ndjson', '--since', upToDate)).equal, false);
    const left = await compared(folder, mine, '--format', 'ndjson', '--since', since);
    assert.deepEqual([left.equal, left.changed_since], [true, 1]);
    writeFileSync(mine, `${lines[0]}{"id":"t.7001.1.1"}\n`);
    const wrong = await runBeside(argsIn(folder, mine, '--compare', '--format', 'ndjson'));
    assertFailed(wrong, 1, /mine\.ndjson, line 2: expected a detection/);
  });
});

test('refuses an incomplete copy, and conflicting options', () =>
  withCopy(async (folder, into) => {
    const notes = join(folder, 'notes.txt');
    writeFileSync(notes, 'my notes');
    sqlIn(into, 'UPDATE state SET cursor = NULL');
    for (const [status, message, copy, ...more] of [
      [1, /there is no copy .*--full/, join(folder, 'none.db')],
      [1, /was not made by this version of pull.*--format ndjson/, notes],
      [1, /is not complete yet.*without --compare/, into],
      [2, /--compare changes nothing: leave out --full and --follow/, into, '--full'],
      [2, /--compare changes nothing: leave out --full and --follow/, into, '--follow'],
    ] as const) {
      assertFailed(await runBeside(argsIn(folder, copy, '--compare', ...more)), status, message);
      assert.ok(!existsSync(join(folder, 'none.db')));
    }
  }));
