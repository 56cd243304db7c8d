/** What forms say will happen to files, and which first window can be expected. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareFiles, parseFileName } from '../../src/exports/file-name.ts';
import type { Context } from '../../src/operations/operation.ts';
import { operationAt, operationForms } from '../../src/operations/table.ts';
import { DAY_MS, formatMs } from '../../src/time.ts';

test('the forms say where a file stays, and which one is read first', () => {
  const willOf = (name: string) => operationForms().find((form) => form.name === name)?.will ?? '';
  assert.match(willOf('window accept'), /without the file that failed, which stays in failed\//);
  const files = ['newswire.20261120T1010Z.csv', 'newswire.20261120T1000Z.csv'].flatMap((name) => {
    const parsed = parseFileName(name);
    return parsed.kind === 'export' ? parsed.file : [];
  });
  assert.match(files.sort(compareFiles)[0]?.name ?? '', /T1000Z/);
  assert.match(willOf('ingest resume'), /the oldest windows first/);
});

test('the first expected window is one of the last five years: a mistyped year would make millions missing', async () => {
  const nowMs = Date.parse('2026-11-20T10:00:00Z');
  const asked: unknown[] = [];
  const context: Partial<Context> = {
    nowMs,
    change: () => asked.push('change') as never,
    async ingest(request) {
      asked.push(request);
      return { ok: true, expected: { forgotten: 0 } };
    },
  };
  const expect = (start: string) =>
    operationAt('window-expect')?.run(context as Context, { export: 'newswire', start });
  for (const start of ['0026-11-20T10:00:00Z', formatMs(nowMs - 5 * 366 * DAY_MS - DAY_MS)])
    await assert.rejects(async () => expect(start), {
      code: 'usage',
      message: `the window ${start} is too long ago: expected one of the last five years`,
    });
  assert.deepEqual(asked, []);
  await expect(formatMs(nowMs - 5 * 365 * DAY_MS));
  assert.equal(asked.length, 2);
});
