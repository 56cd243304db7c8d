/**
 * The appliance's part in the copy of its installation. As the writer it looks each second whether there is something new,
 * writes it, and tries again where the place does not answer; as a standby it follows; or it finds that another machine
 * took over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AccessReader } from './auth/access-reader.ts';
import { type FoundCopy, findAccess } from './auth/spare-copy.ts';
import * as clock from './clock.ts';
import type { Config } from './config/load.ts';
import { openPlace, openTried } from './copy/open-place.ts';
import { createShipper, type Shipper, TakenOver } from './copy/ship.ts';
import { requireHealing, verifyCopy } from './copy/source.ts';
import type { Conditions } from './health/alert-conditions.ts';
import { HELD_UP_INGEST } from './health/alert-texts.ts';
import type { Mark } from './log/format.ts';
import { readScrubRecord } from './log/scrub-findings.ts';
import type { Logger } from './logger.ts';
import { paced } from './pace.ts';
import { clauseOf, Refused, reasonOf, unlessError } from './refused.ts';
import { isDiskFull } from './store/database-errors.ts';
import type { DetectionsReader } from './store/detections-reader.ts';
import type { DataFolder } from './store/folder.ts';
import { readLogMark } from './store/log-mark.ts';
import { copyVerifiedAt, noteCopyVerified, noteRole, readRole, roleOf } from './store/role.ts';
import { formatMs, HOUR_MS, MINUTE_MS, SECOND_MS } from './time.ts';
import { WakeableTimer } from './wakeable-timer.ts';

export interface CopyParts {
  readonly folder: DataFolder;
  readonly access: Pick<AccessReader, 'change'>;
  readonly reader: Pick<DetectionsReader, 'db' | 'end'>;
  readonly conditions: Pick<Conditions, 'set'>;
  /** Called once another machine has taken over. */
  readonly stopIngest: () => void;
}

export type ApplianceCopy = ReturnType<typeof createApplianceCopy>;

const RETRY_MS_MAX = MINUTE_MS;
/** How long something may be missing, or a standby be without the place, before it is an alert. */
const BEHIND_MS_MAX = 5 * MINUTE_MS;
/** How soon it is noticed that another machine took over, where nothing is written. */
const LOOK_EVERY_MS = 5 * SECOND_MS;
const CLOSE_MS = 5 * SECOND_MS;

/**
 * Call `requireRole` first.
 * @param now tests change it, and `open`
 */
export function createApplianceCopy(
  { copy, verify }: Config,
  { folder, access, reader, conditions, stopIngest }: CopyParts,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
  now = clock.now,
  open = () => openTried(copy.to, copy),
) {
  const { to } = copy;
  const timer = new WakeableTimer();
  let role = roleOf(readRole(folder), copy);
  let running: Promise<void> | null = null;
  let isClosed = false;
  /** The entry for which ingest waits. */
  let proposed: { readonly entry: Mark; readonly decided: () => void } | null = null;

  let contactMs: number | null = null;
  let behindSinceMs: number | null = now();
  /** Why the place cannot be written or read now; null: it can. */
  let failure: string | null = null;
  const fullHere = `the disk of ${folder.root} is full`;

  let shipper: Shipper | null = null;
  let copied: Mark | null = null;
  let found: FoundCopy | null = null;
  /** Monotonic. */
  let lookedMs = 0;
  /** The verification of the log after which the copy was read last. */
  let verifiedAt = copyVerifiedAt(folder);
  let isVerifying = false;
  let isDamaged = false;
  let isHealing = false;

  const applied = () => readLogMark(reader.db());

  async function run(): Promise<void> {
    // Writing a whole log may take hours.
    const telling = setInterval(tell, MINUTE_MS).unref();
    for (let waitMs = SECOND_MS; !isClosed; ) {
      timer.begin();
      await bringUpToDate().catch((error) => (error instanceof TakenOver ? takenOver : failed)(error));
      tell();
      waitMs = failure === null ? SECOND_MS : Math.min(2 * waitMs, RETRY_MS_MAX);
      if (!isClosed) await timer.sleep(paced(waitMs));
    }
    clearInterval(telling);
  }

  async function bringUpToDate(): Promise<void> {
    const isSameAccess = found?.kind === 'sound' && found.state.change === access.change();
    const isNew = proposed !== null || !isSameAccess || copied?.id !== applied()?.id;
    if (isNew) behindSinceMs ??= now();
    else if (shipper !== null && performance.now() - lookedMs < LOOK_EVERY_MS) return;
    lookedMs = performance.now();
    const isAnew = isDamaged;
    // What is being written, for the first time or anew, would look damaged.
    if (shipper !== null) void verifyKept(shipper, copied?.entry ?? 0);
    else shipper = createShipper(await open(), folder, { isAnew });
    // Before the end of the log is found.
    if (found === null || !isSameAccess) found = findAccess(folder);
    const end = proposed?.entry ?? applied();
    await shipper.ship(found, end);
    // Beside other work, a verification may have found it meanwhile.
    if (isAnew) isDamaged = false;
    copied = end;
    if (proposed !== null && end !== null && proposed.entry.entry <= end.entry) {
      proposed.decided();
      proposed = null;
    }
    if (failure !== null) log.info({ to }, 'the copy is up to date again');
    answered();
  }

  function answered(): void {
    [failure, contactMs, behindSinceMs] = [null, now(), null];
  }

  function failed(error: unknown): void {
    const reason = isDiskFull(error) ? fullHere : clauseOf(error, to);
    if (failure === null) log.warn({ to, reason }, 'cannot write the copy: it is tried again');
    failure = reason;
    // A place may have come back as another one.
    shipper = null;
    if (error instanceof Refused) behindSinceMs = Math.min(behindSinceMs ?? now(), now() - BEHIND_MS_MAX);
  }

  /** Opens and closes the alerts. */
  function tell(): void {
    const isLate = behindSinceMs !== null && now() - behindSinceMs >= BEHIND_MS_MAX;
    const isWaiting = proposed !== null && (failure !== null || isLate);
    const isFullHere = failure === fullHere;
    const contact =
      contactMs === null ? 'has not answered since the start' : `answered last at ${formatMs(contactMs)}`;
    const detail = `${to}: ${failure ?? 'it is being written'}. It ${contact}`;
    conditions.set('disk full', isWaiting && isFullHere ? failure : null, 'copy');
    conditions.set('copy behind', isLate && !isWaiting ? detail : null);
    const held = isWaiting && !isFullHere ? `${detail}. Ingest waits for it` : null;
    conditions.set('copy behind', held, HELD_UP_INGEST);
  }

  /** Reads all of the copy after each verification of the log, beside what is written: ingest may wait for that. */
  async function verifyKept({ place }: Shipper, written: number): Promise<void> {
    if (verify.every_hours === 0 || isVerifying) return;
    const { at } = readScrubRecord(folder) ?? {};
    if (at === undefined || at === verifiedAt) return;
    [isVerifying, verifiedAt] = [true, at];
    try {
      const { findings, entries } = await verifyCopy(place, () => {}, written);
      // A restart before this, or before a damaged copy is rewritten, has it read again.
      if (findings.length === 0 && entries >= written) return noteCopyVerified(folder, at);
      log.warn({ to, findings, entries, written }, 'the copy is damaged: it is rewritten');
      [isDamaged, shipper] = [true, null];
      timer.wake();
    } catch (error) {
      log.warn({ to, reason: reasonOf(error) }, 'cannot verify the copy');
    } finally {
      isVerifying = false;
    }
  }

  function takenOver({ by }: TakenOver): void {
    isClosed = true;
    role = 'superseded';
    log.error({ by }, 'another machine took over: ingest stops, and clients get 503');
    [failure, proposed, behindSinceMs] = [null, null, null];
    conditions.set('another machine took over', by);
    reader.end('Another machine serves this installation now. Ask the operator for its address.');
    stopIngest();
    try {
      noteRole(folder, { ...readRole(folder), superseded: by });
    } catch (error) {
      const reason = reasonOf(error);
      log.warn({ reason }, 'cannot note that another machine took over: the next start finds it out again');
    }
  }

  /** Null: not known. */
  function entriesBehind(): number | null {
    if (role === 'standby') return failure === null ? 0 : null;
    if (contactMs === null) return null;
    // The database may not be readable now.
    return unlessError(null, () => (applied()?.entry ?? 0) - (copied?.entry ?? 0));
  }

  return {
    /** Resolves once the copy has this entry: never, where another machine took over. */
    decide: (entry: Mark): Promise<void> =>
      new Promise((decided) => {
        proposed = { entry, decided };
        timer.wake();
      }),
    role: () => role,
    /** Null: there is none, or nothing was asked of it yet. */
    state() {
      if (to === '' || (running === null && contactMs === null && failure === null)) return null;
      const behind_since = behindSinceMs === null ? null : formatMs(behindSinceMs);
      const contact_at = contactMs === null ? null : formatMs(contactMs);
      return { to, entries_behind: entriesBehind(), behind_since, contact_at, failure };
    },
    /**
     * Waits until damaged parts of the log can be rebuilt from the copy, all of which is read for that.
     * @param isDamaged whether they still are. @returns whether they can; false: they need not, this appliance ends, or
     *   another call waits
     */
    async whenHealable(isDamaged: () => boolean): Promise<boolean> {
      if (to === '' || isHealing) return false;
      isHealing = true;
      const isWanted = () => !isClosed && isDamaged();
      for (let waitMs = MINUTE_MS; isWanted(); waitMs = Math.min(2 * waitMs, HOUR_MS))
        try {
          await requireHealing(await openPlace(to, copy), folder, role === 'standby');
          break;
        } catch (error) {
          log.warn({ reason: reasonOf(error) }, 'the damaged log cannot be rebuilt from the copy');
          await sleep(paced(waitMs), undefined, { ref: false });
        }
      isHealing = false;
      return isWanted();
    },
    /** Begins to write, if this machine is the writer and has a place. */
    write(): void {
      if (role === 'writer' && to !== '') running ??= run();
    },
    /** A standby read the copy; or why it could not. */
    following(reason: string | null): void {
      if (reason === null && failure !== null) log.info({ to }, 'the copy is read again');
      if (reason !== null && failure === null)
        log.warn({ to, reason }, 'cannot read the copy: it is tried again');
      if (reason === null) answered();
      else [failure, behindSinceMs] = [clauseOf(reason), behindSinceMs ?? contactMs];
      tell();
    },
    promoted(): void {
      // After a start it may be known already, and so may a machine that took over since.
      if (role !== 'standby') return;
      role = 'writer';
      [failure, behindSinceMs] = [null, now()];
      tell();
      log.warn({ to }, 'this machine is the writer now: it was promoted');
      this.write();
    },
    /** Ends with what is being written, or after a few seconds. */
    async close(): Promise<void> {
      isClosed = true;
      timer.wake();
      await Promise.race([running, sleep(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}
