/** What the thread that writes and the thread that reads exports say to each other: plain data only. */

import type { RowBatch } from '../apply/row-batch.ts';
import type { ReadingOrder, ReadingResult } from '../rules/read-export.ts';

export interface ReaderOrder extends ReadingOrder {
  /** Whether rows are handed on, or only checked. */
  readonly check_only: boolean;
  /** Where rows that are left out are written, with their reasons; made with the first of them. Null: nowhere. */
  readonly skipped_path: string | null;
}

export type ToReader =
  | { readonly kind: 'read'; readonly session: number; readonly order: ReaderOrder }
  /** One more batch of the session may be sent, in the memory of one that was. */
  | { readonly kind: 'credit'; readonly session: number; readonly memory: ArrayBuffer }
  | { readonly kind: 'cancel'; readonly session: number };

export type FromReader =
  | { readonly kind: 'batch'; readonly session: number; readonly batch: RowBatch }
  | { readonly kind: 'progress'; readonly session: number; readonly rows: number }
  | { readonly kind: 'end'; readonly session: number; readonly result: ReadingResult }
  | {
      readonly kind: 'fault';
      readonly session: number;
      readonly code: string;
      readonly message: string;
      /** The call of the system that failed; null where none did. */
      readonly syscall: string | null;
    };

export interface ReaderSettings {
  /** The key that signs the addresses of photos. */
  readonly photo_key: Uint8Array;
}
