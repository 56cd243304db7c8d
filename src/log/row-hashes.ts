/** Hashes of the rows of `detections.db`: one for each stream and table, the same for databases with the same rows. */
import { crc32 } from 'node:zlib';
import type { Database } from '../store/database.ts';
import { rowChecksum } from '../store/row-checksum.ts';
import { ordinalOf } from '../store/stream-place.ts';
import { LOGGED_TABLES } from './apply-log.ts';

/** Their rows belong to streams. */
const TABLES_OF_STREAMS = ['stream_row', 'rescored', 'detection'];
export const HASHED_TABLES = ['sqlite_schema', ...TABLES_OF_STREAMS, 'stream', ...LOGGED_TABLES] as const;

const TEXT = 'body';
const COLUMNS = 'SELECT name, pk FROM pragma_table_info(?) ORDER BY cid';
const ROWS_A_STEP = 500;

export interface RowHash {
  readonly rows: number;
  /** CRC-32 of the rows as JSON, in the order of their key, without texts: those have checksums. */
  readonly hash: number;
}

export interface HashOptions {
  readonly between: () => Promise<void>;
  /** Ordinals of removed streams, whose rows may still be there. */
  readonly removed: ReadonlySet<number>;
  /** Called for each text that does not match its checksum. Null: texts are not read. */
  readonly onBadText: ((where: string) => void) | null;
}

/** @returns a hash for each stream that has rows in the table, by `TABLE of stream ORDINAL`, or one by the table's name */
export async function rowHashes(
  db: Database,
  table: string,
  { between, removed, onBadText }: HashOptions,
): Promise<ReadonlyMap<string, RowHash>> {
  const { columns, keys } = tableOf(db, table);
  const isOfStreams = TABLES_OF_STREAMS.includes(table);
  const place = columns.indexOf('place');
  const checksum = columns.indexOf('checksum');
  const hasTexts = onBadText !== null && checksum !== -1;
  const sql = `SELECT ${columns.join()}${hasTexts ? `, CAST(${TEXT} AS BLOB)` : ''} FROM ${table} ORDER BY ${keys.join()}`;
  const hashes = new Map<string, RowHash>();
  let seen = 0;
  for (const values of db.prepare<unknown[], unknown[]>(sql).raw().iterate()) {
    seen += 1;
    if (seen % ROWS_A_STEP === 0) await between();
    const text = hasTexts ? values.pop() : null;
    const at = Number(values[place] ?? 0);
    const ordinal = ordinalOf(at);
    if (isOfStreams && removed.has(ordinal)) continue;
    if (hasTexts && !(text instanceof Buffer && rowChecksum(at, text) === values[checksum]))
      onBadText(`${table} place ${at}: its text does not match its checksum`);
    const name = isOfStreams ? `${table} of stream ${ordinal}` : table;
    const { rows, hash } = hashes.get(name) ?? { rows: 0, hash: 0 };
    hashes.set(name, { rows: rows + 1, hash: crc32(JSON.stringify(values), hash) });
  }
  return hashes;
}

function tableOf(db: Database, table: string): { readonly columns: string[]; readonly keys: string[] } {
  if (table === 'sqlite_schema')
    return { columns: ['type', 'name', 'tbl_name', 'sql'], keys: ['type', 'name'] };
  const all = db.prepare<unknown[], { name: string; pk: number }>(COLUMNS).all(table);
  return {
    columns: all.flatMap(({ name }) => (name === TEXT ? [] : name)),
    keys: all.flatMap(({ name, pk }) => (pk > 0 ? name : [])),
  };
}
