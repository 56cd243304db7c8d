/** The thread that reads exports: unpacks, checks and renders. It never opens a database. */
import type { MessagePort } from 'node:worker_threads';
import { photoPath } from '../../detection/photo-address.ts';
import { serveCalls } from '../../thread-call.ts';
import { type ReadingOrder, type ReadingResult, readExport } from './read-export.ts';
import { BATCHES_IN_FLIGHT_MAX, type RowBatch } from './row-batch.ts';

/** `check_only`: rows are only checked, and no batches are sent. */
export type ReaderOrder = ReadingOrder & { readonly check_only: boolean };

export interface ReaderCalls {
  /**
   * Reads a file. The port carries its batches, and back the memory of each that was applied: with eight on their way, the
   * reading waits. This thread closes it behind the last batch; closed earlier, it cancels the reading.
   * @param tell called with the rows read so far
   */
  read(
    reading: { readonly port: MessagePort; readonly order: ReaderOrder },
    tell: (rows: number) => void,
  ): ReadingResult;
}

/** @param key signs the addresses of photos */
export function runReader(port: MessagePort, key: Uint8Array): void {
  serveCalls<ReaderCalls>(port, { read: ({ order, port: own }, tell) => read(order, own, key, tell) });
}

async function read(order: ReaderOrder, port: MessagePort, key: Uint8Array, tell: (rows: number) => void) {
  /** The memory of batches that were applied. */
  const memory: ArrayBuffer[] = [];
  const cancelled = new AbortController();
  let inFlight = 0;
  let wake = () => {};
  port.on('message', (applied: ArrayBuffer) => {
    memory.push(applied);
    inFlight -= 1;
    wake();
  });
  port.on('close', () => {
    cancelled.abort();
    wake();
  });
  const onBatch = async (batch: RowBatch) => {
    while (inFlight === BATCHES_IN_FLIGHT_MAX && !cancelled.signal.aborted)
      await new Promise<void>((resolve) => (wake = resolve));
    inFlight += 1;
    cancelled.signal.throwIfAborted();
    port.postMessage(batch, [batch.frame.buffer, batch.lines.buffer]);
  };
  try {
    return await readExport(order, {
      photoPath: (sourceInternalId) => photoPath(key, sourceInternalId),
      memory,
      ...(order.check_only ? {} : { onBatch }),
      onProgress(rows) {
        cancelled.signal.throwIfAborted();
        tell(rows);
      },
    });
  } finally {
    port.close();
  }
}
