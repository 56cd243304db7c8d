/** The thread that reads exports: unpacks, checks and renders. It never opens a database. */
import { fsyncSync, writeFileSync } from 'node:fs';
import type { MessagePort } from 'node:worker_threads';
import { photoPath } from '../../detection/photo-address.ts';
import { createIn } from '../../drop/own-folder.ts';
import { jsonText, NESTED_TOO_DEEPLY } from '../../exports/error-groups.ts';
import { serveCalls } from '../../thread-call.ts';
import { type BadRow, type ReadingOrder, type ReadingResult, readExport } from './read-export.ts';
import { addFrame, BATCHES_IN_FLIGHT_MAX, type RowBatch } from './row-batch.ts';

export interface ReaderSettings {
  /** The key that signs the addresses of photos. */
  readonly photo_key: Uint8Array;
}

export interface ReaderOrder extends ReadingOrder {
  /** Rows are only checked: no batches are sent. */
  readonly check_only: boolean;
  readonly drop: string;
  /** Where in the drop folder skipped rows are written with their errors; the first one creates the file. Null: nowhere. */
  readonly skipped_path: string | null;
}

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

export function runReader(port: MessagePort, settings: ReaderSettings): void {
  serveCalls<ReaderCalls>(port, {
    read: ({ order, port: batches }, tell) => read(order, batches, settings, tell),
  });
}

class Cancelled extends Error {}

async function read(
  order: ReaderOrder,
  port: MessagePort,
  { photo_key }: ReaderSettings,
  tell: (rows: number) => void,
): Promise<ReadingResult> {
  /** The memory of batches that were applied. */
  const memory: ArrayBuffer[] = [];
  let inFlight = 0;
  let isCancelled = false;
  let wake = () => {};
  port.on('message', (applied: ArrayBuffer) => {
    memory.push(applied);
    inFlight -= 1;
    wake();
  });
  port.on('close', () => {
    isCancelled = true;
    wake();
  });
  const requireWanted = () => {
    if (isCancelled) throw new Cancelled();
  };
  const onBatch = async (batch: RowBatch) => {
    while (inFlight === BATCHES_IN_FLIGHT_MAX && !isCancelled)
      await new Promise<void>((resolve) => (wake = resolve));
    inFlight += 1;
    requireWanted();
    port.postMessage(batch, [addFrame(batch).buffer, batch.lines.buffer]);
  };
  const skipped = skippedRows(order);
  try {
    return await readExport(order, {
      photoPath: (sourceInternalId) => photoPath(photo_key, sourceInternalId),
      memory,
      ...(order.check_only ? {} : { onBatch }),
      onBadRow: (bad) => skipped.add(bad),
      onProgress(rows) {
        requireWanted();
        tell(rows);
      },
    });
  } finally {
    skipped.close();
    port.close();
  }
}

/** Enough to find the cause. A small file can unpack to millions of bad rows. */
const NOTES_BYTES_MAX = 4 * 1024 * 1024;

/** Writes the skipped rows of a file, a JSON object a line; those beyond the limit are only counted. */
function skippedRows({ drop, skipped_path }: Pick<ReaderOrder, 'drop' | 'skipped_path'>) {
  let file: ReturnType<typeof createIn> | null = null;
  let bytes = 0;
  let more = 0;
  return {
    add(bad: BadRow): void {
      if (skipped_path === null) return;
      file ??= createIn(drop, skipped_path);
      const line = () => `${jsonText(bad) ?? jsonText({ ...bad, row: NESTED_TOO_DEEPLY })}\n`;
      const text = bytes < NOTES_BYTES_MAX ? line() : '';
      bytes += Buffer.byteLength(text);
      if (text !== '' && bytes <= NOTES_BYTES_MAX) writeFileSync(file.fd, text);
      else {
        // All rows after it are left out, too: the notes have no gaps.
        bytes = NOTES_BYTES_MAX;
        more += 1;
      }
    },
    close(): void {
      if (file === null) return;
      using open = file;
      if (more > 0) writeFileSync(open.fd, `{"more_rows":${more}}\n`);
      fsyncSync(open.fd);
    },
  };
}
