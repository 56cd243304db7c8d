/** How the rows of a removed subscription are deleted: in bounded steps, over restarts, without disturbing others. */
import assert from 'node:assert/strict';
import { cpSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeAccount, removeSubscription } from '../../src/auth/removal.ts';
import { streamName } from '../../src/detection/content-type.ts';
import { removeRows, serveRemovals } from '../../src/ingest/apply/remove-rows.ts';
import type { Ingest } from '../../src/ingest/files/finished-file.ts';
import { hasRemovedRows } from '../../src/log/compact.ts';
import { readChangesPage } from '../../src/query/changes-page.ts';
import type { Database } from '../../src/store/database.ts';
import { ROOM_LEFT_BYTES } from '../../src/store/folder.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { openAccess } from '../support/access.ts';
import { createInstallation, type Installation, ingestRows } from '../support/appliance.ts';
import { assertFailed } from '../support/command.ts';
import { countOf, reading } from '../support/database-content.ts';
import { newRow } from '../support/export-files.ts';
import { createCopied, streamWriterOn, variedRows } from '../support/history.ts';
import { patched } from '../support/patched-fs.ts';
import { createTestStore, textRow, textRows } from '../support/store.ts';
import { after, changesQuery, checkStreams } from '../support/streams.ts';

class Stopping extends Error {}

/** Starts a removal like a command that is killed right after its first transaction. */
function beginRemoval(data: string, id: number | string): void {
  using access = openAccess(data);
  if (typeof id === 'number') removeSubscription(access, id);
  else removeAccount(access, id);
}

test('the next start completes an interrupted removal; only then is the number free', async () => {
  using installation = createInstallation();
  await ingestRows(installation, [newRow()]);
  beginRemoval(installation.data, 7001);
  const add = ['subscription', 'add', '7001', '--account', 'agency'];
  const refused = installation.cli(add, { anyStatus: true });
  assertFailed(refused, 1, /still being deleted.*wirewatch subscription remove 7001/);

  const config = join(installation.data, 'wirewatch.toml');
  const key = `[[keys]]\nid = "abcdefghij23"\nhash = "${'0'.repeat(64)}"\naccount = "agency"\nname = "x"\n`;
  writeFileSync(
    config,
    `[[subscriptions]]\nid = 7001\naccount = "agency"\n${key}scopes = "detections:read"\nsubscriptions = 7001\n`,
  );
  const second = await installation.serve();
  const line = await second.logged('the differences', ({ differences }) => differences !== undefined);
  assert.deepEqual(line.differences, [
    'subscription 7001: being removed',
    'key abcdefghij23: its subscription is being removed',
  ]);
  await second.logged('the removal', ({ msg }) => msg === 'removal completed');
  await second.stop();
  reading(join(installation.data, 'detections.db'), (db) => {
    assert.equal(countOf(db, 'detection'), 0);
    assert.equal(countOf(db, 'stream WHERE removed = 0'), 0);
  });

  const third = await installation.serve();
  await third.logged('the restored rows', ({ subscriptions }) => Array.isArray(subscriptions));
  await third.stop();
  const { stdout } = installation.cli(['subscription', 'remove', '7001', '--yes']);
  assert.match(
    stdout,
    /wirewatch\.toml still has an entry for subscription 7001: the next start will add it again, without detections/,
  );
});

for (const [what, subject, lose] of [
  [
    'killed before access.db has the commit',
    'subscription',
    (path: string) => cpSync(`${path}-before`, path),
  ],
  [
    'a backup is restored on a new machine',
    'account',
    (_: string, { cli, data }: Installation) => {
      const backup = `${data}-backup`;
      cli(['backup', backup]);
      for (const name of readdirSync(data))
        if (name !== 'drop') rmSync(join(data, name), { recursive: true });
      cli(['restore', backup]);
    },
  ],
] as const)
  test(`${what}: a removal of ${subject === 'account' ? 'an account' : 'a subscription'} is not forgotten`, async () => {
    using installation = createInstallation();
    const rows = [7001, 7002].map((id) => newRow({ subscription_id: id }));
    await ingestRows(installation, rows);
    const path = join(installation.data, 'access.db');
    cpSync(path, `${path}-before`);
    beginRemoval(installation.data, subject === 'account' ? 'agency' : 7001);
    for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
    lose(path, installation);

    installation.cli(['account', 'add', 'rival', '--name', 'Rival']);
    const add = ['subscription', 'add', '7001', '--account', 'rival'];
    assert.match(installation.cli(add, { anyStatus: true }).stderr, /7001 was removed.*still being deleted/);
    const id = subject === 'account' ? 'agency' : '7001';
    const { stdout } = installation.cli([subject, 'remove', id, '--yes']);
    assert.match(stdout, /had already been removed/);
    const left = subject === 'account' ? 0 : 1;
    reading(join(installation.data, 'detections.db'), (db) => assert.equal(countOf(db, 'detection'), left));
    installation.cli(add);
  });

test('others can read during a removal, even if it deletes the newest rows', async () => {
  using store = createTestStore();
  const rows = [8001, 7001, 7001].map((subscription_id, article_id) =>
    textRow({ subscription_id, article_id }),
  );
  store.deliver(rows, 1000);
  const streams = [streamName(8001, 'text')];
  const read: number[] = [];
  const between = async () => {
    for (const position of [0, 1])
      read.push(readChangesPage(store.reader, changesQuery({ streams, start: after(position) })).rows);
  };
  await removeRows(streamWriterOn(store.writer, store.folder), [7001], { between, tell: () => {} });
  await between();
  assert.deepEqual(new Set(read), new Set([1, 0]));
  assert.ok(read.length > 4);
});

test('transactions are bounded; the next run deletes the rest, and no other rows', async () => {
  using store = createTestStore();
  const [first = assert.fail(), second = assert.fail()] = textRows(2, { subscription_id: 8001 });
  store.deliver([first, ...textRows(15_000), second], 1000);
  const writer = streamWriterOn(store.writer, store.folder);
  const left: number[] = [];
  const between = async () => {
    left.push(countOf(store.reader, 'stream_row') + countOf(store.reader, 'detection'));
    if (left.length === 2) throw new Stopping();
  };
  await assert.rejects(removeRows(writer, [7001], { between, tell: () => {} }), Stopping);
  assert.deepEqual(left, [20_004, 15_004]);
  await removeRows(writer, [7001], { between: async () => {}, tell: () => {} });
  assert.deepEqual([countOf(store.reader, 'stream_row'), countOf(store.reader, 'detection')], [2, 2]);
  checkStreams(store.reader);
});

test('streams that were removed before, and have no rows, cost no steps', async () => {
  using store = createTestStore();
  const subscriptions = [7001, 7002, 7003];
  const rows = subscriptions.map((subscription_id) => textRow({ subscription_id }));
  store.deliver(rows, 1000);
  const writer = streamWriterOn(store.writer, store.folder);
  const stepsOf = async (removed: readonly number[]) => {
    let steps = 0;
    const between = async () => {
      steps += 1;
    };
    await removeRows(writer, removed, { between, tell: () => {} });
    return steps;
  };
  const steps: number[] = [];
  for (const subscription of subscriptions) steps.push(await stepsOf([subscription]));
  // Detections, repeated scores and rows of the stream.
  assert.deepEqual([...steps, await stepsOf([])], [3, 3, 3, 0]);
});

test('a removal that only a restored log tells of is incomplete until the database is written anew', async () => {
  using history = await createCopied();
  const { folder } = history;
  history.apply(variedRows([7001, 8001], 1, 20));
  // Enough to write the log anew, and not the database.
  const room = () => ({ bavail: 1, bsize: ROOM_LEFT_BYTES + statSync(folder.detections).size });
  const full = patched(
    'statfsSync',
    (real) => ((path: string) => Object.assign(real(path), room())) as typeof real,
  );
  try {
    await history.remove(7001);
    using access = openAccess(folder.root);
    const details: (string | null)[] = [];
    const ingest = {
      ...{ folder, writer: history.writer(), log() {}, between: async () => {} },
      access: { use: <Result>(work: (db: Database) => Result) => work(access) },
      setCondition: (_: string, detail: string | null) => details.push(detail),
    };
    const serve = () => serveRemovals(ingest as unknown as Ingest, () => {});
    await serve();
    await serve();
    const ofSpace = details.filter((detail) => detail?.includes('too little free space'));
    assert.deepEqual(details, ofSpace);
    full[Symbol.dispose]();
    await serve();
    assert.equal(details.at(-1), null);
    assert.equal(hasRemovedRows(folder.log, readLogMark(history.db())?.entry ?? 0, true), false);
  } finally {
    full[Symbol.dispose]();
  }
});
