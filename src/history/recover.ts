/**
 * Brings `detections.db` to where its log ends, before anything else is done with it: it is a projection of the log, and
 * is made anew wherever it cannot be relied on.
 *
 * | what is found | what is done |
 * |---|---|
 * | the database has applied an entry that the log has | the entries behind it are applied |
 * | the log was begun anew (`rebuild --log`) from this very database | nothing |
 * | no database, another schema, another history, one of before the log's beginning, a file that was replaced and is not sound, a note of damage | it is made anew, beside the one that is there where there is room |
 * | the log ends before the database, or is damaged where it is needed | refused; nothing is changed |
 */

import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { now } from '../clock.ts';
import { grouped } from '../counted.ts';
import { errorCode, Refused } from '../refused.ts';
import {
  type Database,
  isEmpty,
  openDatabase,
  removeBeside,
  removeDatabase,
  sizeOf,
} from '../store/database.ts';
import { DatabaseDamage, isDamage, isDiskFull } from '../store/database-errors.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { isNotedFile, noteIdentity } from '../store/file-identity.ts';
import { type DataFolder, syncFile, syncFolder } from '../store/folder.ts';
import { readLogMark, setLogMark } from '../store/log-mark.ts';
import { UnknownSchema } from '../store/schema.ts';
import type { Commit, Mark } from './format.ts';
import { LogDamage } from './log-error.ts';
import {
  entriesAfter,
  findTail,
  type Place,
  placeOf,
  snapshotAfter,
  type Tail,
  trustTail,
} from './log-reader.ts';
import { LogWriter } from './log-writer.ts';
import { swapInNewLog } from './new-log.ts';
import { Projection } from './projection.ts';
import { bytesOf, listSegments } from './segment.ts';

export interface RecoverOptions {
  readonly folder: DataFolder;
  /** The version of this program. */
  readonly program: string;
  /** Told once the database can be read, where nothing has to be done to it first. */
  readonly onReadable: () => void;
  /** Told before work that may take long, with the reason for it. */
  readonly onBegin: (reason: string) => void;
  /** Bytes of the log that were read, of all that have to be. */
  readonly onProgress: (done: number, total: number) => void;
  /** Called between entries: throws to leave the work, which the next start goes on with. */
  readonly between: () => Promise<void>;
}

export interface Recovered {
  readonly db: Database;
  readonly log: LogWriter;
  /** Entries that were applied. */
  readonly applied: number;
  /** Why the database was made anew; null where it was not. */
  readonly madeAnew: string | null;
}

/** Applying fewer bytes of the log than this is not worth a word. */
const LONG_BYTES = 256 * 1024;
/** Checking a smaller database is not worth a word. */
const LONG_CHECK_BYTES = 16 * 1024 * 1024;
const WAL_ASIDE = '-wal-aside';
const journalOf = (path: string) => `${path}-journal`;
/** Frames between two turns of the event loop. */
const FRAMES_A_TURN = 16;

/** @throws Refused `configuration` when the log cannot be relied on; LogFailure; SQLite's errors */
export async function recoverDetections(options: RecoverOptions): Promise<Recovered> {
  const { folder, program } = options;
  let db: Database | null = null;
  try {
    swapInNewLog(folder.log, now());
    const tail = findTail(folder.log, 'detections', true);
    const isOurs = isNotedFile(folder.detections) && !existsSync(journalOf(folder.detections));
    const found = open(options, tail, isOurs);
    db = found.kind === 'usable' ? found.db : null;
    requireReach(folder, tail, found);
    if (tail.isDoubtful) requireTorn(folder, tail, isOurs ? db : null);
    if (db !== null && readLogMark(db)?.entry === tail.last?.entry) options.onReadable();
    if (tail.isTorn || tail.segment !== null) trustTail(folder.log, tail);
    let applied = 0;
    let madeAnew = found.kind === 'unusable' ? found.reason : null;
    if (db !== null) {
      try {
        applied = await applyRest(db, tail, options);
      } catch (error) {
        if (!isContradiction(error)) throw error;
        db.close();
        db = null;
        madeAnew = `its contents contradict its log mark: ${error.message}`;
      }
    }
    if (db === null) {
      options.onBegin(madeAnew ?? '');
      applied = await makeAnew(tail, options);
      db = openDatabase(folder.detections, 'write', DETECTIONS_SCHEMA);
    }
    noteIdentity(folder.detections, false, entryInFile(db));
    // One that was noted since the database could be read is for the next start.
    if (madeAnew !== null) rmSync(folder.damage, { force: true });
    rmSync(`${folder.detections}${WAL_ASIDE}`, { force: true });
    const log = new LogWriter({ folder: folder.log, kind: 'detections', program }, tail);
    return { db, log, applied, madeAnew };
  } catch (error) {
    db?.close();
    if (error instanceof LogDamage) throw damaged(folder, error);
    throw error;
  }
}

/** Applies what the log has and the database lacks: where a commit was refused after its entry was decided. */
export function applyPending(db: Database, folder: string): number {
  const projection = new Projection(db);
  let applied = 0;
  try {
    for (const { part } of entriesAfter(folder, 'detections', readLogMark(db))) {
      projection.apply(part);
      if (part.kind === 'commit') applied += 1;
    }
    return applied;
  } finally {
    projection.rollback();
  }
}

type Found =
  | { readonly kind: 'usable'; readonly db: Database }
  | { readonly kind: 'unusable'; readonly reason: string };

/** Opens the database where it can be relied on; what cannot is left as it is. @param isOurs whether it is the file that was noted */
function open({ folder, onBegin }: RecoverOptions, tail: Tail, isOurs: boolean): Found {
  const path = folder.detections;
  const unusable = (reason: string): Found => ({ kind: 'unusable', reason });
  if (existsSync(folder.damage))
    return unusable(`it was marked as damaged: ${readFileSync(folder.damage, 'utf8').trim()}`);
  if (!existsSync(path) || isEmpty(path)) {
    removeDatabase(path);
    if (tail.last !== null) return unusable('it does not exist');
    return { kind: 'usable', db: openDatabase(path, 'write', DETECTIONS_SCHEMA) };
  }
  if (!isOurs) setWalAside(path);
  let db: Database | null = null;
  try {
    rollBackJournal(path);
    db = openDatabase(path, 'write', DETECTIONS_SCHEMA);
    if (!isOurs && sizeOf(path) > LONG_CHECK_BYTES)
      onBegin('the file was replaced since the last stop and is being checked');
    const reason = isOurs ? null : whyUnsound(db);
    const other = reason ?? whyOfOtherLog(db, folder.log, tail);
    if (other === null) return { kind: 'usable', db };
    db.close();
    return unusable(other);
  } catch (error) {
    db?.close();
    if (error instanceof UnknownSchema) return unusable('it was created by another version of Wirewatch');
    if (isDamage(error)) return unusable(`it is damaged: ${error instanceof Error ? error.message : ''}`);
    throw error;
  }
}

/** What SQLite finds wrong with a file that is not the one that was closed last; null: nothing. */
function whyUnsound(db: Database): string | null {
  const found = String(db.pragma('integrity_check(1)', { simple: true }));
  return found === 'ok' ? null : `the file is damaged: ${found}`;
}

/** Why a database cannot be brought to the end of this log; null: it can, or the log does not reach it. */
function whyOfOtherLog(db: Database, log: string, tail: Tail): string | null {
  const mark = readLogMark(db);
  const place = mark === null ? 'known' : placeBefore(tail, log, mark);
  if (mark === null || place === 'known' || place === 'beyond') return null;
  if (place === 'foreign') return 'it belongs to another log';
  const snapshot = snapshotAfter(log, 'detections', mark);
  if (snapshot === null) return 'it is older than the first entry of the log';
  setLogMark(db, snapshot);
  return null;
}

/** Mostly a database has applied the last entry: then the log need not be read for it a second time. */
function placeBefore({ last }: Tail, log: string, mark: Mark): Place {
  return last?.entry === mark.entry && last.id === mark.id ? 'known' : placeOf(log, 'detections', mark);
}

/**
 * What is not whole may be cut only where the entry was never decided: then the database that was in use to the last has
 * come as far as the entry before.
 */
function requireTorn({ log }: DataFolder, { last }: Tail, db: Database | null): void {
  if (db !== null && readLogMark(db)?.id === last?.id) return;
  throw new LogDamage(`the entry after entry ${grouped(last?.entry ?? 0)} in ${log} is damaged`);
}

/** Only what the log has can be taken for true: what it lacks, a database that is given up may have been the last to have. */
function requireReach({ log, detections }: DataFolder, tail: Tail, found: Found): void {
  const mark = found.kind === 'usable' ? readLogMark(found.db) : markOf(detections);
  if (mark !== null && placeBefore(tail, log, mark) === 'beyond')
    throw new LogDamage(
      tail.last === null
        ? `the log is missing, but the database has applied its entries up to ${grouped(mark.entry)}`
        : `the log ends with entry ${grouped(tail.last.entry)}, but the database has applied entry ${grouped(mark.entry)}`,
    );
  if (found.kind === 'unusable' && tail.last === null)
    throw new LogDamage(`the log is missing, and the database cannot be used: ${found.reason}`);
}

/** The mark of a database that cannot be relied on; null where it cannot even be read. */
function markOf(path: string): Mark | null {
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'inspect');
    return readLogMark(db);
  } catch {
    return null;
  } finally {
    db?.close();
  }
}

async function applyRest(db: Database, tail: Tail, options: RecoverOptions): Promise<number> {
  const mark = readLogMark(db);
  if ((tail.last?.entry ?? 0) === (mark?.entry ?? 0)) return 0;
  if (bytesFrom(options.folder.log, mark) > LONG_BYTES)
    options.onBegin(
      `it lacks entries ${grouped((mark?.entry ?? 0) + 1)} to ${grouped(tail.last?.entry ?? 0)} of the log`,
    );
  // SQLite checkpoints on the way, and where it is cut short as it is closed.
  noteIdentity(options.folder.detections, true);
  return apply(db, options);
}

/** Makes the database beside its place, and puts it there when it is whole; a crash leaves a draft that is gone on with. */
async function makeAnew(tail: Tail, options: RecoverOptions): Promise<number> {
  const { folder } = options;
  const path = folder.detections;
  const draft = `${path}-draft`;
  const { db, isResumed } = openDraft(folder, draft);
  let applied: number;
  try {
    // What a power cut takes of a draft is made again; and a rollback journal needs less room than a write-ahead log. It
    // is kept from one entry to the next: to cut it each time is a fifth of what small entries cost.
    db.pragma('journal_mode = PERSIST');
    db.pragma('synchronous = OFF');
    applied = await apply(db, options).catch(async (error) => {
      if (!isDiskFull(error) || !existsSync(path)) throw error;
      await requireWhole(tail, options);
      // No room for two: the log is whole, so the old one is not needed.
      removeDatabase(path);
      return apply(db, options);
    });
    const unsound = isResumed ? whyUnsound(db) : null;
    if (unsound !== null)
      throw new DatabaseDamage(`the database that an earlier start began to rebuild is damaged: ${unsound}`);
    // Before it has its name: the change goes through a rollback journal, and beside a database in its place one that a
    // kill has left would let nobody open it who may not write.
    db.pragma('journal_mode = WAL');
  } catch (error) {
    db.close();
    // The log needs room before a draft does; and of a draft that is not sound nothing is kept.
    const isUnsound = isDamage(error) || (isResumed && isContradiction(error));
    if (isDiskFull(error) || isUnsound) removeDatabase(draft);
    // The power cut may have taken any part of it. Made from the beginning, only the log can be at fault.
    if (isResumed && isUnsound) return makeAnew(tail, options);
    throw error;
  }
  db.close();
  rmSync(journalOf(draft), { force: true });
  syncFile(draft);
  removeBeside(path);
  renameSync(draft, path);
  syncFolder(dirname(path));
  return applied;
}

/** Whether an entry cannot be applied: the log is damaged, or the database holds something else than its mark says. */
/** The last entry that is in the database file itself; null where its write-ahead log may have more. */
function entryInFile(db: Database): number | null {
  return sizeOf(`${db.name}-wal`) === 0 ? (readLogMark(db)?.entry ?? null) : null;
}

function isContradiction(error: unknown): error is Error {
  return error instanceof LogDamage || errorCode(error).startsWith('SQLITE_CONSTRAINT') || isDamage(error);
}

/** Goes on with the draft of an earlier start where it is of this log and schema. */
function openDraft({ log }: DataFolder, draft: string): { db: Database; isResumed: boolean } {
  if (existsSync(draft)) {
    try {
      rollBackJournal(draft);
      const db = openDatabase(draft, 'write', DETECTIONS_SCHEMA);
      const mark = readLogMark(db);
      if (mark === null || placeOf(log, 'detections', mark) === 'known') return { db, isResumed: true };
      db.close();
    } catch (error) {
      if (!isDamage(error) && !(error instanceof UnknownSchema)) throw error;
    }
  }
  removeDatabase(draft);
  return { db: openDatabase(draft, 'write', DETECTIONS_SCHEMA), isResumed: false };
}

/**
 * Ends what a kill has left of a transaction: only a connection that may write can take it back. A draft has a rollback
 * journal, and so had a database in its place that an earlier version was about to turn to its write-ahead log.
 */
function rollBackJournal(path: string): void {
  if (!existsSync(journalOf(path))) return;
  const db = openDatabase(path, 'plain');
  try {
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
  } finally {
    db.close();
  }
  rmSync(journalOf(path), { force: true });
}

async function apply(db: Database, { folder, onProgress, between }: RecoverOptions): Promise<number> {
  const mark = readLogMark(db);
  const total = bytesFrom(folder.log, mark);
  const projection = new Projection(db);
  let applied = 0;
  let frames = 0;
  try {
    for (const { part, bytes } of entriesAfter(folder.log, 'detections', mark)) {
      projection.apply(part);
      frames += 1;
      if (part.kind === 'commit') {
        applied += 1;
        onProgress(bytes, total);
      }
      if (part.kind === 'commit' || frames % FRAMES_A_TURN === 0) await between();
    }
    return applied;
  } finally {
    projection.rollback();
  }
}

/** Reads the log to its end. @throws LogDamage */
async function requireWhole(tail: Tail, { folder, between }: RecoverOptions): Promise<void> {
  let last: Commit | null = null;
  for (const { part } of entriesAfter(folder.log, 'detections', null)) {
    if (part.kind === 'commit') last = part.commit;
    await between();
  }
  if (last?.id !== tail.last?.id) throw new LogDamage('the log ends before its last entry');
}

/** Bytes of the segments in which the entries behind one stand. */
function bytesFrom(log: string, mark: Mark | null): number {
  const segments = listSegments(log);
  const first = segments.findLastIndex(({ firstEntry }) => firstEntry <= (mark?.entry ?? 0) + 1);
  return bytesOf(segments.slice(Math.max(0, first)));
}

/** What is left of another file's write-ahead log must not be joined to this one. */
function setWalAside(path: string): void {
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${path}${WAL_ASIDE}`);
  rmSync(`${path}-shm`, { force: true });
}

function damaged({ root, log, detections }: DataFolder, error: LogDamage): Refused {
  const hasDatabase = existsSync(detections);
  return new Refused(
    'configuration',
    `the log in ${log} is damaged: ${error.message}. Nothing was changed. Restore a backup (wirewatch restore BACKUP --replace --data ${root}); newer entries of the log are kept.${hasDatabase ? ' If the database is not damaged, you can start a new log from it instead: wirewatch rebuild --log' : ''}`,
    { cause: error },
  );
}
