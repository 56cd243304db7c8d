/** What the alerts of the ingest thread become when it is started again. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { pino } from 'pino';
import { startApplianceIngest } from '../../src/appliance-ingest.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createConditions } from '../../src/health/alert-conditions.ts';
import { LogDamage } from '../../src/store/log-errors.ts';

/** Ends when it is asked to. */
class Thread extends EventEmitter {
  postMessage({ name }: { name: string }): void {
    if (name === 'stop') setImmediate(() => this.emit('exit'));
  }
}

test('what a thread has reported ends with it, also where the next one heals the log', async () => {
  const thread = new Thread();
  const conditions = createConditions(Date.now);
  await using undo = new AsyncDisposableStack();
  const config = loadConfig({ flags: {}, env: {}, file: '', dataFolder: '/nowhere' });
  const ingest = startApplianceIngest(
    { config, log: pino({ level: 'silent' }), ingestThread: thread as unknown as Worker },
    { secret: Buffer.alloc(32), conditions, reader: { open() {}, await() {} }, copy: {} } as never,
    undo,
  );
  ingest.begun.catch(() => {});
  const argument = { name: 'disk full', detail: 'no space' };
  thread.emit('message', { id: null, name: 'condition', argument });
  assert.ok(conditions.has('disk full'));
  const exited = once(thread, 'exit');
  ingest.interrupt(new LogDamage('a segment'));
  await exited;
  await new Promise(setImmediate);
  assert.deepEqual(conditions.open(), []);
});
