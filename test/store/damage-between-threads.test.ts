/** What a thread finds damaged is known as damage by the thread that starts it again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { isDamage } from '../../src/store/database-errors.ts';

test('damage that ends a thread is damage where that is seen', async () => {
  const module = new URL('../../src/store/database-errors.ts', import.meta.url);
  const code = `import('${module}').then(({ DatabaseDamage }) => { throw new DatabaseDamage('a row'); });`;
  const [error] = await new Promise<Error[]>((resolve) => {
    new Worker(code, { eval: true }).once('error', (thrown) => resolve([thrown]));
  });
  assert.deepEqual([error?.message, isDamage(error)], ['a row', true]);
});
