/** The calls that the reader thread serves, and its events. */
import type { RowBatch } from '../apply/row-batch.ts';
import type { ReadingOrder, ReadingResult } from '../rules/read-export.ts';

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

/**
 * Batches are events, since they are many to one call, and the caller's credits hold them back: a reading with eight
 * unacknowledged batches waits.
 */
export interface ReaderCalls {
  read(reading: { readonly session: number; readonly order: ReaderOrder }): ReadingResult;
  /** One more batch may be sent, in the memory of one that was applied. */
  credit(applied: { readonly session: number; readonly memory: ArrayBuffer }): void;
  cancel(session: number): void;
}

export type ReaderEvent =
  | { readonly kind: 'batch'; readonly session: number; readonly batch: RowBatch }
  | { readonly kind: 'progress'; readonly session: number; readonly rows: number };
