/**
 * Compares `detections.db` with a database that was made from the log, in ranges of the primary key.
 *
 * Each range is read in a short transaction of its own, since a long one would let the write-ahead log grow. The same
 * transaction reads the database's mark, and the other database is brought to that entry before the comparison. So both
 * are of the same moment, whatever is written meanwhile, and every difference is damage.
 */
import { hash } from 'node:crypto';
import { counted, grouped } from '../counted.ts';
import { errorCode, reasonOf } from '../refused.ts';
import { type Database, reading, type Statement } from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { type LogMark, readLogMark } from '../store/log-mark.ts';
import { ordinalOf } from '../store/stream-place.ts';
import { LOGGED_TABLES } from './apply-log.ts';
import { endedStreams } from './detection-rows.ts';
import type { FindingKindName, ScrubFindings } from './scrub-findings.ts';

export interface CompareOptions {
  readonly db: Database;
  /** Made from the log; it has {@link digestOf} in place of each text. */
  readonly made: Database;
  /** Brings `made` to a mark of the database. */
  readonly follow: (mark: LogMark | null) => Promise<void>;
  readonly findings: ScrubFindings;
  readonly between: () => Promise<void>;
  /** Rows that were compared of a table. */
  readonly onProgress: (table: string, done: number, total: number) => void;
}

interface TableSpec {
  readonly table: string;
  readonly key: readonly string[];
  readonly columns: readonly string[];
  /** An index that is compared too; null: `PRAGMA integrity_check` does it, which is one long read. */
  readonly index: Index | null;
}

interface Index {
  readonly name: string;
  /** Finds a row by the index. */
  readonly sql: string;
  /** Those of the row that are bound. */
  readonly columns: readonly string[];
}

type Value = string | number | null | Buffer;
type Row = readonly Value[];

/** As many rows as make about half a megabyte. */
const RANGE_ROWS = 500;
const TEXT = 'body';

const PROBE_STREAM_ROW = `
  SELECT 1 FROM stream_row INDEXED BY stream_row_by_position
  WHERE place >> 34 = (? >> 34) AND position = ? AND place = ?`;
const PROBE_DETECTION = `
  SELECT 1 FROM detection INDEXED BY detection_by_time
  WHERE place >> 34 = (? >> 34) AND first_detected_at = ? AND id = ? AND place = ?`;

/** The tables that grow with every detection, and their indexes. */
const LARGE_TABLES: Readonly<Record<string, Index | null>> = {
  stream_row: {
    name: 'stream_row_by_position',
    sql: PROBE_STREAM_ROW,
    columns: ['place', 'position', 'place'],
  },
  rescored: null,
  detection: {
    name: 'detection_by_time',
    sql: PROBE_DETECTION,
    columns: ['place', 'first_detected_at', 'id', 'place'],
  },
};

const SCHEMA: TableSpec = {
  table: 'sqlite_schema',
  key: ['type', 'name'],
  columns: ['type', 'name', 'tbl_name', 'sql'],
  index: null,
};

const SMALL_TABLES = ['stream', ...LOGGED_TABLES];
const COLUMNS = 'SELECT name, pk FROM pragma_table_info(?) ORDER BY cid';

/** Replaces a text in the comparison. */
export function digestOf(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 24);
}

/**
 * Rows of a removed subscription are deleted after the log says so: those that are still there are not damage.
 *
 * @throws whatever `follow` and `between` throw
 */
export async function compareTables(options: CompareOptions): Promise<void> {
  const { db, made, findings, between } = options;
  await compareTable(options, SCHEMA);
  for (const [table, index] of Object.entries(LARGE_TABLES)) {
    await compareTable(options, specOf(made, table, index));
    if (index !== null) await compareIndex(options, `${table} INDEXED BY ${index.name}`, index.name);
  }
  for (const table of SMALL_TABLES) {
    await compareTable(options, specOf(made, table, null));
    await between();
    checkIntegrity(db, table, findings);
  }
  // Free pages, and the schema.
  checkIntegrity(db, 'sqlite_schema', findings);
}

async function compareTable(options: CompareOptions, spec: TableSpec): Promise<void> {
  const { db, made, findings, follow, between, onProgress } = options;
  const total = countOf(made, spec.table);
  const expected = new Ranges(made, spec);
  let found: Ranges | null = null;
  let done = 0;
  for (let low: Row | null = null; ; ) {
    await between();
    let high = expected.keyAfter(low, RANGE_ROWS);
    let range: Range;
    try {
      found ??= new Ranges(db, spec);
      range = found.read(low, high);
    } catch (error) {
      noteUnreadable(findings, `${spec.table}${low === null ? '' : ` after ${keyText(spec, low)}`}`, error);
      if (found === null || high === null) return;
      low = high;
      continue;
    }
    // It has more rows than expected, or some were added since: the rest is the next range.
    const last = range.isCut ? found.keyOf(range.rows.at(-1) ?? []) : high;
    if (last !== null && !expected.isAfter(last, low)) {
      findings.add('database malformed', `${spec.table}: the keys are out of order`);
      if (high === null) return;
    } else high = last;
    await follow(range.mark);
    compareRows(options, found, expected.read(low, high), range);
    done += range.rows.length;
    onProgress(spec.table, done, total);
    if (high === null) return;
    low = high;
  }
}

interface Range {
  readonly mark: LogMark | null;
  readonly rows: readonly Row[];
  /** Whether the range may have more rows. */
  readonly isCut: boolean;
  /** Rows that the index does not find. */
  readonly unindexed: readonly Row[];
}

/** Reads one table of one database in ranges of its key: above `low`, up to and including `high`; null is the end. */
class Ranges {
  readonly #db: Database;
  readonly spec: TableSpec;
  readonly #from: string;
  readonly #statements = new Map<string, Statement<Row>>();
  readonly #probe: Statement | null;

  constructor(db: Database, spec: TableSpec) {
    this.#db = db;
    this.spec = spec;
    this.#from = spec.index === null ? spec.table : `${spec.table} NOT INDEXED`;
    this.#probe = spec.index === null ? null : db.prepare(spec.index.sql);
  }

  read(low: Row | null, high: Row | null): Range {
    const max = 2 * RANGE_ROWS;
    return reading(this.#db, () => {
      const mark = readLogMark(this.#db);
      const bounds = [...(low ?? []), ...(high ?? [])];
      const rows = this.#statement(low, high).all(...bounds, max);
      const unindexed = rows.filter((row) => !this.#isIndexed(row));
      return { mark, rows, isCut: rows.length === max, unindexed };
    });
  }

  /** The key this many rows further; null if there are fewer. */
  keyAfter(low: Row | null, rows: number): Row | null {
    const { key } = this.spec;
    const sql = `SELECT ${key.join()} FROM ${this.#from} ${where(key, low, null)} ORDER BY ${key.join()} LIMIT 1 OFFSET ?`;
    return this.#prepared(sql).get(...(low ?? []), rows - 1) ?? null;
  }

  /** Whether a key comes after another, as SQLite orders them. */
  isAfter(key: Row, low: Row | null): boolean {
    if (low === null) return true;
    const marks = key.map(() => '?').join();
    return this.#prepared(`SELECT (${marks}) > (${marks})`).get(...key, ...low)?.[0] === 1;
  }

  keyOf(row: Row): Row {
    return this.valuesOf(row, this.spec.key);
  }

  valuesOf(row: Row, columns: readonly string[]): Value[] {
    return columns.map((column) => row[this.spec.columns.indexOf(column)] ?? null);
  }

  #isIndexed(row: Row): boolean {
    const { index } = this.spec;
    return index === null || this.#probe?.get(...this.valuesOf(row, index.columns)) !== undefined;
  }

  #statement(low: Row | null, high: Row | null): Statement<Row> {
    const { key, columns } = this.spec;
    return this.#prepared(
      `SELECT ${columns.join()} FROM ${this.#from} ${where(key, low, high)} ORDER BY ${key.join()} LIMIT ?`,
    );
  }

  #prepared(sql: string): Statement<Row> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare<unknown[], Row>(sql).raw();
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function where(key: readonly string[], low: Row | null, high: Row | null): string {
  const names = `(${key.join()})`;
  const values = `(${key.map(() => '?').join()})`;
  const bounds = [
    ...(low === null ? [] : [`${names} > ${values}`]),
    ...(high === null ? [] : [`${names} <= ${values}`]),
  ];
  return bounds.length === 0 ? '' : `WHERE ${bounds.join(' AND ')}`;
}

function compareRows(
  { made, findings }: CompareOptions,
  ranges: Ranges,
  expected: Range,
  found: Range,
): void {
  const { spec } = ranges;
  const shown = (row: Row) => JSON.stringify(row);
  const keyed = (row: Row) => JSON.stringify(ranges.keyOf(row));
  const missing = new Map(expected.rows.map((row) => [keyed(row), row]));
  const text = spec.columns.indexOf(TEXT);
  for (const whole of found.rows) {
    const row = whole.map((value, at) =>
      at === text && typeof value === 'string' ? digestOf(value) : value,
    );
    const name = `${spec.table} ${keyText(spec, ranges.keyOf(row))}`;
    const right = missing.get(keyed(row));
    missing.delete(keyed(row));
    if (right === undefined) {
      if (!isOfRemovedStream(made, ranges, row)) findings.add('row too many', name);
    } else if (shown(row) !== shown(right)) {
      const columns = spec.columns.filter((_, at) => row[at] !== right[at]);
      findings.add('row differs', `${name}: ${columns.join(', ')}`);
    }
  }
  for (const row of missing.values())
    findings.add('row missing', `${spec.table} ${keyText(spec, ranges.keyOf(row))}`);
  for (const row of found.unindexed)
    findings.add(
      'index disagrees',
      `${spec.index?.name} does not find ${spec.table} ${keyText(spec, ranges.keyOf(row))}`,
    );
}

function isOfRemovedStream(made: Database, ranges: Ranges, row: Row): boolean {
  const [place] = ranges.valuesOf(row, ['place']);
  return typeof place === 'number' && endedStreams(made).includes(ordinalOf(place));
}

/** Finds extra rows of an index; missing ones were found with the rows. @param source the table, read by the index */
async function compareIndex(options: CompareOptions, source: string, index: string): Promise<void> {
  const { db, made, findings, follow, between } = options;
  for (;;) {
    await between();
    const removed = endedStreams(made);
    // Removed streams are not counted: only one side still has their rows.
    const rowsOf = (counted: Database) =>
      removed.reduce(
        (rows, ordinal) => rows - countOf(counted, `${source} WHERE place >> 34 = ${ordinal}`),
        countOf(counted, source),
      );
    let found: { readonly mark: LogMark | null; readonly rows: number };
    try {
      found = reading(db, () => ({ mark: readLogMark(db), rows: rowsOf(db) }));
    } catch (error) {
      noteUnreadable(findings, index, error);
      return;
    }
    await follow(found.mark);
    if (endedStreams(made).length > removed.length) continue;
    const rows = rowsOf(made);
    if (found.rows !== rows)
      findings.add(
        'index disagrees',
        `${index} has ${counted(found.rows, 'row')} instead of ${grouped(rows)}`,
      );
    return;
  }
}

function checkIntegrity(db: Database, table: string, findings: ScrubFindings): void {
  try {
    for (const { integrity_check: line } of db
      .prepare<unknown[], { integrity_check: string }>(`PRAGMA integrity_check(${table})`)
      .all()) {
      if (line === 'ok') continue;
      const kind: FindingKindName = /index/.test(line) ? 'index disagrees' : 'database malformed';
      findings.add(kind, `${table}: ${line}`);
    }
  } catch (error) {
    noteUnreadable(findings, table, error);
  }
}

/** The statements are correct, so if one cannot run, what it reads is damaged. */
function noteUnreadable(findings: ScrubFindings, where: string, error: unknown): void {
  const isOfFile = isDamage(error) || /^SQLITE_(IOERR|ERROR)/.test(errorCode(error));
  if (!isOfFile || isDiskFull(error)) throw error;
  findings.add('database malformed', `${where}: ${reasonOf(error)}`);
}

function keyText({ key }: TableSpec, values: Row): string {
  return key.map((name, at) => `${name} ${values[at]}`).join(', ');
}

function countOf(db: Database, source: string): number {
  return db.prepare<unknown[], { rows: number }>(`SELECT count(*) AS rows FROM ${source}`).get()?.rows ?? 0;
}

/** @param made the database whose columns are certainly right */
function specOf(made: Database, table: string, index: Index | null): TableSpec {
  const columns = made.prepare<unknown[], { name: string; pk: number }>(COLUMNS).all(table);
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  return { table, key: key.map(({ name }) => name), columns: columns.map(({ name }) => name), index };
}
