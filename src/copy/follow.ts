/**
 * A standby: reads what is new in the copy, appends it to the log of this machine, and applies it to the databases, which
 * serve reads meanwhile. A promotion is an entry of the log like any other: whoever creates it is the writer.
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { findAccess, refreshSpare } from '../auth/spare-copy.ts';
import { deleteRows } from '../ingest/apply/remove-rows.ts';
import { LogApplier } from '../log/apply-log.ts';
import { endedStreams } from '../log/detection-rows.ts';
import type { Commit } from '../log/format.ts';
import { decodeLines, encodeFrame } from '../log/frame.ts';
import { findTail, newestCommits } from '../log/log-reader.ts';
import { LogWriter } from '../log/log-writer.ts';
import { applyPending, type Recovered } from '../log/recover.ts';
import { linesPart, listSegments, replaceLog } from '../log/segment.ts';
import { epochTimes } from '../log/version-epoch.ts';
import { failed } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { checkpoint } from '../store/checkpoint.ts';
import { waitsForCopy } from '../store/copy-mode.ts';
import { openDatabase } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { type DataFolder, writeWhole } from '../store/folder.ts';
import { LogDamage } from '../store/log-errors.ts';
import { readLogMark } from '../store/log-mark.ts';
import { noteKept, PROMOTE } from '../store/role.ts';
import { formatMs, type Now } from '../time.ts';
import { entriesIn, findLog, generationIn } from './copied-log.ts';
import {
  beforeEntry,
  FIRST_GENERATION,
  generationFolder,
  inOrder,
  LOG,
  type LogObject,
  partName,
} from './names.ts';
import { copiedChange, ownerOf, readCopiedAccess, requireOwn } from './own-copy.ts';
import type { Place } from './place.ts';
import { draftSegment, hasEntry } from './source.ts';

const SELECT_TABLES = `
  SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`;
const SELECT_UNSTAMPED = 'SELECT first_position FROM delivery WHERE delivered_at IS NULL';
/** How often another machine may be faster before a promotion gives up. */
const PROMOTE_TRIES = 5;

export interface FollowOptions {
  readonly place: Place;
  readonly folder: DataFolder;
  /** The version of this program. */
  readonly program: string;
  readonly now: Now;
  /** The id of this machine. */
  readonly machine: string;
  /** Called for rows that became visible. */
  readonly onDelivered: (firstPosition: number, deliveredAtMs: number) => void;
}

export class Follower {
  readonly #options: FollowOptions;
  readonly #db: Recovered['db'];
  #log: LogWriter;
  /** Null: it must be found. */
  #generation: string | null = null;
  /** The change of access.db that was read last. */
  #change = 0;
  /** How many streams were removed when their rows were last deleted; null: unknown, as after a start. */
  #removed: number | null = null;
  /** Whether the last promotion that was applied is that of this machine. */
  isPromoted = false;

  constructor(options: FollowOptions, { db, log }: Pick<Recovered, 'db' | 'log'>) {
    this.#options = options;
    this.#db = db;
    this.#log = log;
  }

  /** The log of this machine; another one after a new generation. */
  get log(): LogWriter {
    return this.#log;
  }

  /**
   * Applies what is new.
   * @throws Unreachable; Refused `failed` if the copy is of another installation, or lacks what this machine has; LogDamage
   *   if it is damaged; DatabaseDamage if detections.db must be made anew from the log, which is complete then
   */
  async turn(): Promise<void> {
    const { place } = this.#options;
    const change = await copiedChange(place);
    // What the log has, and the database does not yet: applying it failed.
    if ((readLogMark(this.#db)?.entry ?? 0) < (this.#log.last?.entry ?? 0))
      applyPending(this.#db, this.#options.folder.log);
    await this.#readEntries();
    await this.#deleteRemoved();
    if (change > this.#change) await this.#readAccess();
    // As on the writer at rest: what was removed stays in no file.
    checkpoint(this.#db);
  }

  /**
   * Becomes the writer.
   * @param by who asked for it
   * @throws as {@link turn}; Refused `failed` if another machine writes all the time
   */
  async promote(by: object): Promise<void> {
    const { place, folder, machine, now } = this.#options;
    for (let tries = 0; tries < PROMOTE_TRIES; tries += 1) {
      await this.turn();
      // An earlier attempt was interrupted once its entry was there.
      if (this.isPromoted) return;
      const generation = this.#generation ?? FIRST_GENERATION;
      const entry = (this.#log.last?.entry ?? 0) + 1;
      const commit: Commit = {
        entry,
        id: randomBytes(8).toString('hex'),
        after: this.#log.last?.id ?? null,
        at: formatMs(now()),
        operation: { kind: PROMOTE, machine, epoch: this.#nextEpoch(), ...by },
        frames: 0,
        checksum: 0,
      };
      const name = partName(generation, entry);
      const content = encodeFrame('commit', `${JSON.stringify({ commit })}\n`);
      const { copy = '' } = (await ownerOf(place)) ?? {};
      noteKept(folder, { copy, to: place.text }, [this.#log.last, commit]);
      if (!(await place.create(name, content))) continue;
      await this.turn();
      if (this.#log.last?.id === commit.id) return;
    }
    throw failed('the writer is alive and faster: stop it first, then run wirewatch promote again.');
  }

  /**
   * Beyond all that were begun, or given to a machine whose end is lost. Null: none, since whatever the old writer showed is
   * in the copy.
   */
  #nextEpoch(): number | null {
    if (waitsForCopy(this.#db)) return null;
    const given = newestPromotion(this.#options.folder)?.epoch ?? 0;
    return Math.max(given, epochTimes(this.#db).length) + 1;
  }

  /** The log says which streams were removed; each machine deletes their rows from its own database. */
  async #deleteRemoved(): Promise<void> {
    const removed = endedStreams(this.#db);
    if (removed.length === this.#removed) return;
    await deleteRows(this.#db, removed, { between: () => nextTurn(), tell() {} });
    this.#removed = removed.length;
  }

  async #readAccess(): Promise<void> {
    const { place, folder } = this.#options;
    const { state, content } = await readCopiedAccess(place);
    const found = findAccess(folder);
    if (found.kind === 'sound') await requireOwn(place, folder, found.state);
    if (found.kind !== 'sound' || found.state.change < state.change) replaceAccess(folder, content);
    this.#change = state.change;
  }

  async #readEntries(): Promise<void> {
    const { place } = this.#options;
    if (this.#generation === null) await this.#takeGeneration();
    for (;;) {
      const generation = this.#generation ?? FIRST_GENERATION;
      const next = (this.#log.last?.entry ?? 0) + 1;
      const names = await place.list(generationFolder(LOG, generation), beforeEntry(generation, next));
      const objects = inOrder(names);
      const newest = objects.at(-1);
      if (newest === undefined) return;
      // First: what stands before it may be of a machine that did not see it.
      if (newest.last === null && (await generationIn(place, newest.name)) !== null) {
        await this.#takeGeneration();
        continue;
      }
      for (const object of objects) await this.#apply(object);
      return;
    }
  }

  /** Goes on in the newest generation; where a snapshot begins it, that takes the place of the log's entries. */
  async #takeGeneration(): Promise<void> {
    const { place, folder, program } = this.#options;
    const { generation, objects } = await findLog(place);
    const isNew = this.#generation !== null && this.#generation !== generation;
    const first = objects[0]?.first ?? 1;
    const own = this.#log.last;
    const isBehind = first > 1 && (own?.entry ?? 0) < first;
    if (!isNew && !isBehind) {
      this.#generation = generation;
      // The next entry may be within a part that begins before it: from here on, parts are read as a whole.
      const begin = objects.findLastIndex((object) => object.first <= (own?.entry ?? 0) + 1);
      for (const object of objects.slice(Math.max(0, begin))) await this.#apply(object);
      return;
    }
    // Segments that begin after it stay: they follow what takes the place of those before them.
    const kept = listSegments(folder.log).find(({ firstEntry }) => !isBehind && firstEntry > first);
    const last = (kept?.firstEntry ?? Number.POSITIVE_INFINITY) - 1;
    if (own !== null && !isBehind && !(await hasEntry(place, objects, own))) throw this.#lacksOwn();
    await draftSegment(place, objects, folder.log, { first, last });
    this.#log.closeSegment();
    replaceLog(folder.log, first);
    this.#log = new LogWriter({ folder: folder.log, program }, findTail(folder.log));
    this.#generation = generation;
    const mark = readLogMark(this.#db);
    if ((mark?.entry ?? 0) < first)
      throw new DatabaseDamage('it is older than the log of the copy, which was compacted');
    applyPending(this.#db, folder.log);
    this.#tell();
  }

  async #apply(object: LogObject): Promise<void> {
    const { place, machine } = this.#options;
    const own = this.#log.last;
    const isOverlap = own !== null && object.first <= own.entry;
    const applier = new LogApplier(this.#db);
    try {
      for await (const { frame, entry, commit } of entriesIn(place, [object], isOverlap ? undefined : own)) {
        if (own !== null && entry <= own.entry) {
          if (commit?.entry === own.entry && commit.id !== own.id) throw this.#lacksOwn();
          continue;
        }
        // Durable in the log before the database has it.
        this.#log.adopt(frame.bytes, commit);
        if (commit === null) {
          applier.apply(linesPart(frame));
          continue;
        }
        this.#log.sync();
        const lines = decodeLines(frame.packed).slice(0, -1);
        applier.apply({ kind: 'commit', lines, commit, end: frame.end, frame: frame.bytes });
        if (commit.operation.kind === PROMOTE) this.isPromoted = commit.operation.machine === machine;
      }
      applier.commit();
    } catch (error) {
      if (error instanceof LogDamage && !isOverlap && /does not follow/.test(error.message))
        throw this.#lacksOwn();
      throw error;
    } finally {
      applier.rollback();
      this.#log.rollback();
    }
    this.#tell();
  }

  /** The writer knows the time of a delivery only with its next entry: until then it is that of applying. */
  #tell(): void {
    const { now, onDelivered } = this.#options;
    const row = this.#db.prepare<[], { first_position: number }>(SELECT_UNSTAMPED).get();
    if (row !== undefined) onDelivered(row.first_position, now());
  }

  #lacksOwn() {
    return failed(
      `${this.#options.place.text} lacks what this machine has: another machine was the writer meanwhile. Make this one a standby of it: stop Wirewatch, and run wirewatch restore ${this.#options.place.text} --replace`,
    );
  }
}

/**
 * The last promotion in a log; null: there is none, or a snapshot has taken its place, whose epochs have its number.
 * @param segmentsMax how far to search
 */
export function newestPromotion(
  { log }: Pick<DataFolder, 'log'>,
  segmentsMax = Number.POSITIVE_INFINITY,
): { readonly machine: unknown; readonly epoch: number | null } | null {
  const search = { before: Number.POSITIVE_INFINITY, limit: 1, segmentsMax };
  const { commits } = newestCommits(log, search, ({ operation }) => operation.kind === PROMOTE);
  const operation = commits[0]?.operation;
  if (operation === undefined) return null;
  const { machine, epoch } = operation;
  return { machine, epoch: typeof epoch === 'number' ? epoch : null };
}

/** The version epoch that must begin after the last promotion in a log; null: none. */
export function epochDue(folder: Pick<DataFolder, 'log'>): number | null {
  const promotion = newestPromotion(folder);
  return promotion === null ? 1 : promotion.epoch;
}

/**
 * Puts the `access.db` of the writer in place of that of a standby, under the connections that read it: every row in one
 * transaction.
 * @param content a database of the same schema
 * @throws SQLite's and the file system's errors, with nothing changed
 */
function replaceAccess(folder: DataFolder, content: Buffer): void {
  const incoming = `${folder.access}-incoming`;
  using db = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
  writeWhole(incoming, content);
  try {
    db.prepare('ATTACH ? AS incoming').run(incoming);
    const tables = db.prepare<[], string>(SELECT_TABLES).pluck().all();
    db.transaction(() => {
      // Rows of one table refer to those of another.
      db.pragma('defer_foreign_keys = ON');
      for (const table of tables) db.exec(`DELETE FROM main.${table}`);
      for (const table of tables) db.exec(`INSERT INTO main.${table} SELECT * FROM incoming.${table}`);
    }).immediate();
    db.exec('DETACH incoming');
  } finally {
    rmSync(incoming, { force: true });
  }
  refreshSpare(db, folder);
}
