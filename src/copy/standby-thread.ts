/** What the ingest thread does while its machine is a standby, and before it ingests after a promotion. */
import { now } from '../clock.ts';
import { StreamWriter } from '../ingest/apply/stream-writer.ts';
import type { Standby, StandbyParts } from '../ingest/threads/ingest-thread.ts';
import type { Recovered } from '../log/recover.ts';
import { monthBeforeEnd } from '../log/version-epoch.ts';
import { failed, reasonOf } from '../refused.ts';
import { closeDetections, openDetections } from '../store/checkpoint.ts';
import type { CopyState } from '../store/copy-state.ts';
import { isDamage } from '../store/database-errors.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import { isLogError } from '../store/log-errors.ts';
import { noteRole, readRole } from '../store/role.ts';
import { formatMs, MINUTE_MS, SECOND_MS } from '../time.ts';
import { epochDue, Follower, newestPromotion } from './follow.ts';
import { openPlace } from './open-place.ts';
import { healLog } from './source.ts';

const RETRY_MS_MAX = MINUTE_MS;
/** Where a promotion may be, that a crash left without a note. */
const SEGMENTS_SEARCHED = 2;

/** @returns what `runIngester` needs to follow and to be promoted */
export function createStandby(): Standby {
  let following: Following | null = null;
  return {
    async prepare(parts) {
      const { settings } = parts;
      const folder = dataFolder(settings.data);
      if (settings.copy === null || settings.mode === 'alone') return parts.recovered;
      let { recovered } = parts;
      if (settings.copy.standby && !readRole(folder).promoted) {
        following = new Following(parts, folder);
        recovered = await following.run();
        following = null;
      }
      return beginEpoch(recovered, folder);
    },
    async heal(data, copy) {
      return healLog(await openPlace(copy.to, copy), dataFolder(data));
    },
    async promote(by) {
      if (following === null) throw failed('this machine is the writer already.');
      await following.promote(by);
    },
  };
}

/** What the old writer gave out behind the end of the copy is not known: versions and positions go beyond it. */
export function beginEpoch(recovered: Recovered, folder: DataFolder): Recovered {
  const note = readRole(folder);
  if (note.epoch_due === null) return recovered;
  const { db, log } = recovered;
  const writer = new StreamWriter({ db, log, folder: folder.log, now, onDelivered() {} });
  const reason = `this machine took over from another writer, whose log ended at ${formatMs(now())} or later`;
  const parted = monthBeforeEnd(db);
  // The place gave this number to one machine: another one that was promoted, and whose end is lost, had another.
  const number = note.epoch_due - 1;
  const epoch = { reason, orphans: 'to read', position: 0, number, parted } as const;
  writer.commit(writer.begin(new Set(), epoch), { kind: 'epoch', reason });
  noteRole(folder, { ...note, epoch_due: null });
  // A connection notes what one writer changes.
  closeDetections(db);
  return { ...recovered, db: openDetections(folder.detections) };
}

class Following {
  readonly #parts: StandbyParts;
  readonly #folder: DataFolder;
  #follower: Follower | null = null;
  #recovered: Recovered;
  #contactMs: number | null = null;
  /** A promotion, and what is being read, wait for each other. */
  #turns: Promise<unknown> = Promise.resolve();

  constructor(parts: StandbyParts, folder: DataFolder) {
    this.#parts = parts;
    this.#folder = folder;
    this.#recovered = parts.recovered;
  }

  /** @returns once this machine was promoted. @throws Stopping */
  async run(): Promise<Recovered> {
    const { check, send } = this.#parts;
    if (isPromotedIn(this.#folder)) this.#notePromotion();
    for (let waitMs = SECOND_MS; !readRole(this.#folder).promoted; ) {
      check();
      try {
        await this.#alone((follower) => follower.turn());
        this.#contactMs = now();
        waitMs = SECOND_MS;
        send({ kind: 'following', state: this.#state(null) });
      } catch (error) {
        // It is damage of this machine: the thread begins again, and recovers.
        if (isDamage(error)) throw error;
        // A place may come back as another one.
        this.#follower = null;
        waitMs = Math.min(2 * waitMs, RETRY_MS_MAX);
        const said = isLogError(error) ? `the copy is damaged: ${reasonOf(error)}` : reasonOf(error);
        send({ kind: 'following', state: this.#state(said.replace(/\.$/, '')) });
      }
      await this.#sleep(waitMs);
    }
    return this.#recovered;
  }

  async promote(by: object): Promise<void> {
    await this.#alone((follower) => follower.promote(by));
    this.#parts.timer.wake();
  }

  async #sleep(ms: number): Promise<void> {
    const { timer } = this.#parts;
    timer.begin();
    if (!readRole(this.#folder).promoted) await timer.sleep(ms);
  }

  #alone(work: (follower: Follower) => Promise<void>): Promise<void> {
    const next = this.#turns.then(async () => {
      const follower = await this.#open();
      try {
        await work(follower);
      } finally {
        this.#recovered = { ...this.#recovered, log: follower.log };
        if (follower.isPromoted) this.#notePromotion();
      }
    });
    this.#turns = next.catch(() => {});
    return next;
  }

  async #open(): Promise<Follower> {
    const { settings, send } = this.#parts;
    const { copy, program } = settings;
    if (copy === null) throw new Error('there is no copy to follow');
    this.#follower ??= new Follower(
      {
        place: await openPlace(copy.to, copy),
        folder: this.#folder,
        program,
        now,
        machine: copy.machine,
        onDelivered: (first_position, delivered_at) =>
          send({ kind: 'delivered', first_position, delivered_at }),
      },
      this.#recovered,
    );
    return this.#follower;
  }

  #notePromotion(): void {
    const note = readRole(this.#folder);
    if (note.promoted) return;
    noteRole(this.#folder, { ...note, promoted: true, epoch_due: epochDue(this.#folder) });
  }

  #state(failure: string | null): CopyState {
    const to = this.#parts.settings.copy?.to ?? '';
    const at = this.#contactMs === null ? null : formatMs(this.#contactMs);
    return {
      to,
      entries_behind: failure === null ? 0 : null,
      behind_since: failure === null ? null : at,
      contact_at: at,
      failure,
    };
  }
}

/** Whether a crash came between the promotion of this machine and its note. */
function isPromotedIn(folder: DataFolder): boolean {
  return newestPromotion(folder, SEGMENTS_SEARCHED)?.machine === readRole(folder).machine;
}
