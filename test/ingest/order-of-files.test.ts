/**
 * Files in any order and with any repetitions give the same detections. Whatever the clock does, streams and versions
 * have no gaps, and positions only increase.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ExportName } from '../../src/detection/content-type.ts';
import type { ExportRow } from '../../src/detection/fields.ts';
import type { Applier } from '../../src/ingest/apply/apply-rows.ts';
import type { StreamWriter } from '../../src/ingest/apply/stream-writer.ts';
import type { RowBatch } from '../../src/ingest/reading/row-batch.ts';
import { logApplier } from '../../src/log/apply-log.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { assertSameContent, contentOfDatabase } from '../support/database-content.ts';
import { ndjson, type Row } from '../support/export-files.ts';
import { beforeCommit, streamWriterOn } from '../support/history.ts';
import { EXPORTED_AT_DEFAULT, exportRow } from '../support/matches.ts';
import { readContent } from '../support/read-export.ts';
import { checkStreams } from '../support/streams.ts';
import { testFolder } from '../support/test-folder.ts';

type File = readonly RowBatch[];

/** The licensed subscriptions: one of the two. */
const LICENSED = new Set([7002]);

/** Reads a file with these rows into batches. */
async function fileOf(exportName: ExportName, rows: readonly ExportRow[]): Promise<File> {
  // Columns of the other export must be absent, not null.
  const content = ndjson(rows.map((row) => withoutNulls(row, exportName)));
  const times = { latest: '2027-01-01T00:00:00Z', exported_at_default: EXPORTED_AT_DEFAULT };
  const options = { exportName, windowMs: null, licensed: [...LICENSED], ...times };
  const { result, batches } = await readContent('ndjson', content, options);
  assert.equal(result.kind, 'read', JSON.stringify(result));
  return batches;
}

function withoutNulls(row: ExportRow, exportName: ExportName): Row {
  const isThere = (column: string) => !(exportName === 'imagewire' && column === 'article_print');
  const members = Object.entries(row).filter(([column, value]) => value !== null && isThere(column));
  return Object.fromEntries(members);
}

type Store = Disposable & { readonly folder: string; db: Database };

function openStore(): Store {
  const own = testFolder();
  const store: Store = { folder: own, db: open(own), [Symbol.dispose]: () => store.db.close() };
  return store;
}

function open(own: string): Database {
  const db = openDatabase(join(own, 'detections.db'), 'write', DETECTIONS_SCHEMA);
  // Faster; these tests have no power cuts.
  db.pragma('synchronous = OFF');
  return db;
}

type OnDelivered = (firstPosition: number, deliveredAtMs: number) => void;

/** A writer as after a restart. */
function writerOf(store: Store, now: () => number, onDelivered: OnDelivered = () => {}): StreamWriter {
  store.db.close();
  store.db = open(store.folder);
  return streamWriterOn(store.db, store.folder, { now, segmentBytes: 2000, onDelivered });
}

/** Applies a file in a transaction that stays open. */
function begun(writer: StreamWriter, file: File = []): Applier {
  const applier = writer.begin(LICENSED);
  for (const batch of file) applier.apply(batch);
  return applier;
}

/** A file for each of these articles, with rows that are otherwise the same. */
function filesAbout(...articles: number[]): Promise<File[]> {
  const [row] = fc.sample(exportRow('text'), 1);
  assert.ok(row);
  return Promise.all(articles.map((article_id) => fileOf('newswire', [{ ...row, article_id }])));
}

/** Its streams must have no gaps, and a database rebuilt from its log must be equal. */
function checkStore({ db, folder: own }: Store): void {
  checkStreams(db);
  using made = openStore();
  const projection = logApplier(made.db);
  for (const { part } of entriesAfter(join(own, 'log'), null)) projection.apply(part);
  projection.commit();
  assertSameContent(contentOfDatabase(made.db), contentOfDatabase(db));
}

/** Applies each file in its own transaction; from time to time with a new writer, as after a restart. */
function applyAll(files: readonly File[], clock: readonly number[], store: Store): void {
  let call = 0;
  const now = () => clock[call++ % clock.length] ?? 0;
  let writer: StreamWriter | null = null;
  for (const [index, file] of files.entries()) {
    if (writer === null || index % 3 === 2) writer = writerOf(store, now);
    const applier = begun(writer, file);
    const before = writer.lastPosition;
    const first = writer.commit(applier, { kind: 'test' });
    assert.ok(first === 0 || first > before, 'positions must be unique');
  }
}

const DETECTIONS = `
  SELECT id, first_detected_at, exported_at_given, url_withheld, publisher_id, domain, band, score, print, source_hash,
    article_id, coalesce(rescored.body, row.body) AS body
  FROM detection JOIN stream_row AS row USING (place) LEFT JOIN rescored USING (place) ORDER BY id`;

/** All detections, without their versions. */
function detections(db: Database): object[] {
  const rows = db.prepare<[], { body: string }>(DETECTIONS).all();
  return rows.map((row) => ({ ...row, body: row.body.replace(/"version":\d+,("event":"\w+",)?/, '') }));
}

const rowsOf = (exportName: ExportName) =>
  fc.record({
    exportName: fc.constant(exportName),
    rows: fc.array(exportRow(exportName === 'newswire' ? 'text' : 'image'), { minLength: 1, maxLength: 6 }),
  });
const fileRows = fc.oneof(rowsOf('newswire'), rowsOf('imagewire'));

const scenario = fc.array(fileRows, { minLength: 1, maxLength: 6 }).chain((files) => {
  const indexes = files.map((_, index) => index);
  const all = fc.shuffledSubarray(indexes, { minLength: indexes.length });
  const again = fc.array(fc.constantFrom(...indexes), { maxLength: 4 });
  const order = fc.tuple(all, again).map((parts) => parts.flat());
  // A clock that stops, jumps and goes back.
  const time = fc.integer({ min: 1_700_000_000_000, max: 1_800_000_000_000 });
  const clock = fc.array(time, { minLength: 1, maxLength: 5 });
  return fc.record({ files: fc.constant(files), one: order, other: order, clock });
});

test('any order and repetition of files gives the same detections, and streams without gaps', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ files, one, other, clock }) => {
      const read = await Promise.all(files.map(({ exportName, rows }) => fileOf(exportName, rows)));
      const states = [one, other].map((order) => {
        using store = openStore();
        const inOrder = order.map((index) => read[index] ?? []);
        applyAll(inOrder, clock, store);
        checkStore(store);
        return detections(store.db);
      });
      assert.deepEqual(states[0], states[1]);
    }),
    { numRuns: 25 },
  );
});

test('a detection that is rescored and then changed has only the text of its new version', async () => {
  const [row] = fc.sample(exportRow('text'), { numRuns: 1, seed: 1 });
  assert.ok(row);
  const first = { ...row, strength_score: 10, last_scored_at: '2026-11-01T00:00:00Z' };
  const again = { ...first, last_scored_at: '2026-11-02T00:00:00Z' };
  const changed = { ...again, strength_score: 90, last_scored_at: '2026-11-03T00:00:00Z' };
  const files = await Promise.all([first, again, changed].map((each) => fileOf('newswire', [each])));
  using store = openStore();
  applyAll(files, [1_790_000_000_000], store);
  checkStore(store);
  assert.deepEqual(store.db.prepare('SELECT count(*) FROM rescored').pluck().all(), [0]);
});

test('a failed transaction leaves nothing, and the next one can start', async () => {
  const [file] = await filesAbout(1);
  using store = openStore();
  const delivered: number[] = [];
  const writer = writerOf(store, Date.now, (position) => delivered.push(position));
  const failing = begun(writer, file);
  const fail = () => {
    throw new Error('the disk is full');
  };
  assert.throws(() => writer.commit(failing, { kind: 'test' }, fail), /the disk is full/);
  assert.deepEqual(detections(store.db), []);
  const first = writer.commit(begun(writer, file), { kind: 'test' });
  assert.deepEqual(delivered, [first], 'no delivery may be reported for a rolled-back transaction');
  checkStore(store);
});

/** When each transaction was delivered, in their order; null: that is not written yet. */
function deliveries({ db }: Store): (number | null)[] {
  const select = 'SELECT delivered_at FROM delivery ORDER BY first_position';
  return db.prepare<[], number | null>(select).pluck().all();
}

test('an entry that is decided but refused by the database is applied once there is space, exactly once, and delivered then', async () => {
  const [before, file, other] = await filesAbout(1, 2, 3);
  using store = openStore();
  let nowMs = 1_790_000_000_000;
  const writer = writerOf(store, () => {
    nowMs += 1000;
    return nowMs;
  });
  writer.commit(begun(writer, before), { kind: 'test' });
  {
    using _ = beforeCommit(store.db, () => {
      // As SQLite does if the disk is full.
      store.db.exec('ROLLBACK');
      throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
    });
    const applier = begun(writer, file);
    assert.throws(() => writer.commit(applier, { kind: 'test' }), /disk is full/);
    assert.equal(detections(store.db).length, 1);
    assert.throws(() => writer.begin(), /disk is full/);
  }
  const first = writer.commit(begun(writer, other), { kind: 'test' });
  assert.equal(detections(store.db).length, 3);
  assert.ok(first > 1);
  writer.flush();
  const times = deliveries(store).map(Number);
  assert.deepEqual(times, [...new Set(times)].sort(), 'one after the other');
  assert.equal(times.length, 3);
  checkStore(store);
});

test('delivery times are written after the commit, and never decrease', async () => {
  const files = await filesAbout(1, 2, 3);
  using store = openStore();
  const clock = [5_000_000, 9_000_000, 1_000_000, 2_000_000];
  let nowMs = 0;
  const now = () => nowMs;
  const times: number[] = [];
  const writer = writerOf(store, now, (_, deliveredAt) => times.push(deliveredAt));
  for (const [index, file] of files.entries()) {
    const applier = begun(writer, file);
    nowMs = clock[index] ?? 0;
    writer.commit(applier, { kind: 'test' });
  }
  assert.deepEqual(times, [5_000_000, 9_000_000, 9_000_000]);
  assert.deepEqual(deliveries(store), [5_000_000, 9_000_000, null]);
  // A crash before the last delivery time was written: the next start sets it.
  nowMs = 12_000_000;
  writerOf(store, now).flush();
  assert.deepEqual(deliveries(store), [5_000_000, 9_000_000, 12_000_000]);
});
