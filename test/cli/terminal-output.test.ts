/** What commands print and ask on a terminal: tables, numbers, progress, the question before something is removed. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { confirm } from '../../src/cli/operation-command.ts';
import { endProgress, showProgress } from '../../src/cli/output.ts';
import { printable } from '../../src/printable.ts';
import { documentTable } from '../../src/text-layout.ts';

test('a table is aligned, and external text cannot inject control characters', () => {
  const rows = [
    { name: 'Zoë', rows: 5 },
    { name: 'evil\u001b[2J\n', rows: null },
  ];
  const lines = documentTable(rows).split('\n');
  assert.deepEqual(lines, ['NAME             ROWS', 'Zoë                 5', 'evil\\u001b[2J\\n     -']);
  assert.equal(printable('a\tb\nc\r\u202e'), 'a\tb\nc\\u000d\\u202e');
});

test('progress redraws one line at most ten times a second, only on a terminal', (t) => {
  const drawn: string[] = [];
  const { stderr } = process;
  const { isTTY, columns, write } = stderr;
  t.after(() => Object.assign(stderr, { isTTY, columns, write }));
  Object.assign(stderr, { isTTY: true, columns: 40, write: (text: string) => drawn.push(text) });
  t.mock.timers.enable({ apis: ['Date'] });
  for (let rows = 0; rows < 60_000; rows += 300) {
    showProgress('rows', rows, 60_000);
    t.mock.timers.tick(10);
  }
  endProgress();
  assert.equal(drawn.length, 21);
  assert.equal(drawn[19], '\r\x1b[2Krows  57,000  95%');
  assert.equal(drawn[20], '\r\x1b[2K');
  stderr.isTTY = false;
  showProgress('rows', 1);
  endProgress();
  assert.equal(drawn.length, 21);
});

test('something is removed only once its name was typed', async () => {
  const ask = (typed: string | null, isTTY = true) => {
    const [input, output] = [0, 1].map(() => Object.assign(new PassThrough(), { isTTY }));
    assert.ok(input !== undefined && output !== undefined);
    input.end(typed);
    const asked = confirm('This removes it.', '7001', { input, output });
    return { asked, shown: () => String(output.read()) };
  };
  const { asked, shown } = ask(' 7001 \n');
  await asked;
  assert.equal(shown(), 'This removes it.\nType 7001 to confirm: ');
  for (const typed of ['y\n', '\n', '7002\n', null])
    await assert.rejects(ask(typed).asked, { code: 'failed', message: /nothing was done/ });
  await assert.rejects(ask('7001\n', false).asked, { code: 'usage', message: /--yes/ });
});
