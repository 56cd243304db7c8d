/**
 * When a cursor proves that the end of the log is lost, as after an older data folder was restored, a version epoch begins:
 * everything read since the histories parted is announced again, in a higher version and at positions beyond any that a
 * client can have. So a client with cursors and versions of the lost part neither skips nor rejects it.
 */
import { grouped } from '../../counted.ts';
import { lostEndBehind } from '../../history/version-epoch.ts';
import { formatMs, type Now } from '../../time.ts';
import type { Log, SetCondition } from '../threads/ingest-messages.ts';
import type { StreamWriter } from './stream-writer.ts';

export interface LostEndOptions {
  readonly writer: StreamWriter;
  readonly now: Now;
  readonly log: Log;
  readonly setCondition: SetCondition;
  /** Called when {@link LostEnd.makeUp} has something to do. */
  readonly onNoted: () => void;
}

export class LostEnd {
  readonly #options: LostEndOptions;
  /** The end of the log when the appliance was started. */
  readonly #firstPosition: number;
  /** The greatest position of a cursor that the log never issued; 0: there is none. */
  #position = 0;

  constructor(options: LostEndOptions) {
    this.#options = options;
    this.#firstPosition = options.writer.lastPosition;
  }

  /** @param position of an authentic cursor */
  note(position: number): void {
    this.#position = Math.max(this.#position, position);
    this.#options.onNoted();
  }

  /** Call it between transactions. It does nothing if the log has its end, or the loss was made up for. */
  makeUp(): void {
    const { writer, now, log, setCondition } = this.#options;
    const position = this.#position;
    const known = position === 0 ? null : lostEndBehind(writer.db, position);
    if (known !== null) {
      const reason = `a cursor at position ${grouped(position)} proves that the end of the log is missing`;
      // The lost part may have used the positions of this run's rows, too.
      this.#beginEpoch(reason, Math.min(known, this.#firstPosition));
      log(
        'warn',
        'the end of the log is lost: versions are raised once, and positions continue a year ahead',
        { position, known },
      );
      setCondition('end of log lost', `${reason}, found at ${formatMs(now())}`);
    }
    this.#position = 0;
  }

  /** @param parted the last position that both histories have */
  #beginEpoch(reason: string, parted: number): void {
    const { writer } = this.#options;
    const epoch = { reason, orphans: 'to read', position: this.#position, lostEpochs: 0 } as const;
    const applier = writer.begin(new Set(), epoch);
    try {
      applier.reissue(writer.db, parted);
    } catch (error) {
      writer.rollback();
      throw error;
    }
    writer.commit(applier, { kind: 'lost end', reason });
  }
}
