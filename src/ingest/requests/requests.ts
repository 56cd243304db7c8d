/**
 * What operations ask of the ingest thread, the one writer of detections.db, and its answers. Requests wait in its memory:
 * a stop ends them, and whoever asked is told so.
 */
import type { ExportName } from '../../detection/content-type.ts';
import type { Compacted } from '../../log/compact.ts';
import { failed, type Refused } from '../../refused.ts';
import type { ResettableStatus, WindowStatus } from '../../windows/window-states.ts';
import type { ApplyCounts } from '../apply/apply-rows.ts';

type OfWindow = { readonly export: ExportName; readonly window_start: number };

export type IngestRequest =
  /** Reads archived files again that were first applied in `[from, to)`, epoch milliseconds. */
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }
  /** Reads the newest held file of a failed or abandoned window, or else the failed one again. */
  | (OfWindow & {
      readonly kind: 'reset';
      /** The status of the window at the time of the request. */
      readonly from: ResettableStatus;
    })
  /** A failed window counts as done, without the file that failed; one that was never expected is forgotten. */
  | (OfWindow & { readonly kind: 'dismiss' })
  /** Sets from which window on those of an export are expected. */
  | (OfWindow & { readonly kind: 'expect' })
  /** For a lab: records an unknown window as if its file had not come in time. */
  | (OfWindow & { readonly kind: 'gap'; readonly status: Extract<WindowStatus, 'missing' | 'abandoned'> })
  /**
   * Deletes the rows of removed subscriptions: of those with an open removal, whether or not it names them. Without the
   * request, the ingest thread deletes them all the same.
   */
  | { readonly kind: 'remove'; readonly subscriptions: readonly number[] }
  /** Rewrites the log: see log/compact.ts. */
  | { readonly kind: 'compact' };

export interface ReplayCounts extends ApplyCounts {
  files: number;
  rows: number;
  /** Rows that are bad, or of a stream that does not exist, or was added again after their file was taken. */
  left_out: number;
  /** Files that are no longer in the archive, or that the present settings do not accept. */
  unreadable: { file: string; reason: string }[];
}

/** By kind of request. */
export interface Answers {
  replay: ReplayCounts;
  reset: { readonly file: string; readonly outcome: string; readonly reason: string | null };
  dismiss: null;
  /** How many windows before the start are no longer missing or abandoned. */
  expect: { readonly forgotten: number };
  gap: null;
  /** Why the log still has rows of them; null: it has none. */
  remove: { readonly left_in_log: string | null };
  compact: Compacted;
}
export type Kind = IngestRequest['kind'];
export type RequestOf<Of extends Kind> = Extract<IngestRequest, { kind: Of }>;

/** Asks for one of these. @throws Refused `failed` with the reason if it could not be done */
export type AskIngest = <Of extends Kind>(
  request: RequestOf<Of> & { readonly kind: Of },
  tell: (progress: string) => void,
) => Promise<Answers[Of]>;

/** Of a request that was not completed. @param why the first half of a sentence: `Wirewatch stopped` */
export function unserved(kind: Kind, why: string): Refused {
  const next =
    kind === 'remove'
      ? 'The remaining rows are deleted as soon as Wirewatch runs again. To wait for that, run the command again.'
      : 'Run the command again.';
  return failed(`${why} before this was completed. ${next}`);
}
