/** Files that are read again: whole, or in spans with other operations in between. */
import type { Applier } from './apply.ts';
import type { OrderWithoutSession, Reading } from './reader-client.ts';
import type { RowBatch } from './row-batch.ts';
import type { Workshop } from './workshop.ts';

/** Each file is read on from where it was left. */
export class OpenSpans {
  readonly #workshop: Workshop;
  readonly #open = new Map<string, OpenSpan>();

  constructor(workshop: Workshop) {
    this.#workshop = workshop;
  }

  /** @returns up to which row the file was read: `through`, or less where it ends before */
  async read(applier: Applier, key: string, order: OrderWithoutSession, through: number): Promise<number> {
    let span = this.#open.get(key);
    if (span?.rowsThrough !== order.rows_to_skip || span.readAt !== order.exported_at_default) {
      this.drop(key);
      const reading = this.#workshop.reader.read(order);
      // Whether it was read to its end is seen by its rows.
      reading.result.catch(() => {});
      const batches = reading.batches[Symbol.asyncIterator]();
      span = { reading, batches, rowsThrough: order.rows_to_skip, readAt: order.exported_at_default };
      this.#open.set(key, span);
    }
    while (span.rowsThrough < through) {
      const next = await span.batches.next();
      this.#workshop.check();
      if (next.done === true) {
        await span.reading.result;
        break;
      }
      applier.apply(next.value);
      span.rowsThrough = next.value.rowsThrough;
    }
    return span.rowsThrough;
  }

  /** @returns in words why the file could not be read; null when it was */
  async readWhole(applier: Applier, order: OrderWithoutSession, name: string): Promise<string | null> {
    const reading = this.#workshop.reader.read(order, (rows) => this.#workshop.progress(name, rows, false));
    try {
      for await (const batch of reading.batches) {
        applier.apply(batch);
        this.#workshop.check();
      }
      const result = await reading.result;
      this.#workshop.progress(name, result.counts.rows, true);
      return result.kind === 'read' ? null : 'it no longer fits the format';
    } catch (error) {
      reading.cancel();
      throw error;
    }
  }

  drop(key: string): void {
    this.#open.get(key)?.reading.cancel();
    this.#open.delete(key);
  }

  close(): void {
    for (const key of [...this.#open.keys()]) this.drop(key);
  }
}

interface OpenSpan {
  readonly reading: Reading;
  readonly batches: AsyncIterator<RowBatch>;
  rowsThrough: number;
  readonly readAt: string;
}
