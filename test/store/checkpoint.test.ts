/**
 * Starts with what a crash around a checkpoint left, and with files that an operator put in place of others. A file that
 * is written anew has nothing of deleted rows.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { DELETE_RESCORED, DELETE_STREAM_ROWS } from '../../src/log/detection-rows.ts';
import { scrub } from '../../src/log/scrub.ts';
import { abandon, checkpoint, closeDetections, openDetections, rewrite } from '../../src/store/checkpoint.ts';
import { type Database, openDatabase, writing } from '../../src/store/database.ts';
import { placesOf } from '../../src/store/stream-place.ts';
import { assertSameContent, withoutOpenDelivery } from '../support/database-content.ts';
import { type DiskCall, diskCallsOf, recordDiskCalls } from '../support/disk-calls.ts';
import { type History, QUIETLY, rowsFrom, withHistory } from '../support/history.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { testFolder } from '../support/test-folder.ts';

const PAGE_BYTES = 16_384;
const ENDS = ['', '-wal', '-checkpoint'] as const;
type Files = Readonly<Record<(typeof ENDS)[number], Buffer | null>>;

function filesOf({ folder: { detections } }: History): Files {
  const read = (path: string) => (existsSync(path) ? readFileSync(path) : null);
  const [wal, checkpoint] = [read(`${detections}-wal`), read(`${detections}-checkpoint`)];
  return { '': read(detections), '-wal': wal, '-checkpoint': checkpoint };
}

/** Overwrites them, so that each keeps its inode, as `cp` does. */
function putFiles({ folder }: History, files: Files): void {
  rmSync(`${folder.detections}-shm`, { force: true });
  for (const end of ENDS) {
    const content = files[end];
    if (content === null) rmSync(`${folder.detections}${end}`, { force: true });
    else writeFileSync(`${folder.detections}${end}`, content);
  }
}

type Moments = Awaited<ReturnType<typeof momentsOf>>;

/** In a transaction, which reads what there is now. */
function heldReader({ folder }: History): Database {
  const reader = openDatabase(folder.detections, 'read');
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM detection').get();
  return reader;
}

/**
 * Runs a checkpoint. A reader keeps it from its end, so that its middle can be seen.
 * @returns `older`: after a clean stop, before an earlier checkpoint; `before`: in use, before this one; `within`: in it, with
 *   no page copied yet; `copied`: after the last page was; `after`: after a clean stop
 */
async function momentsOf(history: History) {
  const older = filesOf(history);
  await history.restart();
  const db = history.db();
  history.apply(rowsFrom(6000, 20));
  checkpoint(db);
  assert.equal(filesOf(history)['-checkpoint'], null);
  history.apply(rowsFrom(7000, 400));
  const before = filesOf(history);
  // The state before the rows.
  const reader = heldReader(history);
  history.apply(rowsFrom(8000, 400));
  checkpoint(db);
  const within = filesOf(history);
  assert.ok(within['-checkpoint'] !== null, 'an incomplete checkpoint keeps its marker');
  reader.exec('COMMIT');
  reader.close();
  // All that a complete one writes.
  db.pragma('wal_checkpoint(FULL)');
  const copied = filesOf(history);
  history.stop();
  const after = filesOf(history);
  assert.deepEqual([after['-wal'], after['-checkpoint']], [null, null], 'nothing is left beside the file');
  const content = withoutOpenDelivery(history.stopped());
  return { older, before, within, copied, after, content };
}

/** Starts with some files. @returns why the database was rebuilt; null: it was not */
async function startWith(history: History, files: Files, { content }: Moments): Promise<string | null> {
  putFiles(history, files);
  const { madeAnew } = await history.restart();
  history.stop();
  assert.doesNotMatch(readdirSync(history.folder.root).join('\n'), /peek|draft|-wal|-checkpoint/);
  assertSameContent(withoutOpenDelivery(history.stopped()), content);
  return madeAnew;
}

const withMoments = (use: (history: History, moments: Moments) => Promise<void>) =>
  withHistory(async (history) => use(history, await momentsOf(history)));

/** Pages of two states. @param isNew whether a page is of the later one */
function mixed(before: Buffer | null, after: Buffer | null, isNew: (page: number) => boolean): Buffer {
  assert.ok(before !== null && after !== null);
  // A later page of the shorter file was not written: the file ends, or has a hole.
  const pages = Array.from({ length: Math.ceil(after.length / PAGE_BYTES) }, (_, page) =>
    (isNew(page) ? after : before).subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES),
  );
  return Buffer.concat(pages);
}

test('a checkpoint that is interrupted between any two pages is completed', () =>
  withMoments(async (history, moments) => {
    const { within, copied } = moments;
    const pages = Math.ceil((copied['']?.length ?? 0) / PAGE_BYTES);
    assert.ok((within['']?.length ?? 0) < (copied['']?.length ?? 0));
    const cuts: ((page: number) => boolean)[] = [
      () => false,
      () => true,
      ...[1, 2, Math.floor(pages / 2), pages - 1].map((end) => (page: number) => page < end),
      (page) => page > 0,
      (page) => page % 2 === 0,
    ];
    for (const [index, isNew] of cuts.entries()) {
      const files = { ...within, '': mixed(within[''], copied[''], isNew) };
      assert.equal(await startWith(history, files, moments), null, `cut ${index}`);
    }
  }));

test('without the -wal that its marker names, a file is made again', () =>
  withMoments(async (history, moments) => {
    const { older, before, within, copied } = moments;
    const half = mixed(within[''], copied[''], (page) => page % 2 === 0);
    const salts = Buffer.from(within['-wal'] ?? '');
    salts.writeUInt32BE(1, 16);
    const wals = [null, Buffer.alloc(0), salts].map((wal) => ({ '-wal': wal }));
    for (const change of [...wals, { '-checkpoint': Buffer.from('broken') }])
      assert.match(`${await startWith(history, { ...within, '': half, ...change }, moments)}`, /lost its/);
    assert.equal(await startWith(history, before, moments), null);
    assert.equal(await startWith(history, older, moments), null);
  }));

test('in a checkpoint, another file in its place is found out, also with the same inode', () =>
  withMoments(async (history, moments) => {
    const { older, within, after } = moments;
    const replaced = (file: Files) => startWith(history, { ...within, '': file[''] }, moments);
    assert.match(`${await replaced(older)}`, /was replaced/);
    assert.match(`${await replaced(after)}`, /was replaced/, 'a later one');
    // One that was made from the same entries of the log.
    putFiles(history, older);
    rmSync(history.folder.detections);
    await history.restart();
    history.stop();
    assert.match(`${await replaced(filesOf(history))}`, /was replaced/, 'one that was rebuilt');
  }));

test('without a marker, a -wal is dropped, whichever file lies beside it', () =>
  withMoments(async (history, moments) => {
    const { older, before, copied, after } = moments;
    for (const file of [older, before, after]) {
      const files = { '': file[''], '-wal': copied['-wal'], '-checkpoint': null };
      assert.equal(await startWith(history, files, moments), null);
    }
  }));

test('a file of two states keeps its marker until another has its name on the disk', () =>
  withMoments(async (history, moments) => {
    const { older, within } = moments;
    const { root, detections } = history.folder;
    putFiles(history, { ...within, '': older[''] });
    const calls = await diskCallsOf(() => history.restart());
    const at = (isOne: (call: DiskCall) => boolean) => calls.findIndex(isOne);
    const renamed = at((call) => 'to' in call && call.to === detections);
    const isSync = ({ call, path }: DiskCall) => call === 'sync' && path === root;
    const synced = calls.findIndex((call, index) => index > renamed && isSync(call));
    const removed = at(({ call, path }) => call === 'remove' && path === `${detections}-checkpoint`);
    assert.ok(0 <= renamed && renamed < synced && synced < removed, JSON.stringify(calls));
  }));

test('a marker names a -wal that is on the disk, and is removed from it before the -wal is emptied', () =>
  withHistory(async (history) => {
    const { root, detections } = history.folder;
    await history.restart();
    history.apply(rowsFrom(7000, 20));
    const db = history.db();
    const prepare = db.prepare.bind(db);
    const levels: unknown[] = [];
    // SQLite syncs the -wal with a commit at this level: https://sqlite.org/pragma.html#pragma_synchronous
    db.prepare = (sql: string) => {
      if (sql.startsWith('UPDATE file_state')) levels.push(db.pragma('synchronous', { simple: true }));
      return prepare(sql);
    };
    const steps: string[] = [];
    using _ = recordDiskCalls((call) => {
      const isMarker = call.path === `${detections}-checkpoint`;
      const isFull = readFileSync(`${detections}-wal`).length > 0;
      if ('to' in call && call.to === `${detections}-checkpoint`) steps.push('marked');
      if (call.call === 'remove' && isMarker) steps.push('removed');
      if (call.call === 'sync' && call.path === root) steps.push(isFull ? 'synced' : 'too late');
    });
    checkpoint(db);
    assert.deepEqual(levels, [2]);
    assert.deepEqual(steps, ['marked', 'synced', 'removed', 'synced']);
    assert.equal(db.pragma('synchronous', { simple: true }), 1);
    assert.equal(readFileSync(`${detections}-wal`).length, 0);
  }));

/** Does work that must fail because it cannot write its marker. */
function withoutMarker(root: string, work: () => void): void {
  const draft = join(root, '.detections.db-checkpoint.tmp');
  mkdirSync(draft);
  assert.throws(work, /EISDIR/);
  rmdirSync(draft);
}

const cases: Readonly<Record<string, (db: Database, root: string) => void>> = {
  abandoned: abandon,
  'its marker cannot be written': (db, root) => withoutMarker(root, () => closeDetections(db)),
};
for (const [what, end] of Object.entries(cases))
  test(`without a checkpoint, the file stays as it was: ${what}`, () =>
    withHistory(async (history) => {
      const before = filesOf(history);
      const db = openDetections(history.folder.detections);
      db.exec('UPDATE log_mark SET entry = entry + 1');
      end(db, history.folder.root);
      assert.ok(!db.open);
      const { '': file, '-wal': wal, '-checkpoint': marker } = filesOf(history);
      assert.ok(file?.equals(before[''] ?? Buffer.alloc(0)));
      assert.ok((wal?.length ?? 0) > 0);
      assert.equal(marker, null);
    }));

test('a verification that began on a stopped database copies nothing into it, and takes no write-ahead log', () =>
  withHistory(async (history) => {
    const { folder } = history;
    history.stop();
    rmSync(`${folder.detections}-wal`, { force: true });
    let killed: Files | null = null;
    await scrub({
      ...QUIETLY,
      folder,
      async between() {
        if (killed !== null) return;
        await history.restart();
        history.apply(rowsFrom(8000, 20));
        history.stop();
        killed = filesOf(history);
      },
    });
    assert.ok(isDeepStrictEqual(filesOf(history), killed));
    assert.equal((await history.restart()).madeAnew, null);
  }));

test('a marker that could not be written before names the file as it is', () =>
  withHistory(async (history) => {
    const { root } = history.folder;
    await history.restart();
    // It keeps every page from being copied.
    using reader = heldReader(history);
    history.apply(rowsFrom(7000, 20));
    withoutMarker(root, () => checkpoint(history.db()));
    checkpoint(history.db());
    const killed = filesOf(history);
    assert.ok(killed['-checkpoint'] !== null);
    reader.close();
    history.stop();
    putFiles(history, killed);
    assert.equal((await history.restart()).madeAnew, null);
  }));

const STREAMS = [1, 2, 3, 4];
const REMOVED = 3;
const TRANSACTIONS = 300;
const ROWS = 20;

const INSERT = `
  INSERT INTO stream_row (place, position, version, band, score, print, article_id, body, checksum)
  VALUES (:place, :position, 1, 1, 50, 0, 1, :body, 0)`;
const RESCORE = 'INSERT OR REPLACE INTO rescored (place, body, checksum) VALUES (?, ?, 0)';

/** Rows of random sizes, that arrive for all streams in turn: so pages in the middle are split again and again. */
function fill(db: Database): void {
  const prng = seededPrng(3, 'rows');
  const [insert, rescore] = [db.prepare(INSERT), db.prepare(RESCORE)];
  const rows = new Map(STREAMS.map((ordinal) => [ordinal, 0]));
  let position = 0;
  for (let number = 0; number < TRANSACTIONS; number += 1)
    writing(db, () => {
      for (let row = 0; row < ROWS; row += 1) {
        const ordinal = prng.pick(STREAMS);
        const sequence = (rows.get(ordinal) ?? 0) + 1;
        rows.set(ordinal, sequence);
        position += 1;
        const { first } = placesOf(ordinal);
        const body = `{"of":"stream ${ordinal}"}`.padEnd(400 + prng.below(900), 'x');
        insert.run({ place: first + sequence, position, body });
        if (prng.chance(0.3)) rescore.run(first + 1 + prng.below(sequence), body);
      }
    });
}

test('a rewritten file has nothing of deleted rows, which the splits of pages leave otherwise', () => {
  const path = join(testFolder(), 'detections.db');
  const countIn = (ordinal: number) => readFileSync(path, 'latin1').split(`"stream ${ordinal}"`).length - 1;
  const db = openDetections(path);
  fill(db);
  for (const sql of [DELETE_RESCORED, DELETE_STREAM_ROWS])
    db.prepare(sql).run({ ...placesOf(REMOVED), limit: TRANSACTIONS * ROWS });
  checkpoint(db);
  assert.ok(countIn(REMOVED) > 0, 'nothing to be rid of');
  const others = countIn(REMOVED + 1);
  {
    // SQLite leaves the file as it is until they are gone.
    using reader = openDatabase(path, 'read');
    reader.exec('BEGIN; SELECT 1 FROM stream_row');
    assert.match(String(rewrite(db)), /a long read of detections\.db/);
    assert.ok(countIn(REMOVED) > 0);
  }
  assert.equal(rewrite(db), null);
  assert.equal(countIn(REMOVED), 0);
  assert.ok(countIn(REMOVED + 1) > others / 2);
  closeDetections(db);
});
