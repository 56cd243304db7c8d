/**
 * The scrub: reads the log, with every check, up to the entry that `detections.db` has applied last, and compares the
 * database with it.
 *
 * It applies the log, with the code that a rebuild uses ({@link LogApplier}), to a scratch database on the disk, and
 * compares the two in every column (compare-tables.ts). So memory stays flat, and databases are equal exactly if a rebuild
 * would give the same rows. The scratch database has no texts, only their checksums: it needs about a fifth of the space.
 * If there is too little, only the log is checked, and the result says so.
 *
 * It only reads, so an appliance may run meanwhile. It reads one state of the database: its write-ahead log grows
 * by what is written meanwhile.
 */
import { existsSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { reasonOf } from '../refused.ts';
import { type Database, openDatabase, openScratch, requireSchema } from '../store/database.ts';
import { DatabaseDamage, isDamage, isDiskFull } from '../store/database-errors.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { type DataFolder, freeBytes } from '../store/folder.ts';
import { LogDamage, LogFailure } from '../store/log-errors.ts';
import { type LogMark, readLogMark } from '../store/log-mark.ts';
import { LogApplier } from './apply-log.ts';
import { compareTables } from './compare-tables.ts';
import type { Commit } from './format.ts';
import { entriesAfter, type LocatedPart } from './log-reader.ts';
import { type ScrubFinding, ScrubFindings, throwUnlessOfContent } from './scrub-findings.ts';
import { bytesOf, EntryReader, listSegments, type Segment } from './segment.ts';

export interface ScrubOptions {
  readonly folder: Pick<DataFolder, 'root' | 'log' | 'detections'>;
  /** Called between short steps: waits, and throws to end the scrub. */
  readonly between: () => Promise<void>;
  /** The log in bytes, then each table in rows. */
  readonly onProgress: (what: string, done: number, total: number) => void;
  /** The database, in a transaction that keeps one state of it; absent: it is opened. */
  readonly db?: Database;
}

export interface ScrubResult {
  /** The last entry that was compared; null: none. */
  readonly entry: number | null;
  readonly findings: readonly ScrubFinding[];
  /** Why the database was not compared with the log; null: it was. */
  readonly not_compared: string | null;
}

const ROOM_LEFT_BYTES = 512 * 1024 * 1024;
/** How often the free space is checked. */
const ROOM_EVERY_FRAMES = 64;

/** @throws whatever `between` throws; errors of files other than the log */
export async function scrub(options: ScrubOptions): Promise<ScrubResult> {
  for (let isRepeated = false; ; isRepeated = true) {
    const files = filesOf(options.folder.log);
    // A compaction that ended meanwhile has deleted what was being read.
    const isStill = () => filesOf(options.folder.log).startsWith(files);
    const result = await scrubOnce(options, isRepeated).catch((error) => {
      if (isStill()) throw error;
      return null;
    });
    if (result !== null && (result.findings.length === 0 || isStill())) return result;
  }
}

function filesOf(log: string): string {
  return listSegments(log)
    .map(({ path }) => `${path}\n`)
    .join('');
}

/** @returns null if it has to be repeated: the log looked damaged, but none of its segments is */
async function scrubOnce(options: ScrubOptions, isRepeated: boolean): Promise<ScrubResult | null> {
  const findings = new ScrubFindings();
  const opened = options.db ?? open(options.folder, findings);
  const expected = opened === null ? null : new ExpectedDatabase(options, opened);
  try {
    if (opened === null || expected === null) await checkLog(options, findings, null, isRepeated);
    else {
      await expected.applyTo(readLogMark(opened));
      if (expected.notCompared === null)
        compareTables({ db: opened, made: expected.name, findings, onProgress: options.onProgress });
    }
  } catch (error) {
    if (error instanceof LogDamage || error instanceof LogFailure) {
      if (!(await checkLog(options, findings, error, isRepeated))) return null;
      expected?.giveUp('the log is damaged');
    } else if (isDamage(error)) findings.add('database malformed', reasonOf(error));
    else if (isDiskFull(error)) expected?.giveUp(NO_ROOM);
    else throw error;
  } finally {
    if (opened !== options.db) opened?.close();
    expected?.close();
  }
  return {
    entry: expected?.last?.entry ?? null,
    findings: findings.list(),
    not_compared: expected === null ? NOT_READABLE : expected.notCompared,
  };
}

const NO_ROOM =
  'the disk has too little free space for the comparison: it needs about a fifth of the size of detections.db, and 512 MiB more';
const NOT_READABLE = 'detections.db cannot be opened';

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
    throwUnlessOfContent(error, detections);
    findings.add('database malformed', reasonOf(error));
    return null;
  }
}

/** A connection may compare its database more than once. */
let attached = 0;

class ExpectedDatabase {
  /** Of its schema on the connection that it is attached to, until that is closed. */
  readonly name: string;
  readonly #options: ScrubOptions;
  readonly #scratch: ReturnType<typeof openScratch> | null = null;
  readonly #applier: LogApplier | null = null;
  readonly #parts: Generator<LocatedPart>;
  readonly #totalBytes: number;
  #frames = 0;
  notCompared: string | null = null;
  last: Commit | null = null;

  constructor(options: ScrubOptions, attachTo: Database) {
    const { root, log } = options.folder;
    this.#options = options;
    attached += 1;
    this.name = `made_${attached}`;
    try {
      this.#scratch = openScratch(root, DETECTIONS_SCHEMA, { db: attachTo, name: this.name });
      this.#applier = new LogApplier(this.#scratch.db, () => '');
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.giveUp(NO_ROOM);
    }
    this.#totalBytes = bytesOf(listSegments(log));
    this.#parts = entriesAfter(log, null);
  }

  giveUp(reason: string): void {
    this.notCompared ??= reason;
  }

  /**
   * Applies the log up to a mark of the database, and no further: later entries may still be being written.
   * @param mark null: the database has applied no entry
   * @throws LogDamage if the log is damaged before the mark, or ends before it; DatabaseDamage if the mark went back
   */
  async applyTo(mark: LogMark | null): Promise<void> {
    const entry = mark?.entry ?? 0;
    while ((this.last?.entry ?? 0) < entry) {
      const { value } = this.#parts.next();
      if (value === undefined)
        throw new LogDamage(
          `${this.#options.folder.log} ends with entry ${grouped(this.last?.entry ?? 0)}, but detections.db has applied entry ${grouped(entry)}`,
        );
      await this.#apply(value);
    }
    if (this.last?.entry !== mark?.entry)
      throw new DatabaseDamage(`log_mark went back from entry ${this.last?.entry} to entry ${entry}`);
    if (this.last?.id !== mark?.id)
      throw new DatabaseDamage(`log_mark names entry ${entry} with an id that the log does not contain`);
    // The other connection sees what is committed.
    if (this.notCompared === null) this.#applier?.commit();
  }

  close(): void {
    this.#parts.return(undefined);
    this.#scratch?.close();
  }

  async #apply({ part, bytes }: LocatedPart): Promise<void> {
    const { folder, onProgress, between } = this.#options;
    if (this.#frames % ROOM_EVERY_FRAMES === 0 && freeBytes(folder.root) < ROOM_LEFT_BYTES)
      this.giveUp(NO_ROOM);
    this.#frames += 1;
    try {
      if (this.notCompared === null) this.#applier?.apply(part);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.giveUp(NO_ROOM);
    }
    if (part.kind === 'commit') onProgress('the log', bytes, this.#totalBytes);
    await between();
    if (part.kind === 'commit') this.last = part.commit;
  }
}

/**
 * Checks each segment by itself, so that damage in one does not hide damage in the next. What is found is checked once
 * more: only if it is found again may it be damage. A read may fail, and the newest segment is being written.
 * @param error why reading the log stopped; null: it was not read
 * @param isRepeated whether an earlier scrub, too, found damage that no segment has by itself: then it is a finding
 * @returns false if there is such damage, but it was found for the first time: a new reader may not find it
 * @throws Refused `failed` if nothing was found, but not all of the log could be read
 */
async function checkLog(
  options: ScrubOptions,
  findings: ScrubFindings,
  error: LogDamage | LogFailure | null,
  isRepeated: boolean,
): Promise<boolean> {
  const segments = listSegments(options.folder.log);
  let unread = error instanceof LogFailure ? error : null;
  let damage = error instanceof LogDamage ? error : null;
  for (const [index, segment] of segments.entries()) {
    const check = () => problemOf(segment, segments[index + 1], options);
    let problem = await check();
    if (problem !== null) problem = await check();
    if (problem instanceof LogFailure && !problem.isOfContent) unread = problem;
    else if (problem !== null) {
      findings.add('log damaged', problem.message);
      damage = null;
    }
  }
  if (damage !== null && !isRepeated) return false;
  if (damage !== null) findings.add('log damaged', damage.message);
  if (unread !== null && findings.list().length === 0) throwUnlessOfContent(unread.cause, unread.path);
  return true;
}

async function problemOf(
  segment: Segment,
  next: Segment | undefined,
  { folder, between }: ScrubOptions,
): Promise<LogDamage | LogFailure | null> {
  const { path } = segment;
  try {
    using reader = new EntryReader(segment);
    while (reader.next(reader.last ?? undefined) !== null) await between();
    const isClosed = path !== listSegments(folder.log).at(-1)?.path;
    if (!reader.isWhole && (isClosed || reader.commitsBehind().next().done !== true))
      return new LogDamage(`${path} is damaged at byte ${reader.end}`);
    const last = reader.last?.entry;
    const isJoined = next === undefined || last === undefined || next.firstEntry === last + 1;
    if (!isClosed || !reader.isWhole || isJoined) return null;
    return new LogDamage(
      `${path} ends with entry ${grouped(last)}, but the next segment begins with entry ${grouped(next.firstEntry)}`,
    );
  } catch (error) {
    if (error instanceof LogFailure) return error;
    if (error instanceof LogDamage) return new LogDamage(`${path}: ${error.message}`);
    throw error;
  }
}
