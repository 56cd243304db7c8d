/** The complete content of a database, column by column: it must be equal after a rebuild. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';

export type Content = Readonly<Record<string, readonly unknown[]>>;

/** Without the name of the file's state (src/store/checkpoint.ts). */
const TABLES = `
  SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'file_state'
  ORDER BY name`;

/** Every row of those tables, without implicit rowids. */
export function contentOfDatabase(db: Database): Content {
  const tables = db.prepare<[], { name: string }>(TABLES).all();
  return Object.fromEntries(
    tables.map(({ name }) => {
      const columns = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(name);
      return [name, db.prepare(`SELECT ${columns.join()} FROM ${name} ORDER BY ${columns.join()}`).all()];
    }),
  );
}

/**
 * The content of a data folder's detections.db, without what the search for missing windows adds at every start. The
 * appliance must be stopped.
 */
export function contentOfDetections(data: string): Content {
  const content = reading(join(data, 'detections.db'), contentOfDatabase);
  const { window_look: _, export_window = [], export_expectation = [], ...others } = content;
  return {
    ...others,
    export_window: export_window.filter((row) => Object(row).status !== 'missing'),
    export_expectation: export_expectation.map((row) => ({ ...Object(row), looked_through: null })),
  };
}

export function assertSameContent(actual: Content, expected: Content, what = ''): void {
  assert.deepEqual(Object.keys(actual), Object.keys(expected));
  for (const [table, rows] of Object.entries(expected))
    assertSameList(actual[table] ?? [], rows, `${what} ${table}`);
}

/** Item by item: a diff of two complete lists is too long to read and takes minutes. */
export function assertSameList(actual: readonly unknown[], expected: readonly unknown[], what: string): void {
  const at = expected.findIndex((item, index) => !isDeepStrictEqual(item, actual[index]));
  if (at < 0 && actual.length === expected.length) return;
  const [found, wanted] = [actual, expected].map((list) =>
    JSON.stringify(list.at(at < 0 ? expected.length : at)),
  );
  assert.fail(
    `${what}: item ${at} of ${expected.length} (${actual.length} found) is ${found}, expected ${wanted}`,
  );
}

/** Omits the last delivery time: after a kill it is still null, and the next start sets it in its own entry. */
export function withoutOpenDelivery({ delivery = [], log_mark: _, ...others }: Content): Content {
  const closed = delivery.map((row, index) =>
    index < delivery.length - 1 ? row : { ...Object(row), delivered_at: null },
  );
  return { ...others, delivery: closed };
}

/** A database that is made from the log alone must equal the one in use. @param restart starts, and stops again */
export async function checkMadeAnew(data: string, restart: () => Promise<unknown>): Promise<void> {
  const content = () => withoutOpenDelivery(contentOfDetections(data));
  const before = content();
  for (const end of ['', '-wal', '-shm']) rmSync(join(data, `detections.db${end}`), { force: true });
  await restart();
  assertSameContent(content(), before, 'made from the log');
}

/** Changes a detections.db. @param change SQL, or work */
export function changeDetections(data: string, change: string | ((db: Database) => void)): void {
  using db = openDatabase(join(data, 'detections.db'), 'write', DETECTIONS_SCHEMA);
  if (typeof change === 'string') db.exec(change);
  else change(db);
}

/** Opens a database for reading, and closes it after `use`. */
export function reading<Result>(path: string, use: (db: Database) => Result): Result {
  using db = openDatabase(path, 'read');
  return use(db);
}

export const countOf = (db: Database, table: string) =>
  db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;

/** A new log has another mark, and a start writes the last delivery time. */
export const withoutLog = ({ log_mark: _, delivery: __, ...others }: Content): Content => others;
