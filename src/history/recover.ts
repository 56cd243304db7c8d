/**
 * Recovers `detections.db` before anything else uses it. The database is a projection of the log: it is brought to the
 * log's end, or rebuilt if it is not reliable.
 *
 * | state | action |
 * |---|---|
 * | the log has the last entry that the database has applied | later entries are applied |
 * | no database, another schema, another log, older than the log's first entry, a replaced file that is damaged or has a write-ahead log beside it, a note of damage | it is rebuilt, beside the old file if there is room |
 * | the log ends before the database, or a part of it that is needed is damaged | refused; nothing is changed |
 */
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { errorCode, Refused } from '../refused.ts';
import {
  type Database,
  integrityError,
  isEmpty,
  openDatabase,
  removeBeside,
  removeDatabase,
  sizeOf,
} from '../store/database.ts';
import { DatabaseDamage, isDamage, isDiskFull } from '../store/database-errors.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { forgetBoot, isNotedFile, isOfThisBoot, noteBoot, noteIdentity } from '../store/file-identity.ts';
import { type DataFolder, syncFile } from '../store/folder.ts';
import { readLogMark, readLogMarkOf } from '../store/log-mark.ts';
import { UnknownSchema } from '../store/schema.ts';
import { LogApplier } from './apply-log.ts';
import type { Commit, Mark } from './format.ts';
import { LogDamage } from './log-error.ts';
import {
  entriesAfter,
  findTail,
  type LocatedPart,
  type Place,
  placeOf,
  type Tail,
  trustTail,
} from './log-reader.ts';
import { LogWriter } from './log-writer.ts';
import { tidyLog } from './replace-log.ts';
import { bytesOf, listSegments } from './segment.ts';

export interface RecoverOptions {
  readonly folder: DataFolder;
  /** The version of this program. */
  readonly program: string;
  /** Called when the database can be read, if nothing has to be done first. */
  readonly onReadable?: () => void;
  /** Called before work that may take long, with the reason. */
  readonly onBegin?: (reason: string) => void;
  /** In bytes of the log. */
  readonly onProgress: (done: number, total: number) => void;
  /** Called between entries: throws to interrupt the work. The next start continues it. */
  readonly between: () => Promise<void>;
}

export interface Recovered {
  readonly db: Database;
  readonly log: LogWriter;
  /** Entries that were applied. */
  readonly applied: number;
  /** Why the database was rebuilt; null: it was not. */
  readonly madeAnew: string | null;
}

/** Applying less of the log, or checking a smaller database, is fast enough to need no message. */
const LONG_BYTES = 256 * 1024;
const LONG_CHECK_BYTES = 16 * 1024 * 1024;
const WAL_ASIDE = '-wal-aside';
const draftOf = (path: string) => `${path}-draft`;
const journalOf = (path: string) => `${path}-journal`;
/** Frames between two turns of the event loop. */
const FRAMES_A_TURN = 16;

/** @throws Refused `configuration` if the log is damaged; LogFailure; SQLite's errors */
export async function recoverDetections(options: RecoverOptions): Promise<Recovered> {
  const { folder, program } = options;
  let db: Database | null = null;
  try {
    tidyLog(folder.log);
    const tail = findTail(folder.log, true);
    const isOurs = isNotedFile(folder.detections) && !existsSync(journalOf(folder.detections));
    const found = open(options, tail, isOurs);
    db = found.kind === 'usable' ? found.db : null;
    requireReach(folder, tail, found);
    if (tail.isDoubtful && !(isOurs && db !== null)) throw undecided(folder, tail);
    if (db !== null && readLogMark(db)?.entry === tail.last?.entry) options.onReadable?.();
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
      options.onBegin?.(madeAnew ?? '');
      applied = await rebuild(tail, options);
      db = openDatabase(folder.detections, 'write', DETECTIONS_SCHEMA);
    }
    noteIdentity(folder.detections, false, entryInFile(db));
    // A note that was made since the database can be read is for the next start.
    if (madeAnew !== null) rmSync(folder.damage, { force: true });
    rmSync(`${folder.detections}${WAL_ASIDE}`, { force: true });
    forgetBoot(draftOf(folder.detections));
    const log = new LogWriter({ folder: folder.log, program }, tail);
    return { db, log, applied, madeAnew };
  } catch (error) {
    db?.close();
    if (error instanceof LogDamage) throw damaged(folder, error);
    throw error;
  }
}

/** Applies the entries that the database lacks, after SQLite refused the commit of a decided entry. */
export function applyPending(db: Database, folder: string): number {
  let applied = 0;
  for (const { part } of applyEntries(db, folder)) if (part.kind === 'commit') applied += 1;
  return applied;
}

/** Applies the entries that the database lacks, and yields each part after that. */
function* applyEntries(db: Database, folder: string): Generator<LocatedPart> {
  const applier = new LogApplier(db);
  try {
    for (const located of entriesAfter(folder, readLogMark(db))) {
      applier.apply(located.part);
      yield located;
    }
    applier.commit();
  } finally {
    applier.rollback();
  }
}

type Found =
  | { readonly kind: 'usable'; readonly db: Database }
  | { readonly kind: 'unusable'; readonly reason: string };

/** Opens the database if it is reliable; otherwise it is left as it is. @param isOurs whether it is the noted file */
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
  // Part of it may have been copied into the file, which no check of the file would find.
  if (existsSync(`${path}${WAL_ASIDE}`))
    return unusable('the file was replaced, or a power cut took the note of which file it is');
  let db: Database | null = null;
  try {
    rollBackJournal(path);
    db = openDatabase(path, 'write', DETECTIONS_SCHEMA);
    if (!isOurs && sizeOf(path) > LONG_CHECK_BYTES)
      onBegin?.('the file was replaced since the last stop and is being checked');
    const error = isOurs ? null : integrityError(db);
    const reason = error === null ? whyOfOtherLog(db, folder.log, tail) : `the file is damaged: ${error}`;
    if (reason === null) return { kind: 'usable', db };
    db.close();
    return unusable(reason);
  } catch (error) {
    db?.close();
    if (error instanceof UnknownSchema) return unusable('it was created by another version of Wirewatch');
    if (isDamage(error)) return unusable(`it is damaged: ${error instanceof Error ? error.message : ''}`);
    throw error;
  }
}

/** Why a database cannot be brought to the end of this log; null: it can, or the log ends before it. */
function whyOfOtherLog(db: Database, log: string, tail: Tail): string | null {
  const mark = readLogMark(db);
  const place = mark === null ? 'known' : placeBefore(tail, log, mark);
  if (mark === null || place === 'known' || place === 'beyond') return null;
  if (place === 'foreign') return 'it belongs to another log';
  return 'it is older than the first entry of the log';
}

/** Most databases have applied the last entry: then the log need not be read again. */
function placeBefore({ last }: Tail, log: string, mark: Mark): Place {
  return last?.entry === mark.entry && last.id === mark.id ? 'known' : placeOf(log, mark);
}

/**
 * An incomplete entry may be cut only if the database, which was in use to the end, lacks it. A power cut may have taken
 * earlier entries from the database, too.
 */
function undecided({ log }: DataFolder, { last }: Tail): LogDamage {
  return new LogDamage(`the entry after entry ${grouped(last?.entry ?? 0)} in ${log} is damaged`);
}

/** Refuses a log that ends before the database: rebuilding would discard the only copy of the last entries. */
function requireReach({ log, detections }: DataFolder, tail: Tail, found: Found): void {
  const mark = found.kind === 'usable' ? readLogMark(found.db) : readLogMarkOf(detections);
  if (mark !== null && placeBefore(tail, log, mark) === 'beyond')
    throw new LogDamage(
      tail.last === null
        ? `the log is missing, but the database has applied its entries up to ${grouped(mark.entry)}`
        : `the log ends with entry ${grouped(tail.last.entry)}, but the database has applied entry ${grouped(mark.entry)}`,
    );
  if (found.kind === 'unusable' && tail.last === null)
    throw new LogDamage(`the log is missing, and the database cannot be used: ${found.reason}`);
}

async function applyRest(db: Database, tail: Tail, options: RecoverOptions): Promise<number> {
  const mark = readLogMark(db);
  if ((tail.last?.entry ?? 0) === (mark?.entry ?? 0)) return 0;
  if (bytesFrom(options.folder.log, mark) > LONG_BYTES)
    options.onBegin?.(
      `it lacks entries ${grouped((mark?.entry ?? 0) + 1)} to ${grouped(tail.last?.entry ?? 0)} of the log`,
    );
  // SQLite checkpoints meanwhile, and when an interrupted start closes the database.
  noteIdentity(options.folder.detections, true);
  return apply(db, options);
}

/** Builds the database beside its place, and puts it there when it is complete. The next start continues a draft. */
async function rebuild(tail: Tail, options: RecoverOptions): Promise<number> {
  const { folder } = options;
  const path = folder.detections;
  const draft = draftOf(path);
  const { db, isResumed } = openDraft(folder, draft);
  let applied: number;
  try {
    // After a power cut, a draft is not continued. A rollback journal needs less room than a write-ahead log; keeping
    // its file from one entry to the next saves a fifth of the time for small entries.
    db.pragma('journal_mode = PERSIST');
    db.pragma('synchronous = OFF');
    applied = await apply(db, options).catch(async (error) => {
      if (!isDiskFull(error) || !existsSync(path)) throw error;
      await requireWhole(tail, options);
      // No room for both files: the log is complete, so the old one is not needed.
      removeDatabase(path);
      return apply(db, options);
    });
    const found = isResumed ? integrityError(db) : null;
    if (found !== null)
      throw new DatabaseDamage(`the database that an earlier start began to rebuild is damaged: ${found}`);
    // Before the rename: the change goes through a rollback journal. If a kill left that beside the final database, nobody
    // without write permission could open it.
    db.pragma('journal_mode = WAL');
  } catch (error) {
    db.close();
    // The log needs the room more than a draft does, and a damaged draft is useless.
    const isUnsound = isDamage(error) || (isResumed && isContradiction(error));
    if (isDiskFull(error) || isUnsound) removeDatabase(draft);
    // If an attempt without the draft fails too, the log is at fault.
    if (isResumed && isUnsound) return rebuild(tail, options);
    throw error;
  }
  db.close();
  rmSync(journalOf(draft), { force: true });
  syncFile(draft);
  removeBeside(path);
  // The note of its identity, which comes next, makes the name durable.
  renameSync(draft, path);
  return applied;
}

/** The last entry that is in the database file itself; null if the write-ahead log may have more. */
function entryInFile(db: Database): number | null {
  return sizeOf(`${db.name}-wal`) === 0 ? (readLogMark(db)?.entry ?? null) : null;
}

/** Whether an entry cannot be applied: the log is damaged, or the database differs from its mark. */
function isContradiction(error: unknown): error is Error {
  return error instanceof LogDamage || errorCode(error).startsWith('SQLITE_CONSTRAINT') || isDamage(error);
}

/**
 * Continues the draft of an earlier start, if it has this schema and belongs to this log, and if the machine was not
 * started since: a power cut may have taken any page of it, also one that no check of SQLite misses.
 */
function openDraft({ log }: DataFolder, draft: string): { db: Database; isResumed: boolean } {
  if (existsSync(draft) && isOfThisBoot(draft)) {
    try {
      rollBackJournal(draft);
      const db = openDatabase(draft, 'write', DETECTIONS_SCHEMA);
      const mark = readLogMark(db);
      if (mark === null || placeOf(log, mark) === 'known') return { db, isResumed: true };
      db.close();
    } catch (error) {
      if (!isDamage(error) && !(error instanceof UnknownSchema)) throw error;
    }
  }
  removeDatabase(draft);
  noteBoot(draft);
  return { db: openDatabase(draft, 'write', DETECTIONS_SCHEMA), isResumed: false };
}

/**
 * Rolls back the transaction that a kill interrupted: only a connection that may write can do it. A draft has a rollback
 * journal, and so may a database that an earlier version left while it changed the journal mode.
 */
function rollBackJournal(path: string): void {
  if (!existsSync(journalOf(path))) return;
  {
    using db = openDatabase(path, 'plain');
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
  }
  rmSync(journalOf(path), { force: true });
}

async function apply(db: Database, { folder, onProgress, between }: RecoverOptions): Promise<number> {
  const total = bytesFrom(folder.log, readLogMark(db));
  let applied = 0;
  let frames = 0;
  for (const { part, bytes } of applyEntries(db, folder.log)) {
    frames += 1;
    if (part.kind === 'commit') {
      applied += 1;
      onProgress(bytes, total);
    }
    if (part.kind === 'commit' || frames % FRAMES_A_TURN === 0) await between();
  }
  return applied;
}

/** Reads the log to its end. @throws LogDamage */
async function requireWhole(tail: Tail, { folder, between }: RecoverOptions): Promise<void> {
  let last: Commit | null = null;
  for (const { part } of entriesAfter(folder.log, null)) {
    if (part.kind === 'commit') last = part.commit;
    await between();
  }
  if (last?.id !== tail.last?.id) throw new LogDamage('the log ends before its last entry');
}

/** Bytes of the segments with the entries after one. */
function bytesFrom(log: string, mark: Mark | null): number {
  const segments = listSegments(log);
  const first = segments.findLastIndex(({ firstEntry }) => firstEntry <= (mark?.entry ?? 0) + 1);
  return bytesOf(segments.slice(Math.max(0, first)));
}

/** The write-ahead log of another file must not be joined to this one. It is kept until the database is rebuilt. */
function setWalAside(path: string): void {
  if (sizeOf(`${path}-wal`) > 0) renameSync(`${path}-wal`, `${path}${WAL_ASIDE}`);
  else rmSync(`${path}-wal`, { force: true });
  rmSync(`${path}-shm`, { force: true });
}

function damaged({ root, log, detections }: DataFolder, error: LogDamage): Refused {
  const advice = existsSync(detections)
    ? `If detections.db is sound, write the log anew from it: wirewatch compact --data ${root} checks it first, and loses nothing that it has. Otherwise restore`
    : 'Restore';
  return new Refused(
    'configuration',
    `the log in ${log} is damaged: ${error.message}. Nothing was changed. ${advice} a backup (wirewatch restore BACKUP --replace --data ${root}); newer entries of the log are kept up to the damage.`,
    { cause: error },
  );
}
