/**
 * Recorded logs, one of each format: every later version of the program must read the same content from them.
 *
 * `test/log-format-1` was recorded with version 0.1.0: windows of both exports, a failed one that was reset,
 * corrections, a rescoring, a backfill, a replay under a licence, a removed subscription and account, a revoked key.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { LOGGED_TABLES, STREAM_TABLE } from '../../src/log/apply-log.ts';
import { encodeFrame } from '../../src/log/frame.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { listSegments } from '../../src/log/segment.ts';
import { readOneDetection } from '../../src/query/detection-text.ts';
import { type Database, makeSchema, openContent, openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { createHistory, QUIETLY, rescored, variedRows } from '../support/history.ts';
import { without } from '../support/installed.ts';
import { example, tableRows, topic } from '../support/manual.ts';
import { inFolder } from '../support/program.ts';
import { readStream, STREAMS } from '../support/streams.ts';

const BASE_URL = Buffer.from('https://api.example');

interface Recorded {
  /** Every version in the order of the change stream, each with its position, as served. */
  readonly changes: readonly { readonly position: number; readonly text: string }[];
  /** The current state of every detection, as served. */
  readonly detections: readonly string[];
  /** Rows of the tables that the log names. */
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
}

/** @param data must not be in use by a writer */
function recordOf(data: string): Recorded {
  using db = openDatabase(join(data, 'detections.db'), 'read');
  const changes = changesOf(db);
  const ids = [...new Set(changes.map(({ text }) => String(JSON.parse(text).id)))].sort();
  const one = { streams: STREAMS, projection: null, baseUrl: BASE_URL };
  return {
    changes,
    detections: ids.map((id) => readOneDetection(db, id, one) ?? ''),
    tables: Object.fromEntries(LOGGED_TABLES.map((table) => [table, rowsOf(db, table)])),
  };
}

function changesOf(db: Database): Recorded['changes'] {
  const positions = db.prepare<[], number>('SELECT position FROM stream_row ORDER BY position').pluck().all();
  const rows: unknown[] = JSON.parse(`[${readStream(db)}]`);
  return rows.map((row, at) => ({ position: positions[at] ?? 0, text: JSON.stringify(row) }));
}

/** All rows of a table, sorted. */
function rowsOf(db: Database, table: string): unknown[] {
  const rows = db.prepare(`SELECT * FROM ${table}`).all();
  const texts = rows.map((row) => JSON.stringify(row)).sort();
  return texts.map((text) => JSON.parse(text));
}

const FIXTURE = join(import.meta.dirname, '..', 'log-format-1');
const recorded: Recorded = JSON.parse(readFileSync(join(FIXTURE, 'recorded.json'), 'utf8'));

test('a log of format 1 is read as recorded', () =>
  inFolder(async (folder) => {
    cpSync(join(FIXTURE, 'log'), join(folder, 'log'), { recursive: true });
    const { db, log } = await recoverDetections({ folder: dataFolder(folder), ...QUIETLY });
    log.close();
    db.close();
    assert.ok(recorded.changes.length > 10 && recorded.detections.length > 7);
    const found = recordOf(folder);
    assert.deepEqual(found.changes, recorded.changes);
    assert.deepEqual(found.detections, recorded.detections);
    for (const [table, rows] of Object.entries(recorded.tables)) {
      assert.equal(found.tables[table]?.length, rows.length, table);
      // A later version may have additional columns.
      for (const [at, row] of rows.entries()) {
        const own: object = Object(found.tables[table]?.[at]);
        assert.deepEqual({ ...own, ...Object(row) }, own, table);
      }
    }
  }));

test('names every table of the log with its columns', () => {
  const [, text = ''] = topic('log-format').split('<!-- example: tables of log -->\n');
  const named = tableRows(text.split('\n\n')[0] ?? '').map(([table = '', columns = '']) => [
    table.replaceAll('`', ''),
    [...columns.matchAll(/`(\w+)`/g)].map(([, column]) => column).sort(),
  ]);
  using db = openContent(':memory:');
  makeSchema(db, DETECTIONS_SCHEMA);
  const columnsOf = (table: string) =>
    db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table).sort();
  const tables = [...LOGGED_TABLES, STREAM_TABLE].sort();
  const stored = tables.map((table) => [table, columnsOf(table)]);
  assert.deepEqual(named.sort(), stored);
});

describe("the manual's reader", { skip: without('python3', 'zstd') }, async () => {
  const history = await createHistory(1024);
  after(history.delete);

  /** The detections of a log, by id, as the manual's example prints them. */
  function readLog(log: string): unknown[] {
    const args = ['-c', example('log-format', 'log-reader'), log];
    const { status, stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
    assert.equal(status, 0, stderr);
    return byId(stdout.trimEnd().split('\n'));
  }
  const byId = (texts: readonly string[]): unknown[] =>
    texts.map((text) => JSON.parse(text)).sort((a, b) => (a.id < b.id ? -1 : 1));

  function current(): unknown[] {
    history.writer().flush();
    const select = `SELECT coalesce(rescored.body, stream_row.body) FROM detection
      JOIN stream_row ON stream_row.place = detection.place
      JOIN stream ON stream.ordinal = detection.place >> 34 AND removed = 0
      LEFT JOIN rescored ON rescored.place = detection.place`;
    const texts = history.db().prepare<[], string>(select).pluck().all();
    const shown = texts.map((text) => text.replace(/"event":"[a-z]+",/, ''));
    return byId(shown.map((text) => text.replace('"\u0001/', '"https://api.example.com/')));
  }

  test('prints the recorded log of format 1', () =>
    inFolder(async (folder) => {
      cpSync(join(FIXTURE, 'log'), folder, { recursive: true });
      const { detections } = recorded;
      const expected = detections.map((text) => text.replace('//api.example/', '//api.example.com/'));
      assert.deepEqual(readLog(folder), byId(expected));
    }));

  test('prints the database content: corrected, rescored, removed and added again, compacted', async () => {
    const all = [7001, 7002, 7003];
    history.apply(variedRows(all, 0, 90), { batchRows: 20 });
    history.apply(variedRows(all, 0, 60, rescored(10, 90)));
    history.apply([...variedRows(all, 0, 40, rescored(11)), ...variedRows([7004], 0, 20)]);
    assert.equal(current().length, 110);
    assert.deepEqual(readLog(history.folder.log), current());
    await history.remove(7002);
    history.apply(variedRows([7001, 7002], 0, 40, rescored(12)));
    const expected = current();
    assert.equal(expected.filter((one) => Object(one).subscription_id === 7002).length, 20);
    assert.deepEqual(readLog(history.folder.log), expected);
    await history.compact();
    assert.equal(listSegments(history.folder.log).length, 1);
    assert.deepEqual(readLog(history.folder.log), expected);
  });

  test('skips an entry without its commit line, also a truncated one', () =>
    inFolder(async (folder) => {
      cpSync(join(FIXTURE, 'log'), folder, { recursive: true });
      const expected = readLog(folder);
      const { path } = listSegments(folder).at(-1) ?? assert.fail();
      const whole = readFileSync(path);
      appendFileSync(path, encodeFrame('lines', '{"removed":7001}\n'));
      assert.deepEqual(readLog(folder), expected);
      const lines = encodeFrame('commit', '{"removed":7001}\n{"commit":{"entry":1}}\n');
      for (const length of [30, lines.length - 1]) {
        writeFileSync(path, Buffer.concat([whole, lines.subarray(0, length)]));
        assert.deepEqual(readLog(folder), expected);
      }
    }));
});
