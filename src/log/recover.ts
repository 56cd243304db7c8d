/**
 * Recovers `detections.db` before anything else uses it. The database is a projection of the log: it is brought to the
 * log's end, or rebuilt if it cannot be used. In this order:
 *
 * | database | log | action |
 * |---|---|---|
 * | any | ends before the database, as its `-wal` may show | refused |
 * | any | a part that is needed is damaged | refused |
 * | none, also where a note calls it damaged | none | created |
 * | unusable, though SQLite finds no damage, and nothing was ever applied | none | rebuilt, without entries |
 * | unusable otherwise | none | refused |
 * | unusable | behind its end, an entry is damaged whose own end is intact | refused: it may be decided |
 * | unusable | whole, or its end is torn | what is torn is cut off; rebuilt |
 * | usable | has its last entry; the end may be torn | what is torn is cut off; later entries are applied |
 *
 * Refused means that nothing is changed.
 *
 * | unusable is a database that | found by |
 * |---|---|
 * | is not there, though the log is | its name |
 * | was found damaged before, or contradicts its mark | the note of damage |
 * | has a rollback journal, which Wirewatch never leaves | its name |
 * | has pages of two states, without the `-wal` that it needs | its marker (store/checkpoint.ts) |
 * | is damaged, of another schema, of another log, older than the log | opening it |
 *
 * Any other `-wal` is dropped, unless this process wrote it: the log has what it had. A rebuild that was interrupted begins again.
 */
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { errorCode, misconfigured, type Refused, reasonOf } from '../refused.ts';
import { abandon, markWithoutWal, openDetections, settleWal } from '../store/checkpoint.ts';
import {
  type Database,
  inspected,
  isEmpty,
  openDatabase,
  removeBeside,
  removeDatabase,
  removeWal,
  UnknownSchema,
} from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { type DataFolder, isThere, syncFile, syncFolder, writeWhole } from '../store/folder.ts';
import { LogDamage } from '../store/log-errors.ts';
import { readLogMark, readLogMarkOf } from '../store/log-mark.ts';
import { type ApplyOptions, applyAfter, bytesAfter } from './apply-log.ts';
import type { Commit, Mark } from './format.ts';
import { entriesAfter, type Place, placeOf } from './log-reader.ts';
import { logWriter } from './log-writer.ts';
import { tidyLog } from './segment.ts';
import { findTail, type Tail, trustTail } from './torn-end.ts';

/** How a log is read in which an entry counts once the copy has it. */
export interface Decisions {
  /** Whether the last entry may be undecided. @throws Refused `configuration` where the copy for which it waits is not set */
  areAwaited(db: Database): boolean;
  /** Returns once an entry is decided, at once where none is awaited. @throws when it will not be known soon */
  decide(entry: Mark, db: Database): void;
}

export interface RecoverOptions extends ApplyOptions {
  readonly folder: DataFolder;
  /** Whether this process had the database open: the `-wal` is its own, and SQLite would join a new one to open connections. */
  readonly isAgain?: boolean;
  /** Called when the database can be read, if nothing has to be done first. */
  readonly onReadable?: () => void;
  /** Called before work that may take long, with the reason. */
  readonly onBegin?: (reason: string) => void;
  /** Left out: each entry of the log is decided. */
  readonly decisions?: Decisions;
}

export type Recovered = Awaited<ReturnType<typeof recoverDetections>>;

/** Applying less of the log is fast enough to need no message. */
const LONG_BYTES = 256 * 1024;
const journalOf = (path: string) => `${path}-journal`;

/**
 * @returns also how many entries were applied, and `madeAnew`: why the database was rebuilt; null: it was not
 * @throws Refused `configuration` if the log is damaged; LogFailure; SQLite's errors
 */
export async function recoverDetections(options: RecoverOptions) {
  const { folder } = options;
  let db: Database | null = null;
  try {
    tidyLog(folder.log);
    const tail = findTail(folder.log, true);
    requireReach(folder, tail);
    const found = open(options, tail);
    let madeAnew = typeof found === 'string' ? found : null;
    if (typeof found === 'string') refuseHopeless(folder, tail, found);
    else db = found;
    // Refused before anything is shown.
    if (db !== null) options.decisions?.areAwaited(db);
    if (db !== null && readLogMark(db)?.entry === tail.last?.entry) options.onReadable?.();
    trustTail(folder.log, tail);
    let applied = 0;
    if (db !== null) {
      try {
        applied = await applyRest(db, tail, options);
      } catch (error) {
        if (!isContradiction(error)) throw error;
        // Where the log is damaged, the database is only older, and may be all that there is.
        await requireWhole(tail, options);
        madeAnew = `its contents contradict its log mark: ${error.message}`;
        // A crash before it is rebuilt may leave it without the entry that shows this.
        writeWhole(folder.damage, `${madeAnew}\n`);
        db.close();
        db = null;
      }
    }
    if (db === null) {
      options.onBegin?.(madeAnew ?? '');
      applied = await rebuild(tail, options);
      db = openDetections(folder.detections);
      applied += await applyRest(db, tail, options);
    }
    // A note that was made since the database can be read is for the next start.
    if (madeAnew !== null)
      // What was found in the old one is said of it alone. The note goes last: it alone makes a start begin again.
      for (const path of [folder.verified, folder.damage]) rmSync(path, { force: true });
    const log = logWriter({ folder: folder.log }, tail);
    return { db, log, applied, madeAnew };
  } catch (error) {
    if (db !== null) abandon(db);
    if (error instanceof LogDamage) throw damaged(folder, error);
    throw error;
  }
}

/** Opens the database if it is reliable; otherwise it is left as it is. @returns it, or why it cannot be used */
function open({ folder, isAgain = false }: RecoverOptions, tail: Tail): Database | string {
  const path = folder.detections;
  if (existsSync(folder.damage))
    return `it was marked as damaged: ${readFileSync(folder.damage, 'utf8').trim()}`;
  if (!isThere(path) || isEmpty(path)) {
    removeDatabase(path);
    return tail.last !== null || tail.isDoubtful ? 'it does not exist' : openDetections(path);
  }
  if (existsSync(journalOf(path)))
    return 'a rollback journal lies beside it, which Wirewatch never leaves there';
  if (!isAgain) requireRest(folder);
  if (!isAgain && !settleWal(path))
    return 'the file was replaced, or lost its write-ahead log, when a checkpoint was not complete';
  let db: Database | null = null;
  try {
    db = openDetections(path);
    const mark = readLogMark(db);
    const place = mark === null ? 'known' : placeBefore(tail, folder.log, mark);
    if (place === 'known' || place === 'beyond') return db;
    db.close();
    return place === 'foreign' ? 'it belongs to another log' : 'it is older than the first entry of the log';
  } catch (error) {
    if (db !== null) abandon(db);
    if (error instanceof UnknownSchema) return 'it was created by another version of Wirewatch';
    if (isDamage(error)) return `it is damaged: ${reasonOf(error)}`;
    throw error;
  }
}

/** Most databases have applied the last entry: then the log need not be read again. */
const placeBefore = ({ last }: Tail, log: string, mark: Mark): Place =>
  last?.entry === mark.entry && last.id === mark.id ? 'known' : placeOf(log, mark);

/**
 * Refuses a log that ends before the database: what follows would discard the only copy of the last entries. Only the
 * `-wal` may show it, so it is read before that is dropped.
 */
function requireReach({ log, detections }: DataFolder, tail: Tail): void {
  if (existsSync(journalOf(detections))) return;
  const mark = readLogMarkOf(detections);
  if (mark === null || placeBefore(tail, log, mark) !== 'beyond') return;
  throw new LogDamage(
    tail.last === null
      ? `the log is missing, but the database has applied its entries up to ${grouped(mark.entry)}`
      : `the log ends with entry ${grouped(tail.last.entry)}, but the database has applied entry ${grouped(mark.entry)}`,
  );
}

/** Refuses a log that is damaged where it must give what is lost with the `-wal`: until then, that may have it alone. */
function requireRest({ log, detections }: DataFolder): void {
  const mark = markWithoutWal(detections);
  if (mark !== undefined) for (const _ of entriesAfter(log, mark)); // Each checksum is verified.
}

/** Refuses to rebuild from no log, or from one whose end may be damaged: only a database can show that it was never decided. */
function refuseHopeless({ log, detections }: DataFolder, { last, isDoubtful }: Tail, reason: string): void {
  if (isDoubtful)
    throw new LogDamage(`the entry after entry ${grouped(last?.entry ?? 0)} in ${log} is damaged`);
  if (last === null && !isUnused(detections))
    throw new LogDamage(`the log is missing, and the database cannot be used: ${reason}`);
}

/** Whether a database is sound and never had an entry, or was never completed: a failed read may have marked it as damaged. */
function isUnused(path: string): boolean {
  if (!existsSync(path)) return true;
  return inspected(path, false, (db) => {
    const isWritten = db.prepare('SELECT 1 FROM log_mark UNION ALL SELECT 1 FROM stream_row LIMIT 1').get();
    return isWritten === undefined && db.pragma('integrity_check', { simple: true }) === 'ok';
  });
}

async function applyRest(db: Database, { last }: Tail, options: RecoverOptions): Promise<number> {
  const { folder, decisions, onBegin, onReadable } = options;
  const mark = readLogMark(db);
  if (last === null || last.entry === mark?.entry) return 0;
  if (bytesAfter(folder.log, mark) > LONG_BYTES)
    onBegin?.(`it lacks entries ${grouped((mark?.entry ?? 0) + 1)} to ${grouped(last.entry)} of the log`);
  const applied = await applyAfter(db, options, decidedEnd(options, last));
  if (decisions?.areAwaited(db) === true) onReadable?.();
  decisions?.decide(last, db);
  return applied + (await applyAfter(db, options));
}

/** The last entry may be undecided. */
const decidedEnd = ({ decisions }: RecoverOptions, last: Mark | null): number =>
  decisions === undefined ? Number.POSITIVE_INFINITY : (last?.entry ?? 0) - 1;

/** Builds the database beside its place, and puts it there when it is complete. */
async function rebuild(tail: Tail, options: RecoverOptions): Promise<number> {
  const { folder } = options;
  const path = folder.detections;
  const draft = `${path}-draft`;
  removeDatabase(draft);
  const db = openDatabase(draft, 'write', DETECTIONS_SCHEMA);
  let applied: number;
  try {
    // A rollback journal needs less room than a write-ahead log; keeping its file from one entry to the next saves a fifth
    // of the time for small entries.
    db.pragma('journal_mode = PERSIST');
    db.pragma('synchronous = OFF');
    applied = await applyAfter(db, options, decidedEnd(options, tail.last)).catch(async (error) => {
      if (!isDiskFull(error) || !existsSync(path)) throw error;
      await requireWhole(tail, options);
      // No room for both files: the log is complete, so the old one is not needed.
      removeReplaced(folder, () => rmSync(path));
      return applyAfter(db, options, decidedEnd(options, tail.last));
    });
    // Before the rename: the change goes through a rollback journal. If a kill left that beside the final database, nobody
    // without write permission could open it.
    db.pragma('journal_mode = WAL');
  } catch (error) {
    db.close();
    // The log needs the room more than a draft does.
    removeDatabase(draft);
    throw error;
  }
  db.close();
  rmSync(journalOf(draft), { force: true });
  syncFile(draft);
  removeReplaced(folder, () => renameSync(draft, path));
  return applied;
}

function removeReplaced({ root, detections }: DataFolder, remove: () => void): void {
  // Never joined to the new file, also by a second attempt of the same process.
  removeWal(detections);
  // Its marker goes last: nothing else says that the old file has pages of two states.
  remove();
  syncFolder(root);
  removeBeside(detections);
}

/** Whether an entry cannot be applied: the log is damaged, or the database differs from its mark. */
const isContradiction = (error: unknown): error is Error =>
  error instanceof LogDamage || errorCode(error).startsWith('SQLITE_CONSTRAINT') || isDamage(error);

/** Reads the log to its end. @throws LogDamage */
async function requireWhole(tail: Tail, { folder, between }: RecoverOptions): Promise<void> {
  let last: Commit | null = null;
  for (const { part } of entriesAfter(folder.log, null)) {
    if (part.commit !== null) last = part.commit;
    await between();
  }
  if (last?.id !== tail.last?.id) throw new LogDamage('the log ends before its last entry');
}

function damaged({ root, log, detections }: DataFolder, error: LogDamage): Refused {
  const advice = existsSync(detections)
    ? `If detections.db is sound, write the log anew from it: wirewatch compact --data ${root} checks it first, and loses nothing that it has. Otherwise restore`
    : 'Restore';
  return misconfigured(
    `the log in ${log} is damaged: ${error.message}. Nothing was changed. ${advice} a backup (wirewatch restore BACKUP --replace --data ${root}): what came after it is lost, and archived files are read again.`,
    { cause: error },
  );
}
