/**
 * When a cursor proves that the end of the log is lost, as after an older data folder was restored, a version epoch begins:
 * everything read since the histories parted is announced again, in a higher version and at positions beyond any that a
 * client can have. So a client with cursors and versions of the lost part neither skips nor rejects it.
 */
import { grouped } from '../../counted.ts';
import { isOfLostHistory, type LostHistory, lostHistoryOf } from '../../history/version-epoch.ts';
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
    if (position > 0 && isOfLostHistory(writer.db, position)) {
      const reason = `a cursor at position ${grouped(position)} proves that the end of the log is missing`;
      const lost = lostHistoryOf(writer.db, position, now());
      this.#beginEpoch(reason, lost);
      log(
        'warn',
        'the end of the log is lost: versions are raised once, and positions continue a year ahead',
        { position, parted: lost.parted },
      );
      setCondition('end of log lost', `${reason}, found at ${formatMs(now())}`);
    }
    this.#position = 0;
  }

  #beginEpoch(reason: string, { parted, epochs }: LostHistory): void {
    const { writer } = this.#options;
    const epoch = {
      reason,
      orphans: 'to read',
      position: this.#position,
      lostEpochs: epochs,
      // The lost part may have used the positions of this run's rows, too.
      parted: Math.min(parted, this.#firstPosition),
    } as const;
    writer.commit(writer.begin(new Set(), epoch), { kind: 'lost end', reason });
  }
}
