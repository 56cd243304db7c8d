/** When a cursor proves that a part of the history is lost, a version epoch begins (see log/version-epoch.ts). */
import { grouped } from '../../counted.ts';
import { numberOfEpoch, partingOf, type StreamPosition } from '../../log/version-epoch.ts';
import { Refused } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import type { FileStore } from '../files/finished-file.ts';
import type { Applier } from './apply-rows.ts';

type LostEndOptions = Pick<FileStore, 'writer' | 'now' | 'log' | 'setCondition'> & {
  /** Called when {@link LostEnd.makeUp} has something to do. */
  readonly onNoted: () => void;
};

export class LostEnd {
  readonly #options: LostEndOptions;
  /** The end of the log when the appliance was started. */
  readonly #firstPosition: number;
  /** By epoch, the greatest position of a cursor that the log never issued. */
  readonly #positions = new Map<number, number>();

  constructor(options: LostEndOptions) {
    this.#options = options;
    this.#firstPosition = options.writer.lastPosition;
  }

  /** @param cursor authentic */
  note({ position, epoch }: StreamPosition): void {
    this.#positions.set(epoch, Math.max(position, this.#positions.get(epoch) ?? 0));
    this.#options.onNoted();
  }

  /** Call it between transactions. It does nothing if the log has its end, or the loss was made up for. */
  makeUp(): void {
    const { db } = this.#options.writer;
    const lost = [...this.#positions].flatMap(([epoch, position]) => {
      const parted = partingOf(db, { position, epoch });
      return parted === null ? [] : [{ position, epoch, parted }];
    });
    if (lost.length > 0) this.#beginEpoch(lost);
    this.#positions.clear();
  }

  #beginEpoch(lost: readonly (StreamPosition & { readonly parted: number })[]): void {
    const { writer, now, log, setCondition } = this.#options;
    const position = Math.max(...lost.map((cursor) => cursor.position));
    // The lost part may have used the positions of this run's rows, too.
    const parted = Math.min(this.#firstPosition, ...lost.map((cursor) => cursor.parted));
    const number = Math.max(...lost.map(({ epoch }) => numberOfEpoch(epoch)));
    const reason = `a cursor at position ${grouped(position)} proves that the end of the log is missing`;
    const epoch = { reason, orphans: 'to read', position, number, parted } as const;
    const condition = `${reason}, found at ${formatMs(now())}`;
    let applier: Applier;
    try {
      applier = writer.begin(new Set(), epoch);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setCondition('end of log lost', `${condition}. It was not made good: ${error.message}`);
      return;
    }
    writer.commit(applier, { kind: 'lost end', reason });
    log('warn', 'the end of the log is lost: versions are raised once, and positions continue a year ahead', {
      position,
      parted,
    });
    setCondition('end of log lost', condition);
  }
}
