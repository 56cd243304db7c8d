/**
 * Compares `detections.db` with a database that was made from the log: every column of every row, in SQL, on one snapshot
 * of `detections.db`. Texts are compared by their checksums, which the other database has too.
 */
import { errorCode, reasonOf } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { requireChecksum, type StoredText } from '../store/row-checksum.ts';
import { LOGGED_TABLES } from './apply-log.ts';
import type { FindingKindName, ScrubFindings } from './scrub-findings.ts';

export interface CompareOptions {
  /** `detections.db`, in a transaction. */
  readonly db: Database;
  /** The schema of the database that was made from the log up to the same entry, without texts; it is attached to `db`. */
  readonly made: string;
  readonly findings: ScrubFindings;
  readonly onProgress: (table: string, done: number, total: number) => void;
}

interface TableSpec {
  readonly table: string;
  readonly key: readonly string[];
  readonly columns: readonly string[];
  /** Only with rows that a removal may still have to delete. */
  readonly place: boolean;
}

const TEXT = 'body';
/** Their texts have checksums. */
const TABLES_OF_TEXTS = ['stream_row', 'rescored'];
/** Their rows belong to streams. */
const TABLES_OF_STREAMS = [...TABLES_OF_TEXTS, 'detection'];
const COLUMNS = 'SELECT name, pk FROM pragma_table_info(?, ?) ORDER BY cid';
const SCHEMA: TableSpec = {
  table: 'sqlite_schema',
  key: ['type', 'name'],
  columns: ['tbl_name', 'sql'],
  place: false,
};
const INTEGRITY = 'PRAGMA main.integrity_check(100)';

export function compareTables(options: CompareOptions): void {
  const { db, findings, onProgress } = options;
  const tables = [...TABLES_OF_STREAMS, 'stream', ...LOGGED_TABLES];
  const specs = [SCHEMA, ...tables.map((table) => specOf(options, table))];
  for (const [done, spec] of specs.entries()) {
    onProgress(spec.table, done, specs.length);
    guard(findings, spec.table, () => compareTable(options, spec));
    if (TABLES_OF_TEXTS.includes(spec.table))
      guard(findings, spec.table, () => checkTexts(db, spec.table, findings));
  }
  onProgress('the structure', specs.length, specs.length);
  guard(findings, 'detections.db', () => checkIntegrity(db, findings));
}

function specOf({ db, made }: CompareOptions, table: string): TableSpec {
  const all = db.prepare<unknown[], { name: string; pk: number }>(COLUMNS).all(table, made);
  return {
    table,
    key: all.filter(({ pk }) => pk > 0).map(({ name }) => name),
    columns: all.filter(({ pk, name }) => pk === 0 && name !== TEXT).map(({ name }) => name),
    place: TABLES_OF_STREAMS.includes(table),
  };
}

type Row = Readonly<Record<string, string | number | null>>;

/** Rows of a removed subscription are deleted after the log says so: those that are still there are not damage. */
function compareTable({ db, made, findings }: CompareOptions, spec: TableSpec): void {
  const { table, key, columns, place } = spec;
  const [first = ''] = key;
  const keys = key.map((name) => `made.${name} AS ${name}`).join();
  const isSame = columns.map((name) => `(made.${name} IS live.${name})`);
  const join = `USING (${key.join()})`;
  const differing = `
    SELECT ${keys}, live.${first} IS NULL AS is_missing${isSame.map((same, at) => `, ${same} AS same_${at}`).join('')}
    FROM ${made}.${table} AS made LEFT JOIN main.${table} AS live ${join}
    WHERE live.${first} IS NULL OR NOT (${['true', ...isSame].join(' AND ')})`;
  for (const row of db.prepare<unknown[], Row>(differing).iterate()) {
    if (row.is_missing === 1) findings.add('row missing', `${table} ${keyText(key, row)}`);
    else {
      const names = columns.filter((_, at) => row[`same_${at}`] === 0);
      findings.add('row differs', `${table} ${keyText(key, row)}: ${names.join(', ')}`);
    }
  }
  const removed = place
    ? `AND live.place >> 34 NOT IN (SELECT ordinal FROM ${made}.stream WHERE removed = 1)`
    : '';
  const extra = `
    SELECT ${key.map((name) => `live.${name} AS ${name}`).join()}
    FROM main.${table} AS live LEFT JOIN ${made}.${table} AS made ${join}
    WHERE made.${first} IS NULL ${removed}`;
  for (const row of db.prepare<unknown[], Row>(extra).iterate())
    findings.add('row too many', `${table} ${keyText(key, row)}`);
}

function checkTexts(db: Database, table: string, findings: ScrubFindings): void {
  const sql = `SELECT place, CAST(body AS BLOB) AS body, checksum FROM main.${table}`;
  for (const text of db.prepare<unknown[], StoredText>(sql).iterate()) {
    try {
      requireChecksum(text);
    } catch {
      findings.add('row differs', `${table} place ${text.place}: ${TEXT}`);
    }
  }
}

function checkIntegrity(db: Database, findings: ScrubFindings): void {
  for (const { integrity_check: line } of db
    .prepare<unknown[], { integrity_check: string }>(INTEGRITY)
    .all()) {
    if (line === 'ok') continue;
    const kind: FindingKindName = /index/.test(line) ? 'index disagrees' : 'database malformed';
    findings.add(kind, line);
  }
}

/** The statements are correct, so if one cannot run, what it reads is damaged. */
function guard(findings: ScrubFindings, what: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const isOfFile = isDamage(error) || /^SQLITE_(IOERR|ERROR)/.test(errorCode(error));
    if (!isOfFile || isDiskFull(error)) throw error;
    findings.add('database malformed', `${what}: ${reasonOf(error)}`);
  }
}

function keyText(key: readonly string[], row: Row): string {
  return key.map((name) => `${name} ${row[name]}`).join(', ');
}
