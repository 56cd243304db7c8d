/**
 * What is done when a cursor proves that the end of the log is lost, as where an older data folder was put back: a version
 * epoch begins, and what was read since the histories parted is announced again, raised, behind everything that a client
 * can have. So clients with cursors and versions of the lost part neither skip nor refuse it.
 */
import { grouped } from '../../counted.ts';
import { lostEndBehind } from '../../history/version-epoch.ts';
import { formatMs } from '../../time.ts';
import type { Workshop } from '../threads/workshop.ts';

export class LostEnd {
  readonly #workshop: Workshop;
  readonly #onNoted: () => void;
  /** Where the log ended when the appliance was started. */
  readonly #firstPosition: number;
  /** The greatest position of a cursor that the log never gave out; 0: there is none. */
  #position = 0;

  /** @param onNoted told when there is something to make up for */
  constructor(workshop: Workshop, onNoted: () => void) {
    this.#workshop = workshop;
    this.#onNoted = onNoted;
    this.#firstPosition = workshop.writer.lastPosition;
  }

  /** @param position of an authentic cursor */
  note(position: number): void {
    this.#position = Math.max(this.#position, position);
    this.#onNoted();
  }

  /** To be called between transactions: does nothing where the log does not lack its end, or that was made up for. */
  makeUp(): void {
    const { db, now, log, trouble } = this.#workshop;
    const position = this.#position;
    const known = position === 0 ? null : lostEndBehind(db, position);
    if (known !== null) {
      const reason = `a cursor at position ${grouped(position)} proves that the end of the log is missing`;
      // What this run has added may stand at positions that the lost part gave out, too.
      this.#beginEpoch(reason, Math.min(known, this.#firstPosition));
      log(
        'warn',
        'the end of the log is lost: versions are raised once, and positions continue a year ahead',
        {
          position,
          known,
        },
      );
      trouble('end of log lost', `${reason}, found at ${formatMs(now())}`);
    }
    this.#position = 0;
  }

  /** @param parted the last position that is common to both histories */
  #beginEpoch(reason: string, parted: number): void {
    const { db, writer } = this.#workshop;
    const epoch = { reason, orphans: 'to read', position: this.#position, lostEpochs: 0 } as const;
    const applier = writer.begin(new Set(), epoch);
    try {
      applier.reissue(db, parted);
    } catch (error) {
      writer.rollback();
      throw error;
    }
    writer.commit(applier, { kind: 'lost end', reason });
  }
}
