/**
 * The scrub: reads the log from its first entry to the one that `detections.db` has applied last, with every checksum
 * and join, and compares the database with what the log comes to.
 *
 * What the log comes to is made by the very code that would make the database anew ({@link Projection}), into a database
 * of its own on the disk, and then compared row by row, every column. So memory stays flat, the order of changes needs no
 * thought, and what the comparison calls equal is what a start would make. Of a text that database has a digest alone:
 * it takes about a fifth of the room. Where there is no room for it, the log alone is checked, and the result says so.
 *
 * It only reads, so an appliance may run beside it.
 */

import { existsSync, statSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { reasonOf } from '../refused.ts';
import { type Database, openDatabase, openScratch } from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { type DataFolder, freeBytes } from '../store/folder.ts';
import { type LogMark, readLogMark } from '../store/log-mark.ts';
import { requireSchema } from '../store/schema.ts';
import { compareTables, digestOf } from './compare-tables.ts';
import { LogDamage, LogFailure } from './log-error.ts';
import { LogFollower } from './log-follower.ts';
import type { LocatedPart } from './log-reader.ts';
import { Projection } from './projection.ts';
import { type ScrubFinding, ScrubFindings, throwUnlessOfContent } from './scrub-findings.ts';
import { bytesOf, EntryReader, listSegments, type Segment } from './segment.ts';

export interface ScrubOptions {
  readonly folder: Pick<DataFolder, 'root' | 'log' | 'detections'>;
  /** Called between short steps: waits, and throws to end the scrub. */
  readonly between: () => Promise<void>;
  /** How far it is with the log (bytes), then with each table (rows). */
  readonly onProgress: (what: string, done: number, total: number) => void;
  /** In place of the entry that the database names: where it is compared with another log. */
  readonly mark?: LogMark;
}

export interface ScrubResult {
  /** The last entry of the log that was compared; null: none. */
  readonly entry: number | null;
  readonly findings: readonly ScrubFinding[];
  /** Why the database was not compared with the log; null: it was. */
  readonly not_compared: string | null;
}

/** What is left to ingest: a scrub must not fill the disk. */
const ROOM_LEFT_BYTES = 512 * 1024 * 1024;
const FRAMES_A_LOOK = 64;
/** What is read is read once. */
const CACHE_KIB = 8 * 1024;

/** @throws whatever `between` throws; errors of files that are not of the log */
export async function scrub(options: ScrubOptions): Promise<ScrubResult> {
  for (;;) {
    const files = filesOf(options.folder.log);
    const result = await scrubOnce(options);
    const now = filesOf(options.folder.log).slice(0, files.length);
    // The database may have been read with rows that a removal (purge.ts) had taken out of the log when that was read.
    if (result.findings.length === 0 || String(now) === String(files)) return result;
  }
}

function filesOf(log: string): (number | undefined)[] {
  return listSegments(log).map(({ path }) => statSync(path, { throwIfNoEntry: false })?.ino);
}

async function scrubOnce(options: ScrubOptions): Promise<ScrubResult> {
  const findings = new ScrubFindings();
  const opened = open(options.folder, findings);
  const made = new Made(options);
  try {
    if (opened !== null) {
      // The log first, so that what is compared then is not read long after.
      await made.follower.to(options.mark ?? opened.mark);
      if (made.db !== null && made.notCompared === null)
        await compareTables({
          db: opened.db,
          made: made.db,
          follow: (mark) => made.follower.to(options.mark ?? mark),
          findings,
          between: options.between,
          onProgress: options.onProgress,
        });
    } else {
      await checkLog(options, findings, null);
    }
  } catch (error) {
    if (error instanceof LogDamage || error instanceof LogFailure)
      made.giveUp(await checkLog(options, findings, error));
    else if (isDamage(error)) findings.add('database malformed', reasonOf(error));
    else if (isDiskFull(error)) made.giveUp(NO_ROOM);
    else throw error;
  } finally {
    opened?.db.close();
    made.close();
  }
  const entry = made.follower.entry;
  return {
    entry,
    findings: findings.list(),
    not_compared: opened === null ? NOT_READABLE : made.notCompared,
  };
}

const NO_ROOM =
  'the disk has too little free space for the comparison: it needs about a fifth of the size of detections.db, and 512 MiB more';
const NOT_READABLE = 'detections.db cannot be opened';

function open({ detections }: ScrubOptions['folder'], findings: ScrubFindings) {
  if (!existsSync(detections)) {
    findings.add('database malformed', `${detections} is missing`);
    return null;
  }
  let db: Database | null = null;
  try {
    db = openDatabase(detections, 'inspect');
    db.pragma(`cache_size = -${CACHE_KIB}`);
    requireSchema(db, detections, DETECTIONS_SCHEMA);
    return { db, mark: readLogMark(db) };
  } catch (error) {
    db?.close();
    throwUnlessOfContent(error, detections);
    findings.add('database malformed', reasonOf(error));
    return null;
  }
}

/** The database that the log comes to. */
class Made {
  readonly #options: ScrubOptions;
  readonly #scratch: { readonly db: Database; readonly close: () => void } | null = null;
  readonly #projection: Projection | null = null;
  readonly #totalBytes: number;
  #frames = 0;
  /** See {@link ScrubResult}. */
  notCompared: string | null = null;
  readonly follower: LogFollower;

  constructor(options: ScrubOptions) {
    const { folder } = options;
    this.#options = options;
    try {
      this.#scratch = openScratch(folder.root, DETECTIONS_SCHEMA);
      this.#projection = new Projection(this.#scratch.db, {
        textOf: digestOf,
      });
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.giveUp(NO_ROOM);
    }
    this.#totalBytes = bytesOf(listSegments(folder.log));
    this.follower = new LogFollower(folder.log, (located) => this.#apply(located));
  }

  /** Null where there was no room for it. */
  get db(): Database | null {
    return this.#scratch?.db ?? null;
  }

  giveUp(reason: string): void {
    this.notCompared ??= reason;
  }

  close(): void {
    this.follower.close();
    this.#scratch?.close();
  }

  async #apply({ part, bytes }: LocatedPart): Promise<void> {
    if (this.#frames % FRAMES_A_LOOK === 0 && freeBytes(this.#options.folder.root) < ROOM_LEFT_BYTES)
      this.giveUp(NO_ROOM);
    this.#frames += 1;
    try {
      if (this.notCompared === null) this.#projection?.apply(part);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.giveUp(NO_ROOM);
    }
    if (part.kind === 'commit') this.#options.onProgress('the log', bytes, this.#totalBytes);
    await this.#options.between();
  }
}

/**
 * Each segment by itself: what is found in one does not hide what is wrong with the next. A read that fails is done once
 * more: only what fails again may be damage.
 *
 * @param error what the log could not be read on for; null: it was not read
 * @returns why nothing can be compared with the log
 * @throws Refused `failed` where nothing was found, but not all of the log could be read
 */
async function checkLog(
  options: ScrubOptions,
  findings: ScrubFindings,
  error: LogDamage | LogFailure | null,
): Promise<string> {
  const segments = listSegments(options.folder.log);
  let unread = error instanceof LogFailure ? error : null;
  let damage = error instanceof LogDamage ? error : null;
  for (const [index, segment] of segments.entries()) {
    const check = () => problemOf(segment, segments[index + 1], options);
    let problem = await check();
    if (problem instanceof LogFailure) problem = await check();
    if (problem instanceof LogFailure && !problem.isOfContent) unread = problem;
    else if (problem !== null) {
      findings.add('log damaged', problem.message);
      damage = null;
    }
  }
  if (damage !== null) findings.add('log damaged', damage.message);
  if (unread !== null && findings.list().length === 0) throwUnlessOfContent(unread.cause, unread.path);
  return 'the log is damaged';
}

async function problemOf(
  segment: Segment,
  next: Segment | undefined,
  { folder, between }: ScrubOptions,
): Promise<LogDamage | LogFailure | null> {
  const { path } = segment;
  let reader: EntryReader | null = null;
  try {
    reader = new EntryReader(segment, 'detections');
    while (reader.next(reader.last ?? undefined) !== null) await between();
    const isClosed = segment.path !== listSegments(folder.log).at(-1)?.path;
    if (!reader.isWhole && (isClosed || reader.entriesBehind().length > 0))
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
  } finally {
    reader?.close();
  }
}
