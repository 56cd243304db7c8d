/** Standbys: what they take of the copy, and what each finds of the others once one was promoted. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { findAccount } from '../../src/auth/accounts.ts';
import { noteEnded, prepareRevocations, readEnded } from '../../src/auth/denials.ts';
import { findAccess } from '../../src/auth/spare-copy.ts';
import type { Config } from '../../src/config/load.ts';
import { readCopiedAccess } from '../../src/copy/own-copy.ts';
import { TakenOver } from '../../src/copy/ship.ts';
import { requireNewest } from '../../src/copy/source.ts';
import { beginEpoch, createStandby } from '../../src/copy/standby.ts';
import type { StandbyParts } from '../../src/ingest/threads/ingest-thread.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { listSegments } from '../../src/log/segment.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { epochTimes } from '../../src/log/version-epoch.ts';
import type { Logger } from '../../src/logger.ts';
import { prepareAccess } from '../../src/prepare-access.ts';
import { isBehind, isDiskFull } from '../../src/store/database-errors.ts';
import { readRole } from '../../src/store/role.ts';
import { openAccess } from '../support/access.ts';
import { restoreFrom } from '../support/copy-at.ts';
import { QUIETLY } from '../support/history.ts';
import { patched, systemError } from '../support/patched-fs.ts';
import { testFolder } from '../support/test-folder.ts';
import { Machine } from '../torture/machines/machine.ts';

let objects: Map<string, Buffer>;
let writer: Machine;
let first: Machine;
let second: Machine;
beforeEach(async () => {
  const root = testFolder();
  objects = new Map();
  [writer, first, second] = ['writer', 'first', 'second'].map(
    (name) => new Machine(join(root, name), objects, name !== 'writer', 0),
  ) as [Machine, Machine, Machine];
  await writer.install();
});
afterEach(() => {
  for (const machine of [writer, first, second]) machine.kill();
});

/** Has the writer apply rows, if there are any, and bring the copy up to date, from which these become standbys. */
async function begin(ids: readonly number[], ...machines: Machine[]): Promise<void> {
  if (ids.length > 0) await writer.apply(ids);
  await writer.ship();
  for (const machine of machines) await machine.becomeStandby();
}

const away = () => {
  throw new Error('away');
};
const promote = (machine: Machine) => machine.follow((follower) => follower.promote({ by: 'test' }));
const turn = (machine: Machine) => machine.turn();
const lastOf = ({ folder }: Machine) => findTail(folder.log).last?.entry ?? 0;
const beginOf = ({ folder }: Machine) => listSegments(folder.log)[0]?.firstEntry;
function changeOf({ folder }: Machine): number {
  const found = findAccess(folder);
  return found.kind === 'sound' ? found.state.change : 0;
}
/** Has the writer change something, and bring the copy up to date. */
function change(name: string): Promise<void> {
  writer.changeAccess(name);
  return writer.ship();
}

test('a machine whose promotion was interrupted writes nothing behind that of another one', async () => {
  await begin([1, 2, 3], first, second);

  // The entry of its promotion is at the place, but it does not learn so.
  first.place.before = (operation) => {
    if (operation === 'create') first.place.before = away;
  };
  await assert.rejects(promote(first), /away/);
  first.place.before = () => {};
  await promote(second);
  const own = lastOf(second);
  // It applies its own entry, and not yet that of the other one, at which it looks first.
  let looks = 0;
  first.place.before = (_, name) => {
    if (name.endsWith(`${own}.zst`)) looks += 1;
    if (looks > 1) away();
  };
  await assert.rejects(turn(first), /away/);
  await first.restart();
  await turn(first);
  assert.deepEqual([first.isWriter, lastOf(first)], [false, own]);
});

test('a machine that was promoted reads no more: what comes then is from another one that took over', async () => {
  await begin([1, 2, 3], first, second);
  await promote(first);
  const own = lastOf(first);
  await promote(second);
  await turn(first);
  assert.deepEqual([first.isWriter, lastOf(first)], [true, own]);
  await assert.rejects(first.ship(), TakenOver);
});

test('a machine that goes back to before its own promotion leaves the copy alone, and goes on', async () => {
  await begin([1], first);
  const untilMs = Date.parse(findTail(first.folder.log).last?.at ?? '');
  await promote(first);
  await first.restart();
  await first.apply([2]);
  await first.ship();
  // What it wrote itself heals its log.
  await requireNewest(first.place, first.folder, false);
  first.kill();
  const back = (standby: boolean) =>
    restoreFrom(first.place, first.folder.root, { now: first.now, standby, untilMs });
  await assert.rejects(back(true), /a machine follows the copy to its newest entry/);
  const made = await back(false);
  assert.ok(!('earlier' in made) && made.detections === 1);
  first.isStandby = false;
  await first.start();
  await assert.rejects(first.ship(), /is the copy of a later state/);
  await first.apply([3]);
});

test('a machine that was killed within its promotion misses no change from before it', async () => {
  await begin([1], first);
  // The last change of the old writer; then the machine has the entry of its promotion, and not yet that change.
  first.place.before = async (operation) => {
    if (operation !== 'create') return;
    await change('late');
    first.place.before = (_, name) => {
      if (name.startsWith('access/0')) away();
    };
  };
  await assert.rejects(promote(first), /away/);
  await first.restart();
  await turn(first);
  assert.ok(first.isWriter);
  using access = openAccess(first.folder.root);
  assert.equal(findAccount(access, 'late')?.id, 'late');
});

test('a standby takes what the writer changed also where a command changed as much on the standby', async () => {
  await begin([1], first);
  first.changeAccess('by mistake');
  await change('right');
  assert.equal(changeOf(first), changeOf(writer));
  await turn(first);
  using access = openAccess(first.folder.root);
  const found = ['right', 'by mistake'].map((id) => findAccount(access, id)?.id);
  assert.deepEqual(found, ['right', undefined]);
});

test('changes of a machine that was promoted later come later, also where both began with the same ones', async () => {
  await begin([1], first, second);
  await promote(first);
  first.changeAccess('early');
  await promote(second);
  assert.ok(changeOf(second) > changeOf(first));
});

test('what an old writer still adds to the copy holds up no change of the new one', async () => {
  await begin([1], first);
  writer.changeAccess('late');
  writer.place.before = async (operation, name) => {
    if (operation !== 'create' || !name.startsWith('access/')) return;
    writer.place.before = () => {};
    await promote(first);
  };
  await writer.ship();
  await first.restart();
  first.changeAccess('new');
  await first.ship();
  const own = findAccess(first.folder);
  assert.ok(own.kind === 'sound');
  assert.ok((await readCopiedAccess(first.place)).content.equals(own.content));
});

test('an old writer that was made a standby without a restore neither follows nor takes over', async () => {
  await begin([1], first);
  for (const id of [2, 3, 4, 5]) await writer.apply([id]);
  writer.kill();
  await promote(first);
  await first.restart();
  await first.apply([6]);
  await first.ship();
  assert.ok(lastOf(first) < lastOf(writer));
  const there = new Map(objects);

  writer.isStandby = true;
  await writer.start();
  for (const work of [turn, promote]) await assert.rejects(work(writer), /lacks what this machine has/);
  assert.deepEqual(objects, there);
});

test('a standby has no state of access.db that is newer than its log', async () => {
  await begin([1], first);
  const stateOf = (machine: Machine) => [lastOf(machine), changeOf(machine)];
  await turn(first);
  await change('one');
  const before = stateOf(writer);
  // Between its looks at the log and at access.db, the writer goes on.
  let isLogRead = false;
  first.place.before = async (_, name) => {
    isLogRead ||= name.startsWith('log/');
    if (!isLogRead || !name.startsWith('access/')) return;
    first.place.before = () => {};
    await writer.apply([2]);
    await change('two');
  };
  await turn(first);
  assert.deepEqual(stateOf(first), before);
  await turn(first);
  assert.deepEqual(stateOf(first), stateOf(writer));
});

test('a standby whose share is not mounted, an empty folder, neither follows nor takes over', async () => {
  await begin([], first);
  const there = new Map(objects);
  await first.follow(async (follower) => {
    await follower.turn();
    objects.clear();
    await assert.rejects(follower.turn(), /contains no copy/);
    await assert.rejects(follower.promote({ by: 'test' }), /contains no copy/);
    assert.equal(objects.size, 0);
    for (const [name, content] of there) objects.set(name, content);
    await follower.turn();
  });
});

test('a standby takes the compacted log also where it was stopped meanwhile', async () => {
  for (const id of [1, 2, 3]) await writer.apply([id]);
  // An entry without rows, so that compaction needs no other one.
  writer.kill();
  writer.waits = true;
  await writer.start();
  await begin([], first);
  await turn(first);
  first.kill();
  await writer.compact();
  await writer.ship();
  await first.start();
  await turn(first);
  assert.ok(Number(beginOf(writer)) > 1);
  assert.deepEqual([beginOf(first), lastOf(first)], [beginOf(writer), lastOf(writer)]);
  assert.deepEqual(first.rows(), writer.rows());
});

test('a standby writes its database anew with the compacted log, not each time that it cannot read that', async () => {
  await begin([1, 2, 3], first);
  await turn(first);
  first.db.exec('CREATE TABLE gone (x); INSERT INTO gone VALUES (randomblob(100000)); DROP TABLE gone');
  await writer.compact();
  await writer.ship();
  const isAnew = () => first.db.pragma('freelist_count', { simple: true }) === 0;
  const isTaken = () => beginOf(first) === beginOf(writer);
  assert.deepEqual([isAnew(), isTaken()], [false, false]);
  let failed = 0;
  for (let isRead = false; !isRead && failed < 100; failed += 1) {
    let left = failed;
    first.place.before = (operation) => {
      if (operation === 'read' && left === 0) away();
      if (operation === 'read') left -= 1;
    };
    // What the database lacks is in no entry any more: the next start makes it anew.
    isRead = await turn(first).then(() => true, isBehind);
    assert.equal(isAnew(), isTaken(), `${failed} reads`);
  }
  assert.ok(failed > 3 && isTaken());
});

test('an old writer without any entry notices a promotion, too', async () => {
  await begin([], first);
  await promote(first);
  writer.changeAccess('late');
  const there = new Map(objects);
  await assert.rejects(writer.ship(), TakenOver);
  assert.deepEqual(objects, there);
});

test('a clone of the data folder of a standby does not take its promotion for its own', async () => {
  await begin([1], first);
  cpSync(first.folder.root, second.folder.root, { recursive: true });
  await second.start();
  await promote(first);
  await turn(second);
  assert.deepEqual([first.isWriter, second.isWriter, lastOf(second)], [true, false, lastOf(first)]);
  // The clone is promoted, too.
  await promote(second);
  await assert.rejects(first.ship(), TakenOver);
  await assert.rejects(requireNewest(first.place, first.folder, false), TakenOver);
});

test('a standby that does not follow yet is not called the writer', async () => {
  await assert.rejects(createStandby().promote({}), /still being brought up to date/);
});

test('an epoch that a full disk refuses begins once there is room, and once', async () => {
  await begin([1], first);
  await promote(first);
  first.kill();
  const recovered = await recoverDetections({ folder: first.folder, ...QUIETLY });
  let tries = 0;
  using full = patched('writeSync', () => () => {
    throw systemError('ENOSPC', 'write');
  });
  const begun = await beginEpoch(recovered, first.folder, async (error) => {
    assert.ok(isDiskFull(error), String(error));
    tries += 1;
    full[Symbol.dispose]();
  });
  assert.deepEqual([tries, epochTimes(begun.db).length, readRole(first.folder).epoch_due], [1, 1, null]);
  begun.log.close();
  begun.db.close();
});

test('an epoch that is due is lost with neither a restore nor the section [copy]', async () => {
  await begin([1], first);
  await promote(first);
  first.kill();
  const { folder, place, now } = first;
  const made = await restoreFrom(place, folder.root, { now });
  assert.ok(!('earlier' in made) && !made.raised);
  assert.equal(readRole(folder).epoch_due, 1);
  const recovered = await recoverDetections({ folder, ...QUIETLY });
  const settings = { data: folder.root, copy: null };
  const parts = { settings, recovered, setCondition() {} } as unknown as StandbyParts;
  const begun = await createStandby().prepare(parts);
  assert.deepEqual([epochTimes(begun.db).length, readRole(folder).epoch_due], [1, null]);
  begun.log.close();
  begun.db.close();
});

test('what was revoked here before it became a standby is no change of access.db', async () => {
  await begin([], first);
  const { folder } = first;
  const [before, ended] = [changeOf(first), { kind: 'account', id: 'one', at: 1 } as const];
  await change('one');
  await turn(first);
  assert.equal(changeOf(first), before + 1);
  prepareRevocations(folder);
  noteEnded(folder, ended);
  const config = { copy: { standby: true }, preseed: { accounts: [], subscriptions: [], keys: [] } };
  const parts = { config: config as unknown as Config, kind: 'appliance', log: {} as Logger } as const;
  prepareAccess(parts, folder.root);
  // Otherwise the next change of the writer would have the same number.
  assert.equal(changeOf(first), before + 1);
  assert.deepEqual(readEnded(folder), [ended]);
});
