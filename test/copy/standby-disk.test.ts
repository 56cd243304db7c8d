/** A standby whose own disk fails, and a promotion whose machine cannot ingest. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { openFolderPlace } from '../../src/copy/folder-place.ts';
import { createStandby } from '../../src/copy/standby.ts';
import { createDecidedEntry } from '../../src/ingest/threads/decisions.ts';
import { Stopping } from '../../src/ingest/threads/ingest-loop.ts';
import type { IngestSettings, ToMain } from '../../src/ingest/threads/ingest-messages.ts';
import { runIngester } from '../../src/ingest/threads/ingest-thread.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { closeDetections } from '../../src/store/checkpoint.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { WakeableTimer } from '../../src/wakeable-timer.ts';
import { restoreFrom, shipTo } from '../support/copy-at.ts';
import { createCopied, type History, QUIETLY, rowsFrom } from '../support/history.ts';
import { patched, systemError } from '../support/patched-fs.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

let writer: History;
/** The writer's, of which the place gets what is new once the disk of the standby fails. */
const own = testFolder();
const to = testFolder();
const data = join(testFolder(), 'data');
const COPY = { to, standby: true, wait: false, endpoint: '', region: '', credentials: '' };
before(async () => {
  writer = await createCopied();
  mkdirSync(data);
});
const stop = new AbortController();
after(() => {
  stop.abort();
  writer.delete();
});

async function ship(from: number): Promise<void> {
  writer.apply(rowsFrom(from, 1));
  await shipTo(openFolderPlace(own), writer);
}

const appear = () => cpSync(own, to, { recursive: true, force: false });

/** Does something while a call fails. */
async function failing(call: 'writeSync' | 'fsyncSync', code: string, work: () => Promise<void>) {
  using _ = patched(call, () => () => {
    throw systemError(code, call.replace('Sync', ''));
  });
  await work();
}

test('a full disk is not called a damaged copy; after a lost write it applies nothing more', async () => {
  await ship(1);
  appear();
  await restoreFrom(openFolderPlace(to), data, { standby: true });
  const recovered = await recoverDetections({ folder: dataFolder(data), ...QUIETLY });
  const failures: (string | null)[] = [];
  const send = (name: string, failure: string | null) =>
    void (name === 'following' && failures.push(failure));
  let ended: unknown = null;
  createStandby()
    .prepare({
      settings: { data, mode: 'serve', copy: COPY } as unknown as IngestSettings,
      recovered,
      send: send as ToMain,
      timer: new WakeableTimer(),
      stopped: stop.signal,
      log() {},
      setCondition() {},
    })
    .catch((error) => (ended = error));
  await until('the first look', () => failures.includes(null));
  await ship(2);
  await failing('writeSync', 'ENOSPC', async () => {
    appear();
    await until('the failure', () => failures.at(-1) != null);
  });
  assert.match(failures.at(-1) ?? '', /^cannot write .*ENOSPC/);
  await until('it to go on', () => failures.at(-1) === null);
  const { entry } = readLogMark(recovered.db) ?? {};
  await ship(3);
  await failing('fsyncSync', 'EIO', async () => {
    appear();
    await until('its end', () => ended !== null);
  });
  assert.match(String(ended), /cannot sync .*EIO/);
  assert.deepEqual([entry, readLogMark(recovered.db)?.entry], [2, 2]);
  // The disk tells it once; a promotion may have met it first.
  assert.throws(() => recovered.log.sync(), /cannot sync .*EIO/);
  recovered.log.close();
  closeDetections(recovered.db);
});

test('promotions that are asked for at once are all confirmed', async () => {
  const other = join(testFolder(), 'data');
  mkdirSync(other);
  await restoreFrom(openFolderPlace(to), other, { standby: true });
  const recovered = await recoverDetections({ folder: dataFolder(other), ...QUIETLY });
  const settings = { data: other, mode: 'serve', copy: COPY } as unknown as IngestSettings;
  const send = (() => {}) as unknown as ToMain;
  const parts = { settings, recovered, send, timer: new WakeableTimer(), stopped: stop.signal };
  const standby = createStandby();
  const prepared = standby.prepare({ ...parts, log() {}, setCondition() {} });
  await Promise.all([standby.promote({}), standby.promote({})]);
  const { db, log } = await prepared;
  log.close();
  closeDetections(db);
});

test('a machine that was promoted and may not use its drop folder closes detections.db', async () => {
  const { port1: main, port2: thread } = new MessageChannel();
  runIngester(thread, { prepare: async ({ recovered }) => recovered, async promote() {}, async heal() {} });
  const promoted = testFolder();
  const settings = { data: promoted, drop: promoted, photos: '', mode: 'serve', copy: COPY };
  const told: string[] = [];
  main.on('message', ({ name }) => void told.push(name));
  const argument = { settings, decided: createDecidedEntry(), isAgain: false };
  main.postMessage({ id: 1, name: 'start', argument });
  await once(main, 'close');
  assert.equal(told.at(-1), 'promoted');
  const { detections } = dataFolder(promoted);
  assert.deepEqual([existsSync(detections), existsSync(`${detections}-wal`)], [true, false]);
});

test('a promotion is not confirmed where ingest ends before it begins', async () => {
  const { port1: main, port2: thread } = new MessageChannel();
  const following = Promise.withResolvers<never>();
  following.promise.catch(() => {});
  runIngester(thread, {
    prepare: () => following.promise,
    promote: async () => following.reject(new Stopping()),
    async heal() {},
  });
  const answers: unknown[] = [];
  main.on('message', (message) => void ('name' in message || answers.push(message)));
  const settings = { data: testFolder(), drop: '', mode: 'serve', copy: COPY };
  const start = { settings, decided: createDecidedEntry(), isAgain: false };
  main.postMessage({ id: null, name: 'start', argument: start });
  main.postMessage({ id: 1, name: 'promote', argument: { by: 'test' } });
  await once(main, 'close');
  assert.deepEqual(answers, []);
});
