/** Shipping: the copy has the whole log at any moment, and one writer. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findAccess } from '../../src/auth/spare-copy.ts';
import { entriesIn, findLog } from '../../src/copy/copy-contents.ts';
import { createShipper, TakenOver } from '../../src/copy/ship.ts';
import { loadCopy, verifyCopy } from '../../src/copy/source.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { listSegments } from '../../src/log/segment.ts';
import { closeDetections } from '../../src/store/checkpoint.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { RESTORE } from '../../src/store/role.ts';
import { copyTo, shipTo } from '../support/copy-at.ts';
import { contentOfDatabase } from '../support/database-content.ts';
import { createCopied, createHistory, type History, QUIETLY, rowsFrom } from '../support/history.ts';
import { type MemoryPlace, memoryPlace } from '../support/memory-place.ts';
import { patched } from '../support/patched-fs.ts';
import { testFolder } from '../support/test-folder.ts';

/** Segments of some twenty entries. */
const SEGMENT_BYTES = 16 * 1024;

const installation = () => createCopied(SEGMENT_BYTES);

/** The same installation, on another machine. */
async function twinOf({ folder }: History): Promise<History> {
  const other = await createHistory(SEGMENT_BYTES);
  other.stop();
  cpSync(folder.root, other.folder.root, { recursive: true });
  await other.restart();
  return other;
}

/** Adds entries, each of which is shipped. */
async function addEach(history: History, from: number, count: number, ship: () => Promise<unknown>) {
  for (let at = from; at < from + count; at += 1) {
    history.apply(rowsFrom(at, 1));
    await ship();
  }
}

/** An installation with this many entries, and its copy. A `using` declaration deletes it. */
async function shipped(entries: number, { partBytes = 1_000_000 } = {}) {
  const history = await installation();
  const place = memoryPlace();
  const shipper = createShipper(place, history.folder, { partBytes });
  const ship = () => shipTo(shipper, history);
  for (let at = 1; at <= entries; at += 1) history.apply(rowsFrom(at, 1));
  await ship();
  return {
    ...{ history, place, ship },
    add: (from: number, count: number) => addEach(history, from, count, ship),
    [Symbol.dispose]: history.delete,
  };
}

/** What is restored from a place equals the database. */
async function requireEqual(place: MemoryPlace, { db, folder }: History): Promise<void> {
  const stage = dataFolder(testFolder());
  await loadCopy(place, stage, () => {});
  const restored = await recoverDetections({ folder: stage, ...QUIETLY });
  restored.log.close();
  assert.deepEqual(contentOfDatabase(restored.db), contentOfDatabase(db()));
  closeDetections(restored.db);
  assert.deepEqual(readFileSync(stage.secret), readFileSync(folder.secret));
  const sound = { entries: readLogMark(db())?.entry, findings: [] };
  assert.deepEqual(await verifyCopy(place, () => {}), sound);
}

describe('a copy', () => {
  let history: History;
  before(async () => {
    history = await installation();
  });
  after(() => history.delete());

  test('has what the log has, after each entry; closed segments are one object', async () => {
    const place = memoryPlace();
    const shipper = createShipper(place, history.folder, { mayBeginAnew: true });
    for (let at = 1; at <= 60; at += 1) {
      history.apply(rowsFrom(at, 1));
      await shipTo(shipper, history);
      assert.equal((await verifyCopy(place, () => {})).entries, at);
    }
    const { objects } = await findLog(place);
    const isMerged = objects.some(({ last }) => last !== null);
    assert.ok(isMerged, 'no segment was merged');
    assert.ok(objects.length < 30, `${objects.length} objects for 60 entries`);
    await requireEqual(place, history);
    // Another process goes on where this one ended.
    history.apply(rowsFrom(100, 3));
    await shipTo(place, history);
    await requireEqual(place, history);
  });

  test('two processes of one installation write the same copy', async () => {
    const place = memoryPlace();
    const one = createShipper(place, history.folder, { mayBeginAnew: true });
    const other = createShipper(place, history.folder, { mayBeginAnew: true });
    const shipBoth = () => Promise.all([shipTo(one, history), shipTo(other, history)]);
    await addEach(history, 200, 30, shipBoth);
    await requireEqual(place, history);
  });

  test('a failure at any call leaves a copy that the next attempt completes', async () => {
    const objects = new Map<string, Buffer>();
    let failures = 0;
    for (let round = 1; round <= 60; round += 1) {
      const place = memoryPlace(objects);
      let calls = 0;
      place.before = () => {
        calls += 1;
        if (calls === 1 + (round % 30)) throw new Error('the place is away');
      };
      history.apply(rowsFrom(1000 + round, 1));
      if (round % 8 === 0) await history.compact();
      await shipTo(place, history).catch(() => (failures += 1));
      if (round % 5 > 0) continue;
      place.before = () => {};
      await shipTo(place, history);
      await requireEqual(place, history);
    }
    assert.ok(failures > 20, `${failures} failures`);
  });
});

test('compaction begins a generation; the old one keeps only what leads to it', async () => {
  using copy = await shipped(0);
  const { history, place, ship } = copy;
  for (let round = 1; round <= 3; round += 1) {
    await copy.add(round * 100, 12);
    await history.compact();
    await ship();
    await requireEqual(place, history);
    const { generation, changes } = await findLog(place);
    assert.match(generation, new RegExp(`^000${round + 1}-`));
    const inLog = [...place.objects.keys()].filter((name) => name.startsWith('log/'));
    const older = inLog.filter((name) => !name.startsWith(`log/${generation}/`));
    assert.deepEqual(older.sort(), changes);
  }
});

test('who finds the next number taken by another machine changes nothing', async () => {
  using copy = await shipped(5);
  const { history, place, ship } = copy;
  using other = await twinOf(history);
  other.apply(rowsFrom(50, 1));
  await shipTo(place, other);
  history.apply(rowsFrom(60, 1));
  let before = new Map(place.objects);
  await assert.rejects(ship(), /left as it is: it is the copy of a later state/);
  await assert.rejects(shipTo(place, history), /left as it is/);
  assert.deepEqual(place.objects, before);
  await requireEqual(place, other);
  other.writer().write({ kind: RESTORE, host: 'other' }, () => {});
  await shipTo(place, other);
  await assert.rejects(ship(), TakenOver);
  // As after a restore with --until: the copy has an earlier one of this machine.
  rmSync(history.folder.copied, { recursive: true });
  await assert.rejects(ship(), /later state/);
  // A place of another installation is left alone, too.
  before = new Map(place.objects);
  using stranger = await installation();
  await assert.rejects(shipTo(place, stranger), /another installation/);
  assert.deepEqual(place.objects, before);
});

test('a number that was merged and deleted makes no second writer of a machine that stood still', async () => {
  using history = await installation();
  const place = memoryPlace();
  history.apply(rowsFrom(1, 1));
  let meanwhile = async () => {};
  const list: typeof place.list = async (...asked) => {
    const names = await place.list(...asked);
    const pass = meanwhile;
    meanwhile = async () => {};
    await pass();
    return names;
  };
  const stale = createShipper({ ...place, list }, history.folder);
  await shipTo(stale, history);
  using other = await twinOf(history);
  const writer = createShipper(place, other.folder);
  // Between its look at what is there and its next entry.
  meanwhile = async () => {
    await addEach(other, 10, 50, () => shipTo(writer, other));
    assert.equal(place.objects.has('log/0001/0000000000000002.zst'), false);
  };
  history.apply(rowsFrom(100, 1));
  await assert.rejects(shipTo(stale, history), /later state/);
  await requireEqual(place, other);
});

test('a log that was laid anew has other segments: no two merged objects overlap', async () => {
  using copy = await shipped(20);
  const { place } = copy;
  await copy.add(100, 40);
  const mergedOf = () => [...place.objects.keys()].filter((name) => /\d{16}-\d{16}/.test(name));
  const before = mergedOf();
  assert.ok(before.length > 0, 'no segment was merged');
  using other = await createHistory(SEGMENT_BYTES);
  other.stop();
  rmSync(other.folder.detections);
  await loadCopy(place, other.folder, () => {});
  await other.restart();
  const shipper = createShipper(place, other.folder);
  await addEach(other, 200, 50, () => shipTo(shipper, other));
  assert.deepEqual(mergedOf().slice(0, before.length), before);
  assert.ok(mergedOf().length > before.length, 'no later segment was merged');
  await requireEqual(place, other);
});

test('an entry that is too large for one object has pieces, and a manifest that decides', async () => {
  using copy = await shipped(0, { partBytes: 4096 });
  const { history, place, ship } = copy;
  await copy.add(1, 10);
  history.apply(rowsFrom(100, 2000));
  await ship();
  await copy.add(9000, 1);
  assert.ok([...place.objects.keys()].some((name) => name.startsWith('large/0001/')));
  const { objects } = await findLog(place);
  const isMerged = objects.some(({ last }) => last !== null);
  assert.ok(!isMerged, 'its segment stays in parts');
  await requireEqual(place, history);
});

test('an entry is shipped without reading its segment from the beginning', async () => {
  using history = await createCopied(1_000_000);
  const shipper = createShipper(memoryPlace(), history.folder);
  const access = findAccess(history.folder);
  const read: number[] = [];
  for (let at = 1; at <= 100; at += 1) {
    history.apply(rowsFrom(at, 1));
    let bytes = 0;
    using _ = patched('readSync', (real) => (file: number, ...rest: [NodeJS.ArrayBufferView]) => {
      const count = real(file, ...rest);
      bytes += count;
      return count;
    });
    await shipper.ship(access, readLogMark(history.db()));
    read.push(bytes);
  }
  const [early = 0, late = 0] = [read[5], read[99]];
  assert.ok(early > 0 && late < 1.2 * early, `${early} bytes, then ${late}`);
});

test('damage in a copy is found, and named', async () => {
  using copy = await shipped(30);
  const { place } = copy;
  for (const [name, content] of [...place.objects]) {
    const damaged = Buffer.from(content);
    const at = damaged.length >> 1;
    damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
    const found = await verifyCopy(memoryPlace(new Map(place.objects).set(name, damaged)), () => {});
    // A secret of another value is a secret; the installation's id is compared by who writes.
    if (!['secret', 'installation.json'].includes(name)) assert.equal(found.findings.length, 1, name);
    const missing = new Map(place.objects);
    missing.delete(name);
    const without = await verifyCopy(memoryPlace(missing), () => {});
    const isLast = name === [...place.objects.keys()].filter((one) => one.startsWith('log/')).at(-1);
    if (!isLast && name !== 'installation.json') assert.equal(without.findings.length, 1, `without ${name}`);
  }
});

test('what its writer replaces while a copy is verified or restored is no damage', async () => {
  using copy = await shipped(12);
  const { history, place, ship } = copy;
  const replaceMeanwhile = async () => {
    await history.compact();
    const { objects } = await findLog(place);
    // Once the other one knows the objects.
    let reads = 0;
    place.before = async (operation, name) => {
      if (operation === 'read' && objects.some((object) => object.name === name)) reads += 1;
      if (reads < 2) return;
      place.before = () => {};
      await ship();
    };
  };
  const hasGeneration = (number: string) =>
    assert.ok([...place.objects.keys()].some((name) => name.startsWith(`log/${number}-`)));
  await replaceMeanwhile();
  assert.deepEqual(await verifyCopy(place, () => {}), { entries: 12, findings: [] });
  hasGeneration('0002');
  await copy.add(100, 6);
  await replaceMeanwhile();
  await requireEqual(place, history);
  hasGeneration('0003');
});

test('a failed attempt leaves nothing at the place that nothing leads to', async () => {
  using copy = await shipped(40, { partBytes: 1000 });
  const { history, place } = copy;
  const ship = () => shipTo(createShipper(place, history.folder, { partBytes: 1000 }), history);
  /** @param creates how many succeed */
  const failing = async (creates: number) => {
    let left = creates;
    place.before = (operation) => {
      if (operation === 'create' && left-- <= 0) away();
    };
    await assert.rejects(ship(), /away/);
    place.before = () => {};
  };
  const away = () => {
    throw new Error('the place is away');
  };
  const names = () => [...place.objects.keys()].sort();
  history.apply(rowsFrom(1000, 300), { batchRows: 30 });
  let before = names();
  for (const creates of [1, 2, 3]) {
    await failing(creates);
    assert.deepEqual(names(), before, `after ${creates} pieces`);
  }
  // It is not known then whether the pointer to them is there.
  place.before = (operation, name) => {
    if (operation === 'create' && name.startsWith('log/')) away();
  };
  await assert.rejects(ship(), /away/);
  const large = () => names().filter((name) => name.startsWith('large/0001/0000000000000041-'));
  const first = large();
  assert.ok(first.length > 3);
  place.before = () => {};
  await ship();
  assert.equal(large().length, first.length);
  assert.ok(large().every((name) => !first.includes(name)));
  await history.compact();
  for (let at = 2000; at < 2010; at += 1) history.apply(rowsFrom(at, 1));
  before = names();
  for (const creates of [1, 2, 3]) {
    await failing(creates);
    assert.deepEqual(names(), before, `after ${creates} objects of a new generation`);
  }
  await ship();
  await requireEqual(place, history);
  // What is there stays, where the answer that it was created is lost.
  const { generation } = await findLog(place);
  const create: typeof place.create = async (name, content) =>
    (await place.create(name, content)) && !name.startsWith(`log/${generation}/`);
  const shipLossily = () =>
    shipTo(createShipper({ ...place, create }, history.folder, { partBytes: 1000 }), history);
  history.apply(rowsFrom(5000, 300), { batchRows: 30 });
  await shipLossily();
  await requireEqual(place, history);
  await history.compact();
  await shipLossily();
  await requireEqual(place, history);
});

test('the old generation is whole until the new one takes its place', async () => {
  using copy = await shipped(12);
  const { history, place, ship } = copy;
  await history.compact();
  place.before = (operation, name) => {
    if (operation === 'create' && name.startsWith('log/0001/')) throw new Error('the place is away');
  };
  await assert.rejects(ship(), /away/);
  assert.ok([...place.objects.keys()].some((name) => name.startsWith('log/0002-')));
  assert.deepEqual(await verifyCopy(place, () => {}), { entries: 12, findings: [] });
  place.before = () => {};
  await shipTo(place, history);
  await requireEqual(place, history);
});

test('damage before the end of the log ends a call with an error: nothing after it counts as copied', async () => {
  using copy = await shipped(3);
  const { history, ship } = copy;
  for (let at = 4; at <= 6; at += 1) history.apply(rowsFrom(at, 1));
  const path = listSegments(history.folder.log).at(-1)?.path ?? '';
  const content = readFileSync(path);
  writeFileSync(path, Buffer.from(content).fill(0x5a, content.length - 20));
  await assert.rejects(ship(), /the log ends before entry 6/);
  writeFileSync(path, Buffer.from(content).fill(0x5a, content.length >> 1, (content.length >> 1) + 20));
  const to = join(history.folder.root, 'copy');
  await assert.rejects(copyTo(to, history.folder.root), /the log is damaged: .*wirewatch verify/);
});

test('whoever reads an object lets other work of the thread run meanwhile', async () => {
  using copy = await shipped(20);
  const copied = await findLog(copy.place);
  let hasTurned = false;
  setImmediate(() => (hasTurned = true));
  const seen: boolean[] = [];
  for await (const _ of entriesIn(copied, null)) seen.push(hasTurned);
  assert.deepEqual([copied.objects.length, seen[0], seen.at(-1)], [1, false, true]);
});
