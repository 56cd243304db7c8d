/**
 * A standby: reads what is new in the copy, appends it to the log of this machine, and applies it to the databases, which
 * serve reads meanwhile. A promotion is an entry of the log like any other: whoever creates it is the writer.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { findAccess, refreshSpare } from '../auth/spare-copy.ts';
import { applyAfter, checkpointIfLarge, logApplier } from '../log/apply-log.ts';
import type { Commit } from '../log/format.ts';
import { encodeFrame } from '../log/frame.ts';
import { commitsBackwards, findTail } from '../log/log-reader.ts';
import { commitAfter, type LogWriter, logWriter } from '../log/log-writer.ts';
import type { Recovered } from '../log/recover.ts';
import { listSegments } from '../log/segment.ts';
import { epochTimes } from '../log/version-epoch.ts';
import { failed } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { checkpoint, rewrite } from '../store/checkpoint.ts';
import { openContent, openDatabase } from '../store/database.ts';
import { DatabaseBehind } from '../store/database-errors.ts';
import type { DataFolder } from '../store/folder.ts';
import { readLogMark, waitsForCopy } from '../store/log-mark.ts';
import { keptCopies, noteKept, noteRole, PROMOTE, readRole } from '../store/role.ts';
import type { Now } from '../time.ts';
import {
  entriesIn,
  FIRST_GENERATION,
  findLog,
  type LogObject,
  lacksOwn,
  objectsFrom,
  partName,
} from './copy-contents.ts';
import { copiedChange, ownerOf, readCopiedAccess, requireOwn } from './own-copy.ts';
import type { Place } from './place.ts';
import { hasEntry, takeLog } from './source.ts';

const SELECT_UNSTAMPED = 'SELECT first_position FROM delivery WHERE delivered_at IS NULL';
const SKIP_CHANGES = 'UPDATE change SET number = max(number + 1000, 1000 * ?)';
/** How often another machine may be faster before a promotion gives up. */
const PROMOTE_TRIES = 5;

export interface FollowOptions {
  /** Opens the copy: once, and again after each failure, since a place may come back as another one. */
  readonly open: () => Promise<Place>;
  readonly folder: DataFolder;
  readonly now: Now;
  /** Called for rows that became visible. */
  readonly onDelivered: (firstPosition: number, deliveredAtMs: number) => void;
}

export class Follower {
  readonly #options: FollowOptions;
  readonly #db: Recovered['db'];
  #log: LogWriter;
  #opened: Place | null = null;
  /** Null: it must be found. */
  #generation: string | null = null;
  /** The change of access.db that was read last. */
  #change = 0;
  /** The last entry of the log. */
  #newest: Commit | null;
  /** A promotion, and what is being read, wait for each other. */
  #turns: Promise<void> = Promise.resolve();

  constructor(options: FollowOptions, { db, log }: Pick<Recovered, 'db' | 'log'>) {
    this.#options = options;
    this.#db = db;
    this.#log = log;
    this.#newest = commitsBackwards(options.folder.log).next().value ?? null;
  }

  /** The log of this machine; another one after a new generation. */
  get log(): LogWriter {
    return this.#log;
  }

  /** Whether this machine was promoted: that is in its data folder, too. */
  get isPromoted(): boolean {
    return readRole(this.#options.folder).promoted;
  }

  /**
   * Applies what is new.
   * @throws Unreachable; Refused `failed` if the copy is of another installation, or lacks what this machine has; LogDamage
   *   if it is damaged; DatabaseBehind if detections.db must be made anew from the log, which is complete then
   */
  turn(): Promise<void> {
    return this.#alone((place) => this.#turn(place));
  }

  /**
   * Becomes the writer.
   * @param by who asked for it
   * @throws as {@link turn}; Refused `failed` if another machine writes all the time
   */
  promote(by: object): Promise<void> {
    return this.#alone((place) => this.#promote(place, by));
  }

  #alone(work: (place: Place) => Promise<void>): Promise<void> {
    const next = this.#turns.then(async () => {
      try {
        this.#opened ??= await this.#options.open();
        await work(this.#opened);
      } catch (error) {
        [this.#opened, this.#generation, this.#change] = [null, null, 0];
        throw error;
      }
    });
    this.#turns = next.catch(() => {});
    return next;
  }

  async #turn(place: Place): Promise<void> {
    // What comes behind the promotion of this machine is of another one, which took over.
    if (this.isPromoted) return;
    const change = await copiedChange(place);
    // A share that is not mounted looks like a copy of which nothing is new.
    if (change === 0) throw failed(`${place.text} contains no copy. If it is a share or a disk, mount it.`);
    // An earlier turn may have failed before it had applied all.
    await this.#applyRest();
    await this.#readEntries(place);
    // Not a newer one: what it says is in a log that was not read yet.
    if (change > this.#change) await this.#readAccess(place, change);
    // As on the writer at rest: what was removed stays in no file.
    checkpoint(this.#db);
    this.#notePromotion();
  }

  /**
   * Also one that a crash left without a note: its entry is the last of the log then, and what was revoked before it has been
   * read by now. Its id was noted before it was written: a clone of this data folder, which has the same machine's id, does
   * not take it for its own.
   */
  #notePromotion(): void {
    const { folder } = this.#options;
    const note = readRole(folder);
    const { entry = 0, id = '', operation } = this.#newest ?? {};
    if (operation?.kind !== PROMOTE || operation.machine !== note.machine || note.promoted) return;
    if (![...keptCopies(folder).values()].some(({ ids }) => ids.includes(id))) return;
    const epoch_due = typeof operation.epoch === 'number' ? operation.epoch : null;
    skipChanges(folder, entry);
    noteRole(folder, { ...note, promoted: true, epoch_due });
  }

  async #promote(place: Place, by: object): Promise<void> {
    const { folder, now } = this.#options;
    const { machine } = readRole(folder);
    for (let tries = 0; ; tries += 1) {
      await this.#turn(place);
      // By the entry of this attempt, or of an earlier one that was interrupted.
      if (this.isPromoted) return;
      if (tries === PROMOTE_TRIES)
        throw failed('the writer is alive and faster: stop it first, then run wirewatch promote again.');
      const operation = { kind: PROMOTE, machine, epoch: this.#nextEpoch(), ...by };
      const commit = commitAfter(this.#log.last, operation, now());
      const content = encodeFrame('commit', `${JSON.stringify({ commit })}\n`);
      const { copy = '' } = (await ownerOf(place)) ?? {};
      noteKept(folder, { copy, to: place.text }, [this.#log.last, commit]);
      await place.create(partName(this.#generation ?? FIRST_GENERATION, commit.entry), content);
    }
  }

  /**
   * Beyond all that were begun, or given to a machine whose end is lost. Null: none, since whatever the old writer showed is
   * in the copy.
   */
  #nextEpoch(): number | null {
    if (waitsForCopy(this.#db)) return null;
    const commits = commitsBackwards(this.#options.folder.log);
    const given = commits.find(({ operation }) => operation.kind === PROMOTE)?.operation.epoch;
    return Math.max(Number(given ?? 0), epochTimes(this.#db).length) + 1;
  }

  async #readAccess(place: Place, change: number): Promise<void> {
    const { folder } = this.#options;
    const { state, content } = await readCopiedAccess(place, change);
    const found = findAccess(folder);
    if (found.kind === 'sound') await requireOwn(place, folder, found.state);
    // Of equal ones, too: what a command changed here by mistake must not hide what the writer changed.
    if (found.kind !== 'sound' || (found.state.change <= state.change && !found.content.equals(content)))
      await replaceAccess(folder, content);
    this.#change = state.change;
  }

  async #readEntries(place: Place): Promise<void> {
    const known = this.#generation;
    const end = this.#log.last;
    const own = end?.entry ?? 0;
    if (known !== null && (await objectsFrom(place, known, own + 1)).length === 0) return;
    const { generation, objects } = await findLog(place, known ?? FIRST_GENERATION);
    const first = objects[0]?.first ?? 1;
    const isBehind = first > 1 && own < first;
    const isOther = known !== generation;
    // An earlier writer may have more than it wrote there.
    if (isOther && end !== null && !isBehind && !(await hasEntry(place, objects, end))) throw lacksOwn(place);
    const [begin] = listSegments(this.#options.folder.log);
    // The log was compacted.
    if (isBehind || (isOther && begin !== undefined && begin.firstEntry < first))
      await this.#takeLog(place, objects);
    this.#generation = generation;
    await this.#apply(place, objects);
  }

  async #takeLog(place: Place, objects: readonly LogObject[]): Promise<void> {
    const { folder } = this.#options;
    this.#log.close();
    await takeLog(place, objects, folder.log, () => {
      // A removal is one reason. Without the room for it, what it leaves stays until the next compaction.
      rewrite(this.#db);
    });
    const tail = findTail(folder.log);
    this.#log = logWriter({ folder: folder.log }, tail);
    this.#newest = tail.last;
    if ((readLogMark(this.#db)?.entry ?? 0) < (objects[0]?.first ?? 1))
      throw new DatabaseBehind('detections.db is older than the log of the copy, which was compacted');
    await this.#applyRest();
  }

  /** Applies what the log has, and the database does not yet. */
  async #applyRest(): Promise<void> {
    if ((readLogMark(this.#db)?.entry ?? 0) >= (this.#log.last?.entry ?? 0)) return;
    this.#log.sync();
    await applyAfter(this.#db, { ...this.#options, onProgress() {}, between: () => nextTurn() });
  }

  async #apply(place: Place, objects: readonly LogObject[]): Promise<void> {
    const { now, onDelivered } = this.#options;
    const applier = logApplier(this.#db);
    try {
      for await (const part of entriesIn(place, objects, this.#log.last)) {
        // Durable in the log before the database has it.
        this.#log.adopt(part);
        if (part.commit !== null) {
          this.#log.sync();
          this.#newest = part.commit;
        }
        applier.apply(part);
        checkpointIfLarge(this.#db);
      }
      applier.commit();
    } finally {
      applier.rollback();
      this.#log.rollback();
    }
    // The writer knows the time of a delivery only with its next entry: until then it is that of applying.
    const row = this.#db.prepare<[], { first_position: number }>(SELECT_UNSTAMPED).get();
    if (row !== undefined) onDelivered(row.first_position, now());
  }
}

/**
 * Puts the `access.db` of the writer in place of that of a standby, under the connections that read it, in one transaction.
 * @throws SQLite's and the file system's errors, with nothing changed
 */
async function replaceAccess(folder: DataFolder, content: Buffer): Promise<void> {
  using incoming = openContent(content);
  await incoming.backup(folder.access);
  using db = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
  refreshSpare(db, folder);
}

/**
 * Numbers what this machine changes from now on beyond what the writer before it may still add to the copy: it finds out that
 * it was replaced only with its next write of the log.
 * @param promotion its entry in the log: that writer may have been promoted just before, beyond the same changes
 * @throws SQLite's and the file system's errors
 */
function skipChanges(folder: DataFolder, promotion: number): void {
  using db = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
  db.prepare(SKIP_CHANGES).run(promotion);
  refreshSpare(db, folder);
}
