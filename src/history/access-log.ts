/**
 * The log of `access.db`: every transaction that changes its logged tables is an entry that names the actor and the
 * command. Whichever process changes the database writes the entry, under SQLite's write lock.
 *
 * | a crash after | leaves | the next process with the lock |
 * |---|---|---|
 * | a part of the entry was written | a torn end | cuts it |
 * | the entry was written | an entry that the database lacks | makes it durable, and applies it |
 * | the database's commit | nothing to do | |
 */
import { rmSync, statSync, truncateSync } from 'node:fs';
import { now } from '../clock.ts';
import { grouped } from '../counted.ts';
import { Refused } from '../refused.ts';
import { ACCESS_SCHEMA, ACCESS_TABLES } from '../store/access-schema.ts';
import { type Database, openCopyInMemory, openDatabase, writeThrough } from '../store/database.ts';
import { isBusy, isWriteLost } from '../store/database-errors.ts';
import type { DataFolder } from '../store/folder.ts';
import { readLogMark, setLogMark } from '../store/log-mark.ts';
import { VERSION } from '../version.ts';
import { EffectApplier, type Effects, noteEffects, rowsAsEffects } from './effects.ts';
import { type Commit, isObject, type Mark, type Operation, parse, SNAPSHOT } from './format.ts';
import { LogDamage } from './log-error.ts';
import { entriesAfter, findTail, placeOf, type Tail, trustTail } from './log-reader.ts';
import { LogWriter } from './log-writer.ts';
import { acceptDraft, emptyDraft, swapInNewLog } from './replace-log.ts';

/** A database compared with its log. */
export type LogState =
  /** It has applied the last entry. */
  | 'current'
  | 'behind'
  /** It belongs to another log, or is older than the log's first entry. */
  | 'foreign';

interface Logged {
  readonly db: Database;
  readonly folder: DataFolder;
  readonly operation: Operation;
  readonly effects: Effects;
  /** Of the file that was opened. */
  readonly inode: number;
}

/**
 * Logs every transaction of a connection to `access.db`.
 *
 * @param operation the actor and command that its entries name
 */
export function logTransactions(db: Database, folder: DataFolder, operation: Operation): void {
  const logged = { db, folder, operation, effects: noteEffects(db, ACCESS_TABLES), inode: inodeOf(db.name) };
  writeThrough(db, (work) => orRefused(folder, () => transact(logged, work)));
}

/** @throws Refused `configuration` in place of LogDamage, `failed` if another process keeps access.db busy */
export function orRefused<Result>({ root, access, accessLog }: DataFolder, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (isBusy(error))
      throw new Refused('failed', `${access} is in use by another process. Try again in a moment.`, {
        cause: error,
      });
    if (!(error instanceof LogDamage)) throw error;
    throw new Refused(
      'configuration',
      `the log in ${accessLog} is damaged: ${error.message}. Nothing was changed. If access.db is sound, start a new log from it: wirewatch rebuild --log --data ${root} checks it first, and loses nothing that it has. Otherwise restore a backup (wirewatch restore BACKUP --replace --data ${root}); changes after the damage are lost, and keys that they revoked work again.`,
      { cause: error },
    );
  }
}

function transact<Result>(logged: Logged, work: () => Result): Result {
  const { db, folder, effects, operation } = logged;
  if (effects.take() !== '')
    throw new Error('access.db was changed outside writing(): the change was not logged');
  db.exec('BEGIN IMMEDIATE');
  let log: LogWriter | null = null;
  try {
    if (inodeOf(db.name) !== logged.inode)
      throw new Refused('failed', `${db.name} was replaced by another file. Try again.`);
    const { tail } = catchUp(db, folder.accessLog);
    // These changes are in the log already.
    effects.take();
    const result = work();
    const lines = effects.take();
    if (lines !== '') {
      cutTorn(tail);
      log = new LogWriter({ folder: folder.accessLog, kind: 'access', program: VERSION }, tail);
      setLogMark(db, log.commit(lines, operation, now()));
    }
    try {
      db.exec('COMMIT');
    } catch (error) {
      if (log === null || !isApplied(logged, log, error)) throw error;
    }
    return result;
  } catch (error) {
    // If the write may be lost, it may also be on the disk: the entry stays, and the next to open applies it.
    if (log !== null && db.inTransaction && !isWriteLost(error)) log.undo();
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  } finally {
    log?.close();
  }
}

/**
 * After SQLite refused a commit, and if it rolled back by itself: takes the lock again, so that the entry can be undone.
 *
 * @returns whether another process, which had the lock in between, has applied the entry
 */
function isApplied({ db, folder }: Logged, log: LogWriter, error: unknown): boolean {
  const own = log.last;
  if (own === null || db.inTransaction || isWriteLost(error)) return false;
  db.exec('BEGIN IMMEDIATE');
  const mark = readLogMark(db);
  if (findTail(folder.accessLog, 'access').last?.id === own.id && (mark?.entry ?? 0) < own.entry)
    return false;
  db.exec('ROLLBACK');
  return true;
}

/**
 * Applies the entries that the database lacks; the caller holds its write lock.
 *
 * @throws LogDamage if the log is not the database's
 */
export function catchUp(db: Database, accessLog: string): { readonly tail: Tail; readonly applied: number } {
  const tail = findTail(accessLog, 'access');
  const mark = readLogMark(db);
  const state = logStateOf(accessLog, tail, mark);
  if (state === 'foreign') throw new LogDamage('access.db belongs to another log');
  if (state === 'current') return { tail, applied: 0 };
  // Only what is on the disk may be applied.
  trustTail(accessLog, tail);
  return { tail: { ...tail, isTorn: false }, applied: applyEntries(db, accessLog, mark) };
}

/** @throws LogDamage if the log ends before the database */
export function logStateOf(accessLog: string, tail: Tail, mark: Mark | null): LogState {
  if (mark?.id === tail.last?.id) return 'current';
  if (mark === null) return 'behind';
  if (tail.last === null)
    throw new LogDamage(
      `the log is missing, but access.db has applied its entries up to ${grouped(mark.entry)}`,
    );
  if (mark.entry > tail.last.entry)
    throw new LogDamage(
      `the log ends with entry ${grouped(tail.last.entry)}, but access.db has applied entry ${grouped(mark.entry)}`,
    );
  return placeOf(accessLog, 'access', mark) === 'known' ? 'behind' : 'foreign';
}

/**
 * Applies entries of the log, within the caller's transaction.
 *
 * @param after null: from the first entry on, to an empty database
 * @param through the last entry to apply; null: all
 * @returns how many were applied
 * @throws LogDamage
 */
export function applyEntries(
  db: Database,
  accessLog: string,
  after: Mark | null,
  through: Mark | null = null,
): number {
  const applier = new EffectApplier(db, ACCESS_TABLES);
  let applied = 0;
  for (const { part } of entriesAfter(accessLog, 'access', after)) {
    for (const line of part.lines) {
      const effect = parse(line);
      if (!isObject(effect) || !applier.apply(effect))
        throw new LogDamage('a line of the log has unknown content');
    }
    if (part.kind !== 'commit') continue;
    setLogMark(db, part.commit);
    applied += 1;
    if (part.commit.id === through?.id) return applied;
  }
  if (through !== null)
    throw new LogDamage(
      `the log does not contain entry ${grouped(through.entry)}, which access.db has applied`,
    );
  return applied;
}

/**
 * The tables whose rows differ from the log, up to the entry that the database has applied.
 *
 * @param db locked, or read in one snapshot
 * @throws LogDamage
 */
export function differingTables(db: Database, accessLog: string): string[] {
  using copy = openCopyInMemory(null, ACCESS_SCHEMA);
  const mark = readLogMark(db);
  if (mark !== null) copy.transaction(() => applyEntries(copy, accessLog, null, mark))();
  return ACCESS_TABLES.filter((table) => rowsOf(db, table) !== rowsOf(copy, table));
}

function rowsOf(db: Database, table: string): string {
  const rows = db.prepare<unknown[], object>(`SELECT * FROM ${table}`).all();
  return rows
    .map((row) => JSON.stringify(row))
    .sort()
    .join('\n');
}

/**
 * Starts a new log from a database that is not damaged: its first entry has all rows. The old log is kept beside it.
 *
 * @param operation of the command that asked for it
 * @returns the entry, and the folder with the old log; null if there was none
 */
export function startNewAccessLog(
  folder: DataFolder,
  operation: Operation,
  nowMs: number,
): { readonly commit: Commit; readonly aside: string | null } {
  const { access, accessLog } = folder;
  using db = openDatabase(access, 'write', ACCESS_SCHEMA);
  const draft = emptyDraft(accessLog);
  db.exec('BEGIN IMMEDIATE');
  const log = new LogWriter(
    { folder: draft, kind: 'access', program: VERSION },
    { last: readLogMark(db), segment: null },
  );
  const lines = rowsAsEffects(db, ACCESS_TABLES);
  const commit = log.commit(lines, { ...operation, kind: SNAPSHOT }, nowMs);
  log.close();
  acceptDraft(accessLog);
  const aside = swapInNewLog(accessLog, nowMs);
  // After a crash before this, the database is older than the log's first entry, and is rebuilt from it.
  setLogMark(db, commit);
  db.exec('COMMIT');
  return { commit, aside };
}

/**
 * Otherwise the rest of a torn entry would follow a shorter one that is written over it, and a segment without a header
 * would lie between others: it keeps its name if the entry goes to the segment before it.
 */
function cutTorn({ segment, stumps, isTorn }: Tail): void {
  for (const { path } of stumps) rmSync(path, { force: true });
  if (isTorn && segment !== null) truncateSync(segment.path, segment.bytes);
}

function inodeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? 0;
}
