/** Two standbys, of which each promotes itself. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAccess } from '../../src/auth/open-access.ts';
import { restore } from '../../src/copy/restore.ts';
import { TakenOver } from '../../src/copy/ship.ts';
import { findTail } from '../../src/log/log-reader.ts';
import { testFolder } from '../support/test-folder.ts';
import { Machine } from '../torture/machines/machine.ts';

test('a machine whose promotion was interrupted writes nothing behind that of another one', async () => {
  const root = testFolder();
  const objects = new Map<string, Buffer>();
  const [writer, first, second] = ['writer', 'first', 'second'].map(
    (name) => new Machine(join(root, name), objects, name !== 'writer', 0),
  ) as [Machine, Machine, Machine];
  const { folder } = writer;
  mkdirSync(folder.root);
  writeFileSync(folder.secret, randomBytes(32));
  openAccess(folder.root, { operation: { kind: 'test' }, create: true }).close();
  await writer.start();
  await writer.apply([1, 2, 3], 50);
  await writer.ship();
  for (const { folder: data, place, now } of [first, second])
    await restore({
      ...{ source: place, data: data.root, replace: true, standby: true, untilMs: null },
      ...{ drop: join(root, 'drop'), now, onProgress() {} },
    });
  await first.start();
  await second.start();
  const away = () => {
    throw new Error('away');
  };

  // The entry of its promotion is at the place, but it does not learn so.
  first.place.before = (operation) => {
    if (operation === 'create') first.place.before = away;
  };
  const promote = (machine: Machine) => machine.follow((follower) => follower.promote({ by: 'test' }));
  await assert.rejects(promote(first), /away/);
  first.place.before = () => {};
  await promote(second);
  const own = findTail(second.folder.log).last?.entry ?? 0;
  // It applies its own entry, and not yet that of the other one, at which it looks first.
  let looks = 0;
  first.place.before = (_, name) => {
    if (name.endsWith(`${own}.zst`)) looks += 1;
    if (looks > 1) away();
  };
  const turn = () => first.follow((follower) => follower.turn());
  await assert.rejects(turn(), /away/);
  first.kill();
  first.place.before = () => {};
  await first.start();
  await turn();
  assert.deepEqual([first.isWriter, findTail(first.folder.log).last?.entry], [true, own - 1]);
  await assert.rejects(first.ship(), TakenOver);
  for (const machine of [writer, first, second]) machine.kill();
});
