/** What the ingest thread does while its machine is a standby, and before it ingests after a promotion. */
import { now } from '../clock.ts';
import { streamWriter } from '../ingest/apply/stream-writer.ts';
import type { CopySettings } from '../ingest/threads/ingest-messages.ts';
import type { Standby, StandbyParts } from '../ingest/threads/ingest-thread.ts';
import { waitForRoom } from '../ingest/threads/retry-pauses.ts';
import type { Recovered } from '../log/recover.ts';
import { epochTimes, monthBeforeEnd } from '../log/version-epoch.ts';
import { failed, reasonOf, unlessError } from '../refused.ts';
import { closeDetections, openDetections } from '../store/checkpoint.ts';
import { isBehind, isDamage, isWriteLost } from '../store/database-errors.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import { LogDamage } from '../store/log-errors.ts';
import { noteRole, readRole, roleOf } from '../store/role.ts';
import { formatMs, MINUTE_MS, SECOND_MS } from '../time.ts';
import { Follower } from './follow.ts';
import { openPlace } from './open-place.ts';
import { TakenOver } from './ship.ts';
import { requireNewest, takeLog } from './source.ts';

const RETRY_MS_MAX = MINUTE_MS;

/** A promotion that was asked for. */
type Asked = ReturnType<typeof Promise.withResolvers<void>> & { readonly by: object };

/** @returns what `runIngester` needs to follow and to be promoted */
export function createStandby(): Standby {
  /** Null: this machine does not follow the copy now. */
  let ask: ((by: object) => Promise<void>) | null = null;
  return {
    async prepare(parts) {
      const { copy, data, mode } = parts.settings;
      const folder = dataFolder(data);
      let { recovered } = parts;
      if (mode === 'alone') return recovered;
      if (copy?.standby && !readRole(folder).promoted) {
        const asked: Asked[] = [];
        ask = (by) => {
          const promotion = { ...Promise.withResolvers<void>(), by };
          asked.push(promotion);
          parts.timer.wake();
          return promotion.promise;
        };
        recovered = { ...recovered, log: await follow(copy, folder, asked, parts) };
        ask = null;
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
      if (ask === null)
        throw failed('detections.db is still being brought up to date. Try again when this standby follows.');
      await ask(by);
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
      follower ??= new Follower(
        { place: await openPlace(copy.to, copy), folder, now, onDelivered },
        { db, log },
      );
      await (promotion === undefined ? follower.turn() : follower.promote(promotion.by));
      promotion?.resolve();
      waitMs = SECOND_MS;
    } catch (error) {
      promotion?.reject(error);
      // It is a matter of this machine: the thread begins again, and recovers. After a lost write, only a start knows what the
      // log has.
      if (isBehind(error) || isDamage(error) || isWriteLost(error)) throw error;
      [log, follower] = [follower?.log ?? log, null];
      waitMs = Math.min(2 * waitMs, RETRY_MS_MAX);
      failure = error instanceof LogDamage ? `the copy is damaged: ${reasonOf(error)}` : reasonOf(error);
    }
    // Whoever asked for a promotion knows why it failed.
    if (promotion === undefined) send('following', failure);
    if (!readRole(folder).promoted) await timer.sleep(waitMs);
  }
  return follower?.log ?? log;
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
  for (let isNoted = false; !isNoted; )
    try {
      writer.applyPending();
      if (epochTimes(db).length < epoch_due)
        writer.commit(writer.begin(new Set(), epoch), { kind: 'epoch', reason });
      noteRole(folder, { ...note, epoch_due: null });
      isNoted = true;
    } catch (error) {
      await onError(error);
    }
  // A connection notes what one writer changes.
  closeDetections(db);
  return { ...recovered, db: openDetections(folder.detections) };
}
