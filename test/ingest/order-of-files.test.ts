/**
 * Files in any order and with any repetitions give the same detections. Whatever the clock does, streams and versions
 * have no gaps, and positions only increase.
 */

import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ExportName } from '../../src/detection/content-type.ts';
import type { ExportRow } from '../../src/detection/fields.ts';
import { parseFileName } from '../../src/exports/file-name.ts';
import type { Applier } from '../../src/ingest/apply/apply-rows.ts';
import type { StreamWriter } from '../../src/ingest/apply/stream-writer.ts';
import { type ReadingOrder, readExport } from '../../src/ingest/reading/read-export.ts';
import { addFrame, type RowBatch } from '../../src/ingest/reading/row-batch.ts';
import { LogApplier } from '../../src/log/apply-log.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { assertSameContent, contentOfDatabase } from '../support/database-content.ts';
import { streamWriterOn } from '../support/history.ts';
import { EXPORTED_AT_DEFAULT, exportRow } from '../support/matches.ts';
import { checkStreams } from '../support/streams.ts';
import { testFolder } from '../support/test-folder.ts';

const folder = testFolder();
let made = 0;

type File = readonly RowBatch[];

/** The licensed subscriptions: one of the two. */
const LICENSED = new Set([7002]);

/** Reads a file with these rows into batches. */
async function fileOf(exportName: ExportName, rows: readonly ExportRow[]): Promise<File> {
  made += 1;
  const name = `${exportName}.backfill-${made}.ndjson`;
  const parsed = parseFileName(name);
  assert.ok(parsed.kind === 'export');
  const path = join(folder, name);
  // Columns of the other export must be absent, not null.
  writeFileSync(path, rows.map((row) => `${JSON.stringify(withoutNulls(row, exportName))}\n`).join(''));
  const batches: RowBatch[] = [];
  const order: ReadingOrder = {
    source: { path, found: null },
    file: parsed.file,
    earliest: '2000-01-01T00:00:00Z',
    latest: '2027-01-01T00:00:00Z',
    exported_at_default: EXPORTED_AT_DEFAULT,
    mapping: null,
    require_trailer: false,
    bad_rows: 'fail',
    errors_max: 100,
    streams: null,
    licensed: [...LICENSED],
    rows_to_skip: 0,
  };
  const result = await readExport(order, {
    photoPath: (id) => `/photos/${id}?signature=abc`,
    onBatch: (batch) => {
      addFrame(batch);
      batches.push(batch);
    },
  });
  assert.equal(result.kind, 'read', JSON.stringify(result));
  rmSync(path);
  return batches;
}

function withoutNulls(row: ExportRow, exportName: ExportName): object {
  const members = Object.entries(row).filter(
    ([column, value]) => value !== null && !(exportName === 'imagewire' && column === 'article_print'),
  );
  return Object.fromEntries(members);
}

interface Store {
  readonly folder: string;
  db: Database;
}

function openStore(): Store {
  made += 1;
  const own = join(folder, `${made}`);
  mkdirSync(own);
  return { folder: own, db: open(own) };
}

function open(own: string): Database {
  const db = openDatabase(join(own, 'detections.db'), 'write', DETECTIONS_SCHEMA);
  // Faster; these tests have no power cuts.
  db.pragma('synchronous = OFF');
  return db;
}

/** A writer as after a restart. */
function writerOf(
  store: Store,
  now: () => number,
  onDelivered = (_: number, __: number) => {},
): StreamWriter {
  store.db.close();
  store.db = open(store.folder);
  return streamWriterOn(store.db, store.folder, { now, onDelivered, segmentBytes: 2000 });
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

/** A database rebuilt from the log must equal ingest's. */
function checkProjection({ db, folder: own }: Store): void {
  const made = openStore();
  try {
    const projection = new LogApplier(made.db);
    for (const { part } of entriesAfter(join(own, 'log'), null)) projection.apply(part);
    projection.commit();
    assertSameContent(contentOfDatabase(made.db), contentOfDatabase(db));
  } finally {
    made.db.close();
  }
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
  const order = fc
    .tuple(
      fc.shuffledSubarray(indexes, { minLength: indexes.length }),
      fc.array(fc.constantFrom(...indexes), { maxLength: 4 }),
    )
    .map(([all, again]) => [...all, ...again]);
  // A clock that stops, jumps and goes back.
  const clock = fc.array(fc.integer({ min: 1_700_000_000_000, max: 1_800_000_000_000 }), {
    minLength: 1,
    maxLength: 5,
  });
  return fc.record({ files: fc.constant(files), one: order, other: order, clock });
});

test('any order and repetition of files gives the same detections, and streams without gaps', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ files, one, other, clock }) => {
      const read = await Promise.all(files.map(({ exportName, rows }) => fileOf(exportName, rows)));
      const states = [one, other].map((order) => {
        const store = openStore();
        try {
          applyAll(
            order.map((index) => read[index] ?? []),
            clock,
            store,
          );
          checkStreams(store.db);
          checkProjection(store);
          return detections(store.db);
        } finally {
          store.db.close();
        }
      });
      assert.deepEqual(states[0], states[1]);
    }),
    { numRuns: 40 },
  );
});

test('a detection that is rescored and then changed has only the text of its new version', async () => {
  const [row] = fc.sample(exportRow('text'), { numRuns: 1, seed: 1 });
  assert.ok(row);
  const first = { ...row, strength_score: 10, last_scored_at: '2026-11-01T00:00:00Z' };
  const again = { ...first, last_scored_at: '2026-11-02T00:00:00Z' };
  const changed = { ...again, strength_score: 90, last_scored_at: '2026-11-03T00:00:00Z' };
  const files = await Promise.all([first, again, changed].map((each) => fileOf('newswire', [each])));
  const store = openStore();
  try {
    applyAll(files, [1_790_000_000_000], store);
    checkStreams(store.db);
    checkProjection(store);
    assert.deepEqual(store.db.prepare('SELECT count(*) FROM rescored').pluck().all(), [0]);
  } finally {
    store.db.close();
  }
});

test('reading applied files again changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fileRows, { minLength: 1, maxLength: 5 }), async (files) => {
      const read = await Promise.all(files.map(({ exportName, rows }) => fileOf(exportName, rows)));
      const store = openStore();
      try {
        applyAll(read, [1_700_000_000_000], store);
        const before = detections(store.db);
        const writer = writerOf(store, Date.now);
        for (const file of read) {
          const applier = begun(writer, file);
          assert.equal(writer.commit(applier, { kind: 'test' }), 0);
          const { unchanged, ...changed } = applier.counts;
          assert.deepEqual(changed, { created: 0, updated: 0, rescored: 0 });
          assert.equal(
            unchanged,
            file.reduce((rows, batch) => rows + batch.ids.length, 0),
          );
        }
        assert.deepEqual(detections(store.db), before);
      } finally {
        store.db.close();
      }
    }),
    { numRuns: 12 },
  );
});

test('a failed transaction leaves nothing, and the next one can start', async () => {
  const [file] = await filesAbout(1);
  const store = openStore();
  const delivered: number[] = [];
  const writer = writerOf(store, Date.now, (position) => delivered.push(position));
  const failing = begun(writer, file);
  assert.throws(
    () =>
      writer.commit(failing, { kind: 'test' }, () => {
        throw new Error('the disk is full');
      }),
    /the disk is full/,
  );
  assert.deepEqual(detections(store.db), []);
  const first = writer.commit(begun(writer, file), { kind: 'test' });
  assert.deepEqual(delivered, [first], 'no delivery may be reported for a rolled-back transaction');
  checkStreams(store.db);
  checkProjection(store);
  store.db.close();
});

test('an entry that is decided but refused by the database is applied once there is space, exactly once', async () => {
  const [file, other] = await filesAbout(1, 2);
  const store = openStore();
  const writer = writerOf(store, Date.now);
  const { exec } = store.db;
  store.db.exec = (sql) => {
    if (sql !== 'COMMIT') return exec.call(store.db, sql);
    // As SQLite does if the disk is full.
    exec.call(store.db, 'ROLLBACK');
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  };
  const applier = begun(writer, file);
  assert.throws(() => writer.commit(applier, { kind: 'test' }), /disk is full/);
  assert.deepEqual(detections(store.db), []);
  assert.throws(() => writer.begin(), /disk is full/);
  store.db.exec = exec;
  const first = writer.commit(begun(writer, other), { kind: 'test' });
  assert.equal(detections(store.db).length, 2);
  assert.ok(first > 1);
  checkStreams(store.db);
  checkProjection(store);
  store.db.close();
});

test('delivery times are written after the commit, and never decrease', async () => {
  const files = await filesAbout(1, 2, 3);
  const store = openStore();
  const clock = [5_000_000, 9_000_000, 1_000_000, 2_000_000];
  let nowMs = 0;
  const times: number[] = [];
  const writer = writerOf(
    store,
    () => nowMs,
    (_, deliveredAt) => times.push(deliveredAt),
  );
  for (const [index, file] of files.entries()) {
    const applier = begun(writer, file);
    nowMs = clock[index] ?? 0;
    writer.commit(applier, { kind: 'test' });
  }
  assert.deepEqual(times, [5_000_000, 9_000_000, 9_000_000]);
  const stored = () =>
    store.db
      .prepare<[], { delivered_at: number | null }>(
        'SELECT delivered_at FROM delivery ORDER BY first_position',
      )
      .all()
      .map(({ delivered_at }) => delivered_at);
  assert.deepEqual(stored(), [5_000_000, 9_000_000, null]);
  // A crash before the last delivery time was written: the next start sets it.
  nowMs = 12_000_000;
  writerOf(store, () => nowMs).flush();
  assert.deepEqual(stored(), [5_000_000, 9_000_000, 12_000_000]);
  store.db.close();
});
