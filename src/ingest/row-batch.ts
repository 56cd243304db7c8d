/**
 * Rows on their way from the thread that reads exports to the thread that writes.
 *
 * A batch is columns, not objects: structured cloning writes every member name of every object again, and the
 * two threads spend more on that than on the rows.
 */
import { readMatch } from '../detection/match.ts';
import type { Scoring } from '../detection/merge.ts';
import { encodeFrame } from '../history/frame.ts';
import { type DetectionState, rowLine } from '../history/row-lines.ts';

export interface RowBatch {
  /** Rows of the file up to and with this batch: where reading goes on after a crash. */
  rowsThrough: number;
  /** Its rows as a frame of the log; null until {@link addFrame}. */
  frame: Uint8Array<ArrayBuffer> | null;
  readonly ids: string[];
  /** See `renderMatch`. */
  readonly rendered: string[];
  readonly urls_withheld: (string | null)[];
  readonly exported_at_given: (string | null)[];
  readonly domains: (string | null)[];
  readonly source_ids: (string | null)[];
  /** Epoch seconds. */
  readonly first_detected_at: number[];
  readonly publisher_ids: (number | null)[];
  /** Steps, see `bandStep`. */
  readonly bands: number[];
  readonly scores: number[];
  readonly prints: number[];
  readonly article_ids: number[];
}

/** Rows a batch holds at most, and batches that may be on their way: what bounds the memory of an ingest. */
export const BATCH_ROWS_MAX = 500;
export const BATCHES_IN_FLIGHT_MAX = 8;

export function emptyBatch(): RowBatch {
  return {
    rowsThrough: 0,
    frame: null,
    ids: [],
    rendered: [],
    urls_withheld: [],
    exported_at_given: [],
    domains: [],
    source_ids: [],
    first_detected_at: [],
    publisher_ids: [],
    bands: [],
    scores: [],
    prints: [],
    article_ids: [],
  };
}

/** @param state a row as its detection would be stored */
export function addRow(batch: RowBatch, { judged, ...state }: DetectionState): void {
  batch.ids.push(state.id);
  batch.rendered.push(state.rendered);
  batch.urls_withheld.push(state.url_withheld);
  batch.exported_at_given.push(state.exported_at_given);
  batch.first_detected_at.push(state.first_detected_at);
  batch.domains.push(judged.domain);
  batch.source_ids.push(judged.source_id);
  batch.publisher_ids.push(judged.publisher_id);
  batch.bands.push(judged.band);
  batch.scores.push(judged.score);
  batch.prints.push(judged.print);
  batch.article_ids.push(judged.article_id);
}

/** Renders the rows for the log. The thread that reads exports does it: it has the time. */
export function addFrame(batch: RowBatch): Uint8Array<ArrayBuffer> {
  const lines = batch.ids.map((id, row) => rowLine(stateOf(batch, row, id)));
  batch.frame = encodeFrame('lines', lines.join(''));
  return batch.frame;
}

/** A row as it is stored when its detection is new. */
export function stateOf(batch: RowBatch, row: number, id: string): DetectionState {
  return {
    id,
    rendered: batch.rendered[row] ?? '',
    exported_at_given: batch.exported_at_given[row] ?? null,
    url_withheld: batch.urls_withheld[row] ?? null,
    first_detected_at: batch.first_detected_at[row] ?? 0,
    judged: {
      publisher_id: batch.publisher_ids[row] ?? null,
      domain: batch.domains[row] ?? null,
      band: batch.bands[row] ?? 0,
      score: batch.scores[row] ?? 0,
      print: batch.prints[row] ?? 0,
      source_id: batch.source_ids[row] ?? null,
      article_id: batch.article_ids[row] ?? 0,
    },
  };
}

/** A row as the merge rule takes it, with the address as exported. */
export function scoringOf(batch: RowBatch, row: number): Scoring {
  const match = readMatch(batch.rendered[row] ?? '');
  match.article.url = batch.urls_withheld[row] ?? match.article.url;
  return { match, exported_at_given: batch.exported_at_given[row] ?? null };
}
