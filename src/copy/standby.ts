/**
 * A standby: what the ingest thread does while its machine is one, and before it ingests after a promotion. It reads what is
 * new in the copy, appends it to the log of this machine, and applies it to the databases, which serve reads meanwhile. A
 * promotion is an entry of the log like any other: whoever creates it is the writer.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { findAccess, refreshSpare } from '../auth/spare-copy.ts';
import { now } from '../clock.ts';
import { streamWriter } from '../ingest/apply/stream-writer.ts';
import type { CopySettings } from '../ingest/threads/ingest-messages.ts';
import type { Standby, StandbyParts } from '../ingest/threads/ingest-thread.ts';
import { waitForRoom } from '../ingest/threads/retry-pauses.ts';
import { applyAfter } from '../log/apply-log.ts';
import { encodeFrame } from '../log/frame.ts';
import { commitsBackwards } from '../log/log-reader.ts';
import { commitAfter, logWriter } from '../log/log-writer.ts';
import type { Recovered } from '../log/recover.ts';
import { listSegments } from '../log/segment.ts';
import { findTail } from '../log/torn-end.ts';
import { epochTimes, monthBeforeEnd } from '../log/version-epoch.ts';
import { failed, reasonOf, unlessError } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { checkpoint, closeDetections, openDetections, rewrite } from '../store/checkpoint.ts';
import { type Database, openContent, openDatabase } from '../store/database.ts';
import { DatabaseBehind, isBehind, isDamage, isWriteLost } from '../store/database-errors.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import { LogDamage } from '../store/log-errors.ts';
import { readLogMark, waitsForCopy } from '../store/log-mark.ts';
import { keptCopies, noteKept, noteRole, PROMOTE, readRole, roleOf } from '../store/role.ts';
import { formatMs, MINUTE_MS, type Now, SECOND_MS } from '../time.ts';
import { entriesIn, FIRST_GENERATION, findLog, lacksOwn, objectsFrom, partName } from './copy-contents.ts';
import { openPlace } from './open-place.ts';
import { copiedChange, ownerOf, readCopiedAccess, requireOwn } from './own-copy.ts';
import type { Place } from './place.ts';
import { TakenOver } from './ship.ts';
import { hasEntry, requireNewest, takeLog } from './source.ts';

const RETRY_MS_MAX = MINUTE_MS;
const SKIP_CHANGES = 'UPDATE change SET number = max(number + 1000, 1000 * ?)';
/** How often another machine may be faster before a promotion gives up. */
const PROMOTE_TRIES = 5;

/** A promotion that was asked for. */
type Asked = ReturnType<typeof Promise.withResolvers<void>> & { readonly by: object };

/** @returns what `runIngester` needs to follow and to be promoted */
export function createStandby(): Standby {
  const asked: Asked[] = [];
  /** Null: this machine does not follow the copy now. */
  let wake: (() => void) | null = null;
  return {
    async prepare(parts) {
      const { copy, data, mode } = parts.settings;
      const folder = dataFolder(data);
      let { recovered } = parts;
      if (mode === 'alone') return recovered;
      if (copy?.standby && !readRole(folder).promoted) {
        wake = () => parts.timer.wake();
        recovered = { ...recovered, log: await follow(copy, folder, asked, parts) };
        wake = null;
        // Asked for meanwhile: it is the writer already.
        for (const { resolve } of asked.splice(0)) resolve();
      }
      recovered = await beginEpoch(recovered, folder, (error) => waitForRoom(error, parts));
      parts.setCondition('disk full', null);
      return recovered;
    },
    async heal(data, copy) {
      const folder = dataFolder(data);
      const note = readRole(folder);
      const isStandby = roleOf(note, copy) === 'standby';
      const copied = await requireNewest(await openPlace(copy.to, copy), folder, isStandby).catch((error) => {
        // The log may stay damaged: then nothing else finds it out. On a full disk, the next start does it again.
        if (error instanceof TakenOver)
          unlessError(undefined, () => noteRole(folder, { ...note, superseded: error.by }));
        throw error;
      });
      await takeLog(copied, folder.log);
    },
    async promote(by) {
      // The operation has asked whether this machine is a standby.
      if (wake === null)
        throw failed('detections.db is still being brought up to date. Try again when this standby follows.');
      const promotion = { ...Promise.withResolvers<void>(), by };
      asked.push(promotion);
      wake();
      await promotion.promise;
    },
  };
}

/** @param asked promotions, which are tried in turn. @returns the log, once this machine was promoted. @throws Stopping */
async function follow(copy: CopySettings, folder: DataFolder, asked: Asked[], parts: StandbyParts) {
  const { send, timer, stopped } = parts;
  const onDelivered = (first_position: number, delivered_at: number) =>
    send('delivered', { first_position, delivered_at });
  const { db } = parts.recovered;
  let { log } = parts.recovered;
  let follower: Follower | null = null;
  for (let waitMs = SECOND_MS; !readRole(folder).promoted; ) {
    stopped.throwIfAborted();
    timer.begin();
    const promotion = asked.shift();
    let failure: string | null = null;
    try {
      // After a failure, the place may come back as another one.
      follower ??= createFollower(await openPlace(copy.to, copy), folder, { db, log }, now, onDelivered);
      await (promotion === undefined ? follower.turn() : follower.promote(promotion.by));
      promotion?.resolve();
      waitMs = SECOND_MS;
    } catch (error) {
      promotion?.reject(error);
      // It is a matter of this machine: the thread begins again, and recovers. After a lost write, only a start knows what the
      // log has.
      if (isBehind(error) || isDamage(error) || isWriteLost(error)) throw error;
      [log, follower] = [follower?.log() ?? log, null];
      waitMs = Math.min(2 * waitMs, RETRY_MS_MAX);
      failure = error instanceof LogDamage ? `the copy is damaged: ${reasonOf(error)}` : reasonOf(error);
    }
    // Whoever asked for a promotion knows why it failed.
    if (promotion === undefined) send('following', failure);
    if (!readRole(folder).promoted) await timer.sleep(waitMs);
  }
  return follower?.log() ?? log;
}

/**
 * What the old writer gave out behind the end of the copy is not known: versions and positions go beyond it.
 * @param onError called with an error: it is tried again once that returns
 */
export async function beginEpoch(
  recovered: Recovered,
  folder: DataFolder,
  onError: (error: unknown) => Promise<void>,
): Promise<Recovered> {
  const { epoch_due, ...note } = readRole(folder);
  if (epoch_due === null) return recovered;
  const { db, log } = recovered;
  const writer = streamWriter({ db, log, folder: folder.log, now, onDelivered() {} });
  const reason = `this machine took over from another writer, whose log ended at ${formatMs(now())} or later`;
  const parted = monthBeforeEnd(db);
  // The place gave this number to one machine: another one that was promoted, and whose end is lost, had another.
  const epoch = { reason, orphans: 'to read', position: 0, number: epoch_due - 1, parted } as const;
  for (;;)
    try {
      writer.applyPending();
      if (epochTimes(db).length < epoch_due)
        writer.commit(writer.begin(new Set(), epoch), { kind: 'epoch', reason });
      noteRole(folder, { ...note, epoch_due: null });
      break;
    } catch (error) {
      await onError(error);
    }
  // A connection notes what one writer changes.
  closeDetections(db);
  return { ...recovered, db: openDetections(folder.detections) };
}

export type Follower = ReturnType<typeof createFollower>;

/** Follows one place; after an error, another one begins. @param onDelivered called for rows that became visible */
export function createFollower(
  place: Place,
  folder: DataFolder,
  { db, log }: Pick<Recovered, 'db' | 'log'>,
  now: Now,
  onDelivered: (firstPosition: number, deliveredAtMs: number) => void,
) {
  /** Null: it must be found. */
  let generation: string | null = null;
  /** The change of access.db that was read last. */
  let knownChange = 0;

  /**
   * Applies what is new.
   * @throws Unreachable; Refused `failed` if the copy is of another installation, or lacks what this machine has; LogDamage
   *   if it is damaged; DatabaseBehind if detections.db must be made anew from the log, which is complete then
   */
  async function turn(): Promise<void> {
    // What comes behind the promotion of this machine is of another one, which took over.
    if (readRole(folder).promoted) return;
    const change = await copiedChange(place);
    // A share that is not mounted looks like a copy of which nothing is new.
    if (change === 0) throw failed(`${place.text} contains no copy. If it is a share or a disk, mount it.`);
    // An earlier turn may have failed before it had applied all.
    await applyRest();
    await readEntries();
    // Not a newer one: what it says is in a log that was not read yet.
    if (change > knownChange) await readAccess(change);
    // As on the writer at rest: what was removed stays in no file.
    checkpoint(db);
    notePromotion();
  }

  /**
   * Also one that a crash left without a note: its entry is the last of the log then, and what was revoked before it has been
   * read by now. Its id was noted before it was written: a clone of this data folder, which has the same machine's id, does
   * not take it for its own.
   */
  function notePromotion(): void {
    const note = readRole(folder);
    const { entry = 0, id = '', operation } = log.last ?? {};
    if (operation?.kind !== PROMOTE || operation.machine !== note.machine || note.promoted) return;
    if (![...keptCopies(folder).values()].some(({ ids }) => ids.includes(id))) return;
    const epoch_due = typeof operation.epoch === 'number' ? operation.epoch : null;
    // What the writer before it still adds to the copy, until its next write of the log, has lower numbers: as it may have been
    // promoted just before, beyond the same changes, by the number of this entry.
    renewSpare(folder, (db) => db.prepare(SKIP_CHANGES).run(entry));
    noteRole(folder, { ...note, promoted: true, epoch_due });
  }

  /** Becomes the writer. @param by who asked @throws as {@link turn}; Refused `failed` if another machine always writes */
  async function promote(by: object): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      await turn();
      const { machine, promoted } = readRole(folder);
      // By the entry of this attempt, or of an earlier one that was interrupted.
      if (promoted) return;
      if (tries === PROMOTE_TRIES)
        throw failed('the writer is alive and faster: stop it first, then run wirewatch promote again.');
      const operation = { kind: PROMOTE, machine, epoch: nextEpoch(), ...by };
      const commit = commitAfter(log.last, operation, now());
      const content = encodeFrame('commit', `${JSON.stringify({ commit })}\n`);
      const { copy = '' } = (await ownerOf(place)) ?? {};
      noteKept(folder, { copy, to: place.text }, [log.last, commit]);
      await place.create(partName(generation ?? FIRST_GENERATION, commit.entry), content);
    }
  }

  /** Beyond all begun ones, or given to a machine whose end is lost; null: all that the old writer showed is in the copy. */
  function nextEpoch(): number | null {
    if (waitsForCopy(db)) return null;
    const commits = commitsBackwards(folder.log);
    const given = commits.find(({ operation }) => operation.kind === PROMOTE)?.operation.epoch;
    return Math.max(Number(given ?? 0), epochTimes(db).length) + 1;
  }

  async function readAccess(change: number): Promise<void> {
    const { state, content } = await readCopiedAccess(place, change);
    const found = findAccess(folder);
    if (found.kind === 'sound') await requireOwn(place, folder, found.state.installation);
    // Of equal ones, too: what a command changed here by mistake must not hide what the writer changed.
    if (found.kind !== 'sound' || (found.state.change <= state.change && !found.content.equals(content))) {
      using incoming = openContent(content);
      // Under the connections that read it, in one transaction.
      await incoming.backup(folder.access);
      renewSpare(folder);
    }
    knownChange = state.change;
  }

  async function readEntries(): Promise<void> {
    const known = generation;
    const end = log.last;
    const own = end?.entry ?? 0;
    if (known !== null && (await objectsFrom(place, known, own + 1)).length === 0) return;
    const copied = await findLog(place, known ?? FIRST_GENERATION);
    const first = copied.objects[0]?.first ?? 1;
    const isBehind = first > 1 && own < first;
    const isOther = known !== copied.generation;
    // An earlier writer may have more than it wrote there.
    if (isOther && end !== null && !isBehind && !(await hasEntry(copied, end))) throw lacksOwn(place);
    const [begin] = listSegments(folder.log);
    // The log was compacted.
    if (isBehind || (isOther && begin !== undefined && begin.firstEntry < first)) {
      log.close();
      // A removal is one reason. Without the room for it, what it leaves stays until the next compaction.
      await takeLog(copied, folder.log, () => rewrite(db));
      log = logWriter({ folder: folder.log }, findTail(folder.log));
      if ((readLogMark(db)?.entry ?? 0) < first)
        throw new DatabaseBehind('detections.db is older than the log of the copy, which was compacted');
      await applyRest();
    }
    generation = copied.generation;
    try {
      for await (const part of entriesIn(copied, log.last)) log.adopt(part);
    } finally {
      log.rollback();
    }
    await applyRest();
    // The writer knows the time of a delivery only with its next entry: until then it is that of applying.
    const sql = 'SELECT first_position FROM delivery WHERE delivered_at IS NULL';
    const position = db.prepare<[], number>(sql).pluck().get();
    if (position !== undefined) onDelivered(position, now());
  }

  /** Applies what the log has, and the database does not yet. */
  async function applyRest(): Promise<void> {
    if ((readLogMark(db)?.entry ?? 0) >= (log.last?.entry ?? 0)) return;
    // Durable in the log before the database has it.
    log.sync();
    await applyAfter(db, { folder, onProgress() {}, between: () => nextTurn() });
  }

  return {
    /** That of this machine; another one after a new generation. */
    log: () => log,
    turn,
    promote,
  };
}

/** Changes access.db, and its spare copy. @throws SQLite's and the file system's errors */
function renewSpare(folder: DataFolder, change: (db: Database) => void = () => {}): void {
  using db = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
  change(db);
  refreshSpare(db, folder);
}
