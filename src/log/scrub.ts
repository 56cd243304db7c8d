/**
 * The scrub: reads the log, with every check, up to the entry that `detections.db` has applied last, and compares the
 * database with it.
 *
 * It applies the log, with the code that a rebuild uses ({@link logApplier}), to a scratch database on the disk, and
 * compares hashes of both: one for each stream and table. So memory stays flat, and databases are equal if
 * a rebuild would give the same rows. The scratch database has no texts, only their checksums: it needs about a fifth of
 * the space. If there is too little, only the log is checked, and the result says so.
 *
 * It only reads, so an appliance may run meanwhile. It reads one state of the database: its write-ahead log grows
 * by what is written meanwhile.
 */
import { existsSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { grouped } from '../counted.ts';
import { errorCode, failed, Refused, reasonOf } from '../refused.ts';
import { abandon, walBytes } from '../store/checkpoint.ts';
import { type Database, openDatabase, openScratch, requireSchema, sizeOf } from '../store/database.ts';
import { DatabaseDamage, isDamage, isDiskFull } from '../store/database-errors.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { type DataFolder, freeBytes, ROOM_LEFT_BYTES } from '../store/folder.ts';
import { LogDamage, LogFailure } from '../store/log-errors.ts';
import { type LogMark, readLogMark } from '../store/log-mark.ts';
import { rowChecksum } from '../store/row-checksum.ts';
import { ordinalOf } from '../store/stream-place.ts';
import { LOGGED_TABLES, logApplier } from './apply-log.ts';
import { endedStreams } from './detection-rows.ts';
import { columnsOf } from './effects.ts';
import type { Commit } from './format.ts';
import { entriesAfter } from './log-reader.ts';
import { type ScrubFindings, type ScrubResult, scrubFindings } from './scrub-findings.ts';
import { bytesOf, listSegments } from './segment.ts';
import { findTail } from './torn-end.ts';

export interface SteppedWork {
  /** Called between short steps: lets other work run, and throws to end this. */
  readonly between: () => Promise<void>;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

export interface ScrubOptions extends SteppedWork {
  readonly folder: Pick<DataFolder, 'root' | 'log' | 'detections'>;
  /** The database, in a transaction that keeps one state of it; absent: it is opened. */
  readonly db?: Database;
}

/** A share of the size of the database. */
const SCRATCH_SHARE = 0.2;
const NO_ROOM =
  'the disk has too little free space for the comparison: it needs about a fifth of the size of detections.db, and 512 MiB more';

/** Their rows belong to streams. */
const TABLES_OF_STREAMS = ['stream_row', 'rescored', 'detection'];
const HASHED_TABLES = ['sqlite_schema', ...TABLES_OF_STREAMS, 'stream', ...LOGGED_TABLES] as const;

const TEXT = 'body';
const ROWS_A_STEP = 500;

/** A disk on which each reading finds something else is damaged, too. */
const READINGS_MAX = 5;

/**
 * What is found is checked once more, and counts only if it is found again: a read may fail, and a compaction may have
 * deleted what was being read. Of five readings that each found something else, the last one counts.
 * @throws whatever `between` throws; Refused `failed` if something cannot be read, though it is not known to be damaged
 */
export async function scrub(options: ScrubOptions): Promise<ScrubResult> {
  for (const before = new Set<string>(); ; ) {
    const { result, unread } = await scrubOnce(options);
    const found = `${result.findings.map(({ kind }) => kind)} ${unread?.path}`;
    if (result.findings.length === 0 && unread === null) return result;
    if (!before.has(found) && before.size < READINGS_MAX - 1) before.add(found);
    else if (unread === null || result.findings.length > 0) return result;
    else throw unreadable(unread.path, unread.cause);
  }
}

/** @returns `unread`: the log could not be read to its end, though not because of its content */
async function scrubOnce(options: ScrubOptions) {
  const { folder } = options;
  const findings = scrubFindings();
  using held = new DisposableStack();
  const db = options.db ?? open(folder, findings);
  // As the last one, it would copy what an appliance has written meanwhile into the file, without a marker.
  if (db !== options.db && db !== null) held.defer(() => (walBytes(db) > 0 ? abandon(db) : void db.close()));
  let entry: number | null = null;
  let not_compared = db === null ? 'detections.db cannot be opened' : null;
  let unread: LogFailure | null = null;
  try {
    const mark = db === null ? null : readLogMark(db);
    const hasRoom = freeBytes(folder.root) > ROOM_LEFT_BYTES + SCRATCH_SHARE * sizeOf(folder.detections);
    if (!hasRoom) not_compared ??= NO_ROOM;
    const made = not_compared === null ? held.use(openScratch(folder.root, DETECTIONS_SCHEMA)) : null;
    await readLog(options, db === null ? undefined : mark, made);
    entry = mark?.entry ?? null;
    if (db !== null && made !== null) await compare(options, db, made, findings);
  } catch (error) {
    if (error instanceof LogFailure && !error.isOfContent) unread = error;
    else if (error instanceof LogDamage || error instanceof LogFailure) {
      findings.add('log damaged', error.message);
      not_compared ??= 'the log is damaged';
    } else if (isDamage(error)) findings.add('database malformed', reasonOf(error));
    else if (isDiskFull(error)) not_compared = NO_ROOM;
    else throw error;
  }
  return { result: { entry, findings: findings.list(), not_compared }, unread };
}

/** One state of the database. @throws Refused `failed` if it cannot be opened, though it is not damaged */
function open({ detections }: ScrubOptions['folder'], findings: ScrubFindings): Database | null {
  if (!existsSync(detections)) {
    findings.add('database malformed', `${detections} is missing`);
    return null;
  }
  let db: Database | null = null;
  try {
    db = openDatabase(detections, 'inspect');
    requireSchema(db, detections, DETECTIONS_SCHEMA);
    db.exec('BEGIN');
    readLogMark(db);
    return db;
  } catch (error) {
    db?.close();
    if (isDiskFull(error)) throw error;
    // For lack of file descriptors, or because a disk fails once, rebuilding it would not help.
    if (!isDamage(error) && !(error instanceof Refused)) throw unreadable(detections, error);
    findings.add('database malformed', reasonOf(error));
    return null;
  }
}

function unreadable(path: string, error: unknown): Refused {
  return failed(
    `cannot read ${path}: ${reasonOf(error)}. Nothing was found to be damaged. Check the disk and the permissions, and try again.`,
    { cause: error },
  );
}

/**
 * Reads the log up to a mark of the database, and no further: later entries may still be being written.
 * @param mark null: the database has applied no entry; undefined: the log is read to its end
 * @param made where its entries are applied
 * @throws LogDamage if the log is damaged before the mark, or ends before it; DatabaseDamage if it has another entry there
 */
async function readLog(options: ScrubOptions, mark: LogMark | null | undefined, made: Database | null) {
  const { folder, onProgress, between } = options;
  const { log } = folder;
  const applier = made === null ? null : logApplier(made, false);
  const total = bytesOf(listSegments(log));
  const end = mark === undefined ? Number.POSITIVE_INFINITY : (mark?.entry ?? 0);
  let last: Commit | null = null;
  for (const { part, bytes } of end > 0 ? entriesAfter(log, null) : []) {
    applier?.apply(part);
    await between();
    if (part.commit === null) continue;
    onProgress('the log', bytes, total);
    last = part.commit;
    if (last.entry >= end) break;
  }
  if ((last?.entry ?? 0) < end) {
    // Names the place, if complete entries follow it in the newest segment.
    findTail(log);
    if (mark !== undefined)
      throw new LogDamage(
        `${log} ends with entry ${grouped(last?.entry ?? 0)}, but detections.db has applied entry ${grouped(end)}`,
      );
  } else if (last?.id !== mark?.id)
    throw new DatabaseDamage(`log_mark names entry ${grouped(end)} with an id that the log does not contain`);
  applier?.commit();
}

/** @param db in a transaction; @param made from the log */
async function compare(options: ScrubOptions, db: Database, made: Database, findings: ScrubFindings) {
  const { between, onProgress } = options;
  const removed = new Set(endedStreams(made));
  const onBadText = (where: string) => findings.add('database differs', where);
  for (const [done, table] of HASHED_TABLES.entries()) {
    onProgress(table, done, HASHED_TABLES.length);
    await guard(findings, table, async () => {
      const expected = await rowHashes(made, table, removed, between, null);
      const found = await rowHashes(db, table, removed, between, onBadText);
      for (const name of new Set([...expected.keys(), ...found.keys()])) {
        const [a, b] = [found.get(name), expected.get(name)];
        if (a?.hash === b?.hash && a?.rows === b?.rows) continue;
        const rows = `${grouped(a?.rows ?? 0)} rows, ${grouped(b?.rows ?? 0)} in the log`;
        findings.add('database differs', `${name} differs from the log (${rows})`);
      }
    });
  }
  onProgress('the structure', HASHED_TABLES.length, HASHED_TABLES.length);
  await guard(findings, 'detections.db', async () => {
    const lines = db.prepare<[], string>('PRAGMA integrity_check(100)').pluck().all();
    for (const line of lines) if (line !== 'ok') findings.add('database malformed', line);
  });
}

/** The statements are correct, so if one cannot run, what it reads is damaged. */
async function guard(findings: ScrubFindings, what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const isOfFile = isDamage(error) || /^SQLITE_(IOERR|ERROR)/.test(errorCode(error));
    if (!isOfFile || isDiskFull(error)) throw error;
    findings.add('database malformed', `${what}: ${reasonOf(error)}`);
  }
}

/**
 * @param removed ordinals of removed streams, whose rows may still be there
 * @param onBadText called for each text that does not match its checksum; null: texts are not read
 * @returns for each stream that has rows in the table, by `TABLE of stream ORDINAL`, or for the table, by its name: how many
 *   rows, and the CRC-32 of them as JSON, in the order of their key, without texts: those have checksums
 */
async function rowHashes(
  db: Database,
  table: string,
  removed: ReadonlySet<number>,
  between: () => Promise<void>,
  onBadText: ((where: string) => void) | null,
) {
  const { columns, keys } = tableOf(db, table);
  const isOfStreams = TABLES_OF_STREAMS.includes(table);
  const place = columns.indexOf('place');
  const checksum = columns.indexOf('checksum');
  const hasTexts = onBadText !== null && checksum !== -1;
  const sql = `SELECT ${columns.join()}${hasTexts ? `, CAST(${TEXT} AS BLOB)` : ''} FROM ${table} ORDER BY ${keys.join()}`;
  const hashes = new Map<string, { readonly rows: number; readonly hash: number }>();
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
  const { columns, keys } = columnsOf(db, table);
  return { columns: columns.filter((name) => name !== TEXT), keys };
}
