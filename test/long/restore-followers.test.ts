/**
 * Clients that follow the stream of the program across disasters: behind, caught up and ahead of what is restored. All end
 * with what a fresh client has, skip nothing, and keep nothing that is older; no cursor is refused. Several disasters in
 * a row, in any order, are in restore-random.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMs, HOUR_MS } from '../../src/time.ts';
import { createKey } from '../support/appliance.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { Follower } from '../support/followers.ts';
import {
  get,
  Machine,
  rescored,
  rowsOf,
  type Story,
  settle,
  settleWith,
  story,
  version,
  work,
} from '../support/machines.ts';

describe('another machine', () => {
  for (const [name, shiftA, shiftB] of [
    ['the clock of the first was an hour fast', HOUR_MS, 0],
    ['its own clock is an hour fast', 0, HOUR_MS],
  ] as const)
    test(name, async () => {
      const { machine, rows, backup, followers } = await story(shiftA);
      await machine.serving?.kill();
      const other = new Machine(shiftB);
      assert.equal(other.restore(backup).raised, true);
      await other.start();
      await other.ingest([...rescored(rows.slice(0, 2), 70), ...rowsOf(3)]);
      const client = await settle(followers);
      assert.equal(version(client, rows[0]), 1004, 'raised once, announced again, and scored again');
      assert.equal(version(client, rows[5]), 1003, 'announced again');
      await other.ingest(rescored(rows, 80));
      assert.equal(version(await settle(followers), rows[0]), 1005);
    });

  test('with the archive of the first, newer than the log: nothing is lost', async () => {
    const { machine, rows, backup, followers } = await story();
    await machine.serving?.kill();
    const [, , ahead] = followers;
    const other = new Machine();
    other.restore(backup);
    other.takeArchiveOf(machine);
    await other.start();
    await settleWith(followers, ahead);
    await other.ingest(rescored(rows, 90));
    await settle(followers);
  });
});

test('--until: later rows are discarded, and new ones reach everybody', async () => {
  const { machine, rows, followers } = await story();
  await sleep(1100);
  const until = formatMs(Date.now());
  await sleep(1100);
  await machine.ingest(rescored(rows, 65));
  for (const follower of followers.slice(2)) await follower.follow(get);
  const backup = machine.backUp('later');
  await machine.stop();
  const said = machine.restore(backup, '--replace', '--until', until);
  assert.ok(said.raised && said.entries_cut > 0);
  await machine.start();
  await machine.ingest([...rescored(rows, 75), ...rowsOf(2)]);
  await settle(followers);
});

test('if the backup has all of the log, nobody notices anything', async () => {
  const { machine, rows, followers } = await story();
  const [, , ahead] = followers;
  const before = new Map(ahead?.copy);
  const late = createKey(machine.installation.cli, 'agency', '7001');
  const [, keyId = ''] = /_live_([a-z2-7]{12})_/.exec(late) ?? [];
  await machine.stop();
  const backup = machine.backUp('all');
  machine.installation.cli(['key', 'revoke', keyId, '--yes']);
  assert.equal(machine.restore(backup, '--replace').raised, false);
  await machine.start();
  const client = await settle(followers);
  assert.deepEqual([...client.copy].sort(), [...before].sort());
  const refused = await fetch(`${machine.serving?.url}/v1/me`, {
    headers: { authorization: `Bearer ${late}` },
  });
  assert.equal(refused.status, 401, 'what was revoked stays revoked');
  await machine.ingest(rescored(rows, 85));
  await settle(followers);
});

describe('an older data folder copied back', () => {
  /** Takes a copy in the middle, and puts it back at the end. */
  async function putBack(): Promise<Story> {
    const { machine, rows, backup, followers } = await story();
    await machine.stop();
    const copy = join(work, 'copy');
    copyFolder(machine.data, copy);
    await machine.start();
    await machine.ingest([...rescored(rows.slice(0, 5), 65), ...rowsOf(2)]);
    for (const follower of followers.slice(2)) await follower.follow(get);
    await machine.ingest(rescored(rows.slice(0, 2), 67));
    await followers[2]?.follow(get);
    await machine.stop();
    const archive = join(work, 'archive');
    cpSync(join(machine.installation.drop, 'archive'), archive, { recursive: true });
    rmSync(machine.data, { recursive: true });
    cpSync(copy, machine.data, { recursive: true, preserveTimestamps: true });
    if (existsSync(archive)) cpSync(archive, join(machine.installation.drop, 'archive'), { recursive: true });
    return { machine, rows, backup, followers };
  }
  const alerts = (machine: Machine) =>
    machine.serving?.log.filter(({ alert }) => alert === 'end of log lost') ?? [];

  test('is detected by the cursor of a client that is ahead, and repaired once', async () => {
    const { machine, rows, followers } = await putBack();
    await machine.start();
    // Those who are not ahead prove nothing.
    for (const follower of followers.slice(0, 2)) await follower.follow(get);
    assert.equal(alerts(machine).length, 0);
    await settleWith(followers, followers[2]);
    await machine.serving?.logged('the alert', ({ alert }) => alert === 'end of log lost');
    await machine.ingest([...rescored(rows, 75), ...rowsOf(2)]);
    const client = await settle(followers);
    assert.ok(version(client, rows[0]) > 1000 && version(client, rows[0]) < 2000, 'raised once');
    assert.equal(alerts(machine).length, 1);
  });

  test('is detected, too, if files were read before a client came', async () => {
    const { machine, rows, followers } = await putBack();
    await machine.start();
    await machine.ingest([...rescored(rows.slice(0, 3), 75), ...rowsOf(2)]);
    await machine.ingest(rescored(rows.slice(1, 4), 77));
    await settle(followers);
    assert.equal(alerts(machine).length, 1);
    await machine.ingest([...rescored(rows, 79), ...rowsOf(2)]);
    await settle(followers);
  });

  test('is not reported without one: cursors of every kind open no alert', async () => {
    const { machine, rows, followers } = await story();
    for (const restart of [false, true]) {
      if (restart) {
        await machine.stop();
        await machine.start();
      }
      for (const limit of [1, 2, 1000]) {
        const client = new Follower(limit);
        await client.follow(get);
        await client.follow(get);
      }
      await machine.ingest(rescored(rows, 70));
      await settle(followers);
    }
    machine.installation.cli(['subscription', 'remove', '7001', '--yes']);
    for (const follower of followers) await follower.follow(get);
    assert.deepEqual(alerts(machine), []);
  });
});

test('an older data folder copied back after an epoch, and files are read before a client comes', async () => {
  const { machine, rows, backup, followers } = await story();
  await machine.serving?.kill();
  const second = new Machine();
  second.restore(backup);
  await second.start();
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
