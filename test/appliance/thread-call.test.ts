/** Calls between threads, on a real thread: results, errors, progress, and the effect of a thread's end. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { isFileError } from '../../src/drop/file-errors.ts';
import { Refused } from '../../src/refused.ts';
import { isDamage } from '../../src/store/database-errors.ts';
import { callsTo, type ThreadCalls } from '../../src/thread-call.ts';

interface Calls {
  double(value: number): number;
  /** Fails with an error that has these members. */
  fail(members: Readonly<Record<string, string>>): void;
  refuse(): void;
  /** Tells each byte. */
  bytes(memory: ArrayBuffer, tell: (byte: number) => void): number;
  hang(): void;
  /** Ends the thread with the error of a damaged database. */
  damage(): void;
  /** Ends the thread with an error. */
  die(code: string): void;
}

const THREAD = `
  const { parentPort } = require('node:worker_threads');
  const at = (name) => import(new URL(name, '${new URL('../../src/', import.meta.url)}'));
  const modules = ['thread-call.ts', 'refused.ts', 'store/database-errors.ts'].map(at);
  Promise.all(modules).then(([{ serveCalls }, { Refused }, { DatabaseDamage }]) => {
    serveCalls(parentPort, {
      double: async (value) => 2 * value,
      fail: (members) => { throw Object.assign(new Error('made to fail'), members); },
      refuse: () => { throw new Refused('failed', 'not now'); },
      bytes: async (memory, tell) => {
        for (const byte of new Uint8Array(memory)) tell(byte);
        setImmediate(tell, 0);
        return memory.byteLength;
      },
      hang: () => new Promise(() => {}),
      damage: () => { throw new DatabaseDamage('a row'); },
      die: (code) => { throw Object.assign(new Error('died'), { code }); },
    });
  });
`;

const workers: Worker[] = [];
after(() => Promise.all(workers.map((worker) => worker.terminate())));

function start(): [ThreadCalls<Calls>, Worker] {
  const worker = new Worker(THREAD, { eval: true });
  workers.push(worker);
  return [callsTo<Calls>(worker, 'the test thread'), worker];
}

test('each call gets its own result', async () => {
  const [thread] = start();
  assert.deepEqual(await Promise.all([1, 2, 3].map((value) => thread.call('double', value))), [2, 4, 6]);
  assert.equal(thread.unanswered(), 0);
});

test('an error keeps its message and members; a Refused stays a Refused', async () => {
  const [thread] = start();
  const ofOneFile = { code: 'EIO', syscall: 'read' };
  await assert.rejects(thread.call('fail', ofOneFile), { message: 'made to fail', ...ofOneFile });
  await assert.rejects(thread.call('fail', ofOneFile), isFileError);
  const failedSync = thread.call('fail', { ...ofOneFile, syscall: 'fsync' });
  await assert.rejects(failedSync, (error) => !isFileError(error));
  const refusal = await thread.call('refuse').catch((error) => error);
  assert.ok(refusal instanceof Refused);
  assert.deepEqual([refusal.code, refusal.message], ['failed', 'not now']);
});

test('memory is transferred; progress comes before the answer, to its own call, and none after it', async () => {
  const [thread] = start();
  const told: number[][] = [[], []];
  const memory = [Uint8Array.of(1, 2).buffer, Uint8Array.of(3).buffer];
  const calls = memory.map((bytes, at) =>
    thread.call('bytes', bytes, (byte) => told[at]?.push(byte), [bytes]),
  );
  assert.ok(memory.every(({ byteLength }) => byteLength === 0));
  assert.deepEqual(await Promise.all(calls), [2, 1]);
  assert.deepEqual(told, [[1, 2], [3]]);
  await thread.call('double', 1);
  assert.deepEqual(told, [[1, 2], [3]]);
});

test('a thread that ends rejects open calls and all later ones', async () => {
  const [thread, worker] = start();
  const hanging = assert.rejects(thread.call('hang'), /the test thread has ended/);
  await thread.call('double', 1);
  await worker.terminate();
  await hanging;
  assert.equal(await thread.ended, null);
  await assert.rejects(thread.call('double', 1), /the test thread has ended/);
});

test('an uncaught error ends the thread, and its calls fail with that error', async () => {
  const [thread] = start();
  const hanging = assert.rejects(thread.call('hang'), { message: 'died', code: 'EIO' });
  thread.post('die', 'EIO');
  await hanging;
  assert.equal((await thread.ended)?.message, 'died');
  assert.equal(thread.unanswered(), 1);
});

test('damage that ends a thread is damage where that is seen', async () => {
  const [thread] = start();
  thread.post('damage');
  assert.equal(isDamage(await thread.ended), true);
});
