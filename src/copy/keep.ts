/**
 * Keeps the copy of a running appliance up to date: looks each second whether there is something new, writes it, and tries
 * again where the place does not answer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { findAccess } from '../auth/spare-copy.ts';
import type { Mark } from '../log/format.ts';
import { paced } from '../pace.ts';
import { Refused, reasonOf } from '../refused.ts';
import type { CopyState } from '../store/copy-state.ts';
import { isDiskFull } from '../store/database-errors.ts';
import type { DataFolder } from '../store/folder.ts';
import { formatMs, MINUTE_MS, type Now, SECOND_MS } from '../time.ts';
import { WakeableTimer } from '../wakeable-timer.ts';
import { refuseEmptied } from './own-copy.ts';
import type { Place } from './place.ts';
import { Shipper, TakenOver } from './ship.ts';

export interface KeepOptions {
  /** The place as the operator wrote it. */
  readonly to: string;
  /** Opens the place, and tries it. @throws Unreachable; Refused */
  readonly open: () => Promise<Place>;
  readonly folder: DataFolder;
  /** The last entry that detections.db has applied; null: none. @throws if the database cannot be read now */
  readonly applied: () => Mark | null;
  /** The entry for which a transaction waits; null: none does. */
  readonly proposed: () => Mark | null;
  /** Called with the end of the log, once the copy has it. */
  readonly onCopied: (end: Mark) => void;
  /** The number of the last change of access.db. */
  readonly accessChange: () => number;
  /** How often all of the copy is read, and what is damaged written anew; 0: never. */
  readonly verifyEveryMs: number;
  readonly now: Now;
  readonly log: (level: 'info' | 'warn', msg: string, fields: Record<string, unknown>) => void;
  /** Called with the alert "copy behind", and whether ingest waits for the copy; detail null: no alert. */
  readonly onAlert: (detail: string | null, holdsUpIngest: boolean) => void;
  /** Called with the alert "disk full", where ingest waits for the copy because of it; null: no alert. */
  readonly onDiskFull: (detail: string | null) => void;
  /** Called once, when another machine has become the writer: nothing is written any more. */
  readonly onTakenOver: (by: string) => void;
}

export interface KeptCopy {
  state(): CopyState;
  /** Looks at once whether there is something new. */
  wake(): void;
  /** Ends with what is being written, or after a few seconds. */
  close(): Promise<void>;
}

const RETRY_MS_MAX = MINUTE_MS;
/** How long the copy may be behind before it is an alert. */
const BEHIND_MS_MAX = 5 * MINUTE_MS;
const CLOSE_MS = 5 * SECOND_MS;
/** How soon it is noticed that another machine took over, where nothing is written. */
const LOOK_EVERY_MS = 5 * SECOND_MS;

export function keepCopy(options: KeepOptions): KeptCopy {
  const { to, folder, now } = options;
  let shipper: Shipper | null = null;
  let copied: Mark | null = null;
  let change: number | null = null;
  let behindSinceMs: number | null = now();
  let contactMs: number | null = null;
  let failure: string | null = null;
  let lookedMs = Number.NEGATIVE_INFINITY;
  let verifiedMs = performance.now();
  let isDamaged = false;
  const timer = new WakeableTimer();
  let isClosed = false;

  async function bringUpToDate(): Promise<void> {
    const proposed = options.proposed();
    const isNew =
      proposed !== null || change !== options.accessChange() || copied?.id !== options.applied()?.id;
    const isLooked = performance.now() - lookedMs < LOOK_EVERY_MS;
    if (!isNew && failure === null && isLooked) return;
    if (isNew) behindSinceMs ??= now();
    lookedMs = performance.now();
    const isFirst = shipper === null || isDamaged;
    shipper ??= new Shipper(await options.open(), folder);
    // A share that is not mounted must not be filled.
    if (isFirst) await refuseEmptied(shipper.place, folder);
    const isRepair = isDamaged;
    // What is being written, for the first time or anew, would look damaged.
    if (isRepair) shipper.noteDamage();
    else if (contactMs !== null) void verify(shipper);
    // Before the end of the log is found.
    const access = !isFirst && change === options.accessChange() ? null : findAccess(folder);
    const end = proposed ?? options.applied();
    await shipper.ship(access, end);
    // Beside other work, a verification may have found it meanwhile.
    if (isRepair) isDamaged = false;
    copied = end;
    if (end !== null) options.onCopied(end);
    if (access?.kind === 'sound') change = access.state.change;
    contactMs = now();
    behindSinceMs = null;
  }

  /** Beside what is written: ingest may wait for that. */
  async function verify(current: Shipper): Promise<void> {
    if (options.verifyEveryMs === 0 || performance.now() - verifiedMs < options.verifyEveryMs) return;
    verifiedMs = Number.POSITIVE_INFINITY;
    try {
      const found = await current.verify();
      // An object may have gone since another one took its place.
      const again = found.length === 0 ? [] : await current.verify();
      if (!found.some((name) => again.includes(name))) return;
      options.log('warn', 'the copy is damaged: it is written anew', { to, findings: again });
      isDamaged = true;
      lookedMs = Number.NEGATIVE_INFINITY;
      timer.wake();
    } catch (error) {
      options.log('warn', 'cannot verify the copy', { to, reason: reasonOf(error) });
    } finally {
      verifiedMs = performance.now();
    }
  }

  /** @returns whether the place could be written */
  async function turn(): Promise<boolean> {
    let isDiskFullHere = false;
    try {
      await bringUpToDate();
      if (failure !== null) options.log('info', 'the copy is up to date again', { to });
      failure = null;
    } catch (error) {
      if (error instanceof TakenOver) {
        isClosed = true;
        options.onAlert(null, false);
        options.onTakenOver(error.by);
        return false;
      }
      isDiskFullHere = isDiskFull(error);
      const reason = isDiskFullHere
        ? `the disk of ${folder.root} is full`
        : reasonOf(error, to).replace(/\.$/, '');
      if (failure === null) options.log('warn', 'cannot write the copy: it is tried again', { to, reason });
      failure = reason;
      // A place may have come back as another one.
      shipper = null;
      if (error instanceof Refused) behindSinceMs = Math.min(behindSinceMs ?? now(), now() - BEHIND_MS_MAX);
    }
    const isWaiting = options.proposed() !== null && failure !== null;
    const isLate = behindSinceMs !== null && now() - behindSinceMs >= BEHIND_MS_MAX;
    const since =
      contactMs === null
        ? 'It was not written since the start'
        : `It was written last at ${formatMs(contactMs)}`;
    const detail = `${to}: ${failure ?? 'it is being written'}. ${since}`;
    options.onDiskFull(isWaiting && isDiskFullHere ? failure : null);
    if (!isWaiting) options.onAlert(isLate ? detail : null, false);
    else options.onAlert(isDiskFullHere ? null : `${detail}. Ingest waits for it`, true);
    return failure === null;
  }

  async function run(): Promise<void> {
    for (let waitMs = SECOND_MS; !isClosed; ) {
      timer.begin();
      waitMs = (await turn()) ? SECOND_MS : Math.min(2 * waitMs, RETRY_MS_MAX);
      if (!isClosed) await timer.sleep(paced(waitMs));
    }
  }
  const running = run();

  return {
    state() {
      let entries_behind: number | null = null;
      try {
        if (contactMs !== null) entries_behind = (options.applied()?.entry ?? 0) - (copied?.entry ?? 0);
      } catch {
        // The database cannot be read now.
      }
      return {
        to,
        entries_behind,
        behind_since: behindSinceMs === null ? null : formatMs(behindSinceMs),
        contact_at: contactMs === null ? null : formatMs(contactMs),
        failure,
      };
    },
    wake: () => timer.wake(),
    async close() {
      isClosed = true;
      timer.wake();
      await Promise.race([running, sleep(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}
