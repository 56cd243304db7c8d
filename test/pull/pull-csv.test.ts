/** `wirewatch pull`: copies as CSV, and following without polling. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'csv-parse/sync';
import { csvForm } from '../../src/pull/csv.ts';
import { MINUTE_MS } from '../../src/time.ts';
import { type Appliance, startAppliance } from '../support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { inFolder, runProgram } from '../support/program.ts';

const TEXT = { type: 'string', content_types: ['text'] };

test('a cell that looks like a formula is escaped, and CSV is quoted', () => {
  const { head, line } = csvForm({
    fields: [
      { path: 'id', column: 'id', ...TEXT },
      { path: 'event', column: 'event', ...TEXT },
      { path: 'article.headline', column: 'article_headline', ...TEXT },
    ],
  });
  assert.equal(head, 'id,article_headline\n');
  for (const [headline, cell] of [
    ['=1+1', "'=1+1"],
    ['+49 40', "'+49 40"],
    ['-1', "'-1"],
    ['@cmd', "'@cmd"],
    ['\tx', "'\tx"],
    ['\n=1', `"'\n=1"`],
    ['＝1+1', "'＝1+1"],
    ["'=1+1", "''=1+1"],
    ["'tis", "'tis"],
    ['=a"b', `"'=a""b"`],
    ['a, b', '"a, b"'],
    ['a\nb', '"a\nb"'],
    ['plain = text', 'plain = text'],
    [null, ''],
    [undefined, ''],
    [7, '7'],
    [false, 'false'],
  ] as const)
    assert.equal(line({ id: 'x', version: 1, article: { headline } }), `x,${cell}`);
  assert.equal(line({ id: 'x', version: 1 }), 'x,');
});

test('stopping before the columns are known is no fault, and with --follow no failure', () =>
  inFolder(async (folder) => {
    let asked = 0;
    const server = createServer(() => {
      asked += 1;
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : null;
    try {
      writeFileSync(join(folder, 'key'), 'ww_live_x');
      const into = join(folder, 'copy.csv');
      const to = [
        '--base-url',
        `http://127.0.0.1:${port}`,
        '--key-file',
        join(folder, 'key'),
        '--into',
        into,
      ];
      for (const [code, ...more] of [[0, '--follow'], [1]] as const) {
        const before = asked;
        const program = runProgram(['pull', ...to, '--json', ...more]);
        await program.until('its first request', () => (asked > before ? true : undefined));
        program.kill('SIGINT');
        assert.equal(await program.ended, code, program.stderr());
        assert.equal(program.stderr(), '');
        const expected = { into, rows_read: 0, stored: 0, detections: null };
        assert.deepEqual(JSON.parse(program.stdout()), expected);
      }
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }));

describe('against the appliance', () => {
  let appliance: Appliance;
  before(async () => {
    appliance = await startAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
    await drop([newRow({ article_headline: '=HYPERLINK("https://x.example")' }), newRow()]);
  });
  after(() => appliance.stop());

  async function drop(rows: readonly ReturnType<typeof newRow>[]): Promise<void> {
    const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
    assert.equal(line.msg, 'file applied');
  }

  function pullArgs(folder: string, ...args: string[]): string[] {
    const keyFile = join(folder, 'key');
    writeFileSync(keyFile, appliance.key);
    return ['pull', '--base-url', appliance.serving().url, '--key-file', keyFile, ...args];
  }
  const oddities = ["'=1+1", "'", '-1', '+49, "40"', '\t=x', 'a\nb', 'Größe "A"', "''=x", '@x'].map(
    (headline) => newRow({ article_headline: headline }),
  );
  const csvText = (headline: string) => (/^'*[=+\-@\t]/.test(headline) ? `'${headline}` : headline);
  const since = ['--since', new Date(Date.now() - MINUTE_MS).toISOString()];

  test('a CSV copy has the columns of the schema, a line for each version, and is continued', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.csv');
      const args = pullArgs(folder, '--into', into, '--format', 'csv');
      assert.equal(await runProgram([...args, ...since]).ended, 0);
      const { fields } = JSON.parse(await (await appliance.get('/v1/schema/detection')).text());
      const columns = fields
        .map(({ column }: { column: string }) => column)
        .filter((column: string) => column !== 'event');
      const read = (): string[][] => parse(readFileSync(into, 'utf8'));
      assert.deepEqual(read()[0], columns);
      assert.equal(read().length, 3);
      assert.equal(read()[1]?.[columns.indexOf('article_headline')], '\'=HYPERLINK("https://x.example")');
      await drop([newRow()]);
      assert.equal(await runProgram(args).ended, 0);
      assert.equal(read().length, 4);
      assert.ok(read().every((row) => row.length === columns.length));
      const place = readFileSync(`${into}.place`, 'utf8');
      writeFileSync(`${into}.place`, place.replace('"id,', '"old,'));
      assert.notEqual(readFileSync(`${into}.place`, 'utf8'), place);
      const other = runProgram(args);
      assert.equal(await other.ended, 1);
      assert.match(other.stderr(), /columns/);
    }));

  test('a copy is not continued in another format; without --format, the extension decides', () =>
    inFolder(async (folder) => {
      const formats = ['sqlite', 'ndjson', 'csv'];
      for (const made of formats) {
        const into = join(folder, `copy.${made}`);
        const args = pullArgs(folder, '--into', into);
        assert.equal(await runProgram([...args, ...since]).ended, 0);
        const content = readFileSync(into);
        const beginnings = { sqlite: 'SQLite format 3', ndjson: '{"id":', csv: 'id,version,' };
        assert.ok(content.toString('latin1').startsWith(beginnings[made as keyof typeof beginnings]));
        for (const other of formats.filter((format) => format !== made)) {
          const run = runProgram([...args, '--format', other]);
          assert.notEqual(await run.ended, 0, `${made} as ${other}`);
          assert.match(run.stderr(), /--format/);
          assert.deepEqual(readFileSync(into), content);
        }
      }
    }));

  test('an empty CSV copy has its header', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.csv');
      assert.equal(await runProgram(pullArgs(folder, '--into', into, '--format', 'csv')).ended, 0);
      assert.match(readFileSync(into, 'utf8'), /^id,version,[^\n]*,classification\n$/);
    }));

  test('killed at any moment and restarted, a CSV copy has each version once, and is correct', () =>
    inFolder(async (folder) => {
      await drop(oddities);
      const into = join(folder, 'copy.csv');
      const args = pullArgs(folder, '--into', into, '--format', 'csv', '--full');
      for (const delayMs of [150, 190, 230, 270]) {
        const program = runProgram(args);
        await sleep(delayMs);
        program.kill('SIGKILL');
        await program.ended;
      }
      const last = runProgram(args);
      assert.equal(await last.ended, 0, last.stderr());
      writeFileSync(into, '"half a line', { flag: 'a' });
      const rows: Record<string, string>[] = parse(readFileSync(into, 'utf8').replace(/"half a line$/, ''), {
        columns: true,
      });
      const headlines = new Set(rows.map(({ article_headline }) => article_headline));
      for (const { article_headline } of oddities)
        assert.ok(headlines.has(csvText(String(article_headline))), String(article_headline));
      assert.ok(rows.every((row) => Object.values(row).every((cell) => !/^[=+\-@\t\r\n]/.test(cell))));
      const compare = runProgram([...args.filter((arg) => arg !== '--full'), '--compare', '--json']);
      assert.equal(await compare.ended, 0, compare.stderr());
      const { detections, differences } = JSON.parse(compare.stdout());
      assert.deepEqual(differences, []);
      assert.equal(detections, new Set(rows.map(({ id }) => id)).size);
      const changed = readFileSync(into, 'utf8').replaceAll('Größe ""A""', 'Grösse ""A""');
      assert.notEqual(changed, readFileSync(into, 'utf8'));
      writeFileSync(into, changed);
      const differing = runProgram([...args.filter((arg) => arg !== '--full'), '--compare', '--json']);
      assert.equal(await differing.ended, 1, differing.stderr());
      const found = JSON.parse(differing.stdout()).differences;
      assert.deepEqual(
        found.map(({ kind }: { kind: string }) => kind),
        ['other content'],
      );
    }));

  test('--follow waits at the service, so a change arrives before the next poll', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'lines');
      const args = pullArgs(folder, '--into', into, '--format', 'ndjson', '--follow', ...since);
      const program = runProgram(args);
      const lines = () => (existsSync(into) ? readFileSync(into, 'utf8').split('\n').length - 1 : 0);
      await program.until('the existing rows', () => (lines() >= 2 ? true : undefined));
      const asked = () =>
        appliance
          .serving()
          .log.filter(
            ({ msg, path, waited_ms }) =>
              msg === 'request' && path === '/v1/detections/changes' && waited_ms !== undefined,
          ).length;
      for (const round of [1, 2]) {
        const before = lines();
        await drop([newRow()]);
        await program.until(`change ${round}`, () => (lines() > before ? true : undefined));
      }
      assert.ok(asked() >= 1);
      program.kill('SIGTERM');
      assert.equal(await program.ended, 0, program.stderr());
    }));
});
