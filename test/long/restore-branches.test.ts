/** Clients that follow the stream across several restored states, each of which knows nothing of some others. */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMs } from '../../src/time.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { Follower } from '../support/followers.ts';
import { get, Machine, rescored, rowsOf, settle, story, version, work } from '../support/machines.ts';

/** A new machine with the state of a backup. */
async function restored(backup: string): Promise<Machine> {
  const machine = new Machine();
  machine.restore(backup);
  await machine.start();
  return machine;
}

test('one backup of after an epoch, restored on two machines', async () => {
  const { machine, rows, backup, followers } = await story();
  await machine.serving?.kill();
  const second = await restored(backup);
  await second.ingest(rescored(rows.slice(0, 3), 70));
  const again = second.backUp('again');
  await second.serving?.kill();
  const third = await restored(again);
  await third.ingest([...rescored(rows.slice(0, 3), 71), ...rowsOf(3)]);
  await settle(followers);
  await third.serving?.kill();
  const fourth = await restored(again);
  await fourth.ingest([...rowsOf(10), ...rescored(rows, 75)]);
  await settle(followers);
});

test('an older data folder copied back after an epoch, and files are read before a client comes', async () => {
  const { machine, rows, backup, followers } = await story();
  await machine.serving?.kill();
  const second = await restored(backup);
  await second.ingest(rescored(rows.slice(0, 3), 70));
  await second.stop();
  const copy = join(work, 'copy');
  copyFolder(second.data, copy);
  await second.start();
  await second.ingest([...rescored(rows.slice(0, 5), 71), ...rowsOf(2)]);
  await settle(followers);
  await second.stop();
  rmSync(second.data, { recursive: true });
  cpSync(copy, second.data, { recursive: true, preserveTimestamps: true });
  await second.start();
  await second.ingest([...rowsOf(20), ...rescored(rows, 75)]);
  await settle(followers);
});

test('a client comes from a state of which neither the next restored state nor the one after it knew', async () => {
  const { machine, rows, backup, followers } = await story();
  const later = machine.backUp('later');
  await machine.serving?.kill();
  const second = await restored(backup);
  const [behind] = followers;
  for (const score of [70, 71, 72]) await second.ingest([...rescored(rows.slice(0, 8), score), ...rowsOf(2)]);
  for (const follower of followers) await follower.follow(get);
  await second.serving?.kill();
  const third = await restored(later);
  await third.ingest([...rescored(rows, 75), ...rowsOf(2)]);
  const end = third.backUp('end');
  await third.serving?.kill();
  await restored(end);
  const client = await settle(followers);
  assert.ok(version(client, rows[0]) > version(behind as Follower, rows[0]) - 1);
});

test('a client reads a part of what is announced again, and then that is cut off', async () => {
  const { machine, rows, backup, followers } = await story();
  await machine.serving?.kill();
  const second = await restored(backup);
  await second.ingest([...rescored(rows.slice(0, 8), 70), ...rowsOf(2)]);
  const slow = new Follower(2);
  await slow.follow(get);
  await second.serving?.kill();
  const third = new Machine();
  // The history of the first machine, which knows nothing of the second.
  third.restore(backup);
  await third.start();
  await third.ingest([...rowsOf(1), ...rescored(rows, 75)]);
  await sleep(1100);
  const until = formatMs(Date.now());
  await sleep(1100);
  await slow.follow(get, 1);
  await third.serving?.logged('the alert', ({ alert }) => alert === 'end of log lost');
  await slow.follow(get, 1);
  const last = third.backUp('last');
  await third.serving?.kill();
  third.restore(last, '--replace', '--until', until);
  await third.start();
  await settle([slow, ...followers]);
});
