/** When a cursor proves that a part of the history is lost, a version epoch begins (see log/version-epoch.ts). */
import { grouped } from '../../counted.ts';
import { numberOfEpoch, partingOf, type StreamPosition } from '../../log/version-epoch.ts';
import { Refused } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import type { Ingest } from '../files/finished-file.ts';
import type { Applier } from './apply-rows.ts';

export function lostEnd(files: Pick<Ingest, 'writer' | 'now' | 'log' | 'setCondition'>) {
  const { writer, now, log, setCondition } = files;
  /** The end of the log when the appliance was started. */
  const firstPosition = writer.lastPosition;
  /** By epoch, the greatest position of a cursor that the log never issued. */
  const positions = new Map<number, number>();

  function beginEpoch(lost: readonly (StreamPosition & { readonly parted: number })[]): void {
    const position = Math.max(...lost.map((cursor) => cursor.position));
    // The lost part may have used the positions of this run's rows, too.
    const parted = Math.min(firstPosition, ...lost.map((cursor) => cursor.parted));
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

  return {
    /** @param cursor authentic */
    note({ position, epoch }: StreamPosition): void {
      positions.set(epoch, Math.max(position, positions.get(epoch) ?? 0));
    },
    /** Call it between transactions. It does nothing if the log has its end, or the loss was made up for. */
    makeUp(): void {
      const lost = [...positions].flatMap(([epoch, position]) => {
        const parted = partingOf(writer.db, { position, epoch });
        return parted === null ? [] : [{ position, epoch, parted }];
      });
      if (lost.length > 0) beginEpoch(lost);
      positions.clear();
    },
  };
}
