/**
 * A batch of rows, as the reader thread sends it to the ingest thread: columns and one block of bytes, since cloning objects
 * and strings costs both threads more than all their other work. The block is appended to the log, and the second part of
 * each of its lines is stored in the database.
 */
import { BASE_URL_MARK, FILTER_COLUMNS_COUNT, type FilterValues, readMatch } from '../../detection/match.ts';
import type { Scoring } from '../../detection/merge.ts';
import { encodeFrame } from '../../log/frame.ts';
import { type DetectionState, escapeMark, rowHead, type StoredState } from '../../log/row-lines.ts';

/** Rows of streams that do not exist, by `<subscription>:<type>`. */
export type UnknownRows = Readonly<Record<string, number>>;

export interface RowBatch extends Readonly<ReturnType<typeof emptyColumns>> {
  /** Rows of the file up to and including this batch: after a crash, reading continues there. */
  readonly rowsThrough: number;
  readonly unknownRows: UnknownRows;
  /** The rows as a frame of the log, packed by the reader thread: it has time to spare. */
  readonly frame: Uint8Array<ArrayBuffer>;
  /** The rows as lines of the log, except that the mark of the base address is not escaped. */
  readonly lines: Uint8Array<ArrayBuffer>;
}

/** Both bound the memory of ingest. */
export const BATCH_ROWS_MAX = 500;
export const BATCHES_IN_FLIGHT_MAX = 8;

const MARK_BYTE = BASE_URL_MARK.charCodeAt(0);

export class BatchBuilder {
  #texts: Buffer[] = [];
  #bytes = 0;
  #columns = emptyColumns();

  get rows(): number {
    return this.#columns.ids.length;
  }

  /** @param state the row, as its detection would be stored */
  add(state: DetectionState): void {
    const { ids, begins, ends, urls_withheld, exported_at_given, first_detected_at, filters } = this.#columns;
    const head = rowHead(state);
    const text = Buffer.from(`${head}${state.rendered}\n`);
    begins.push(this.#bytes + Buffer.byteLength(head));
    this.#texts.push(text);
    this.#bytes += text.length;
    ends.push(this.#bytes - 1);
    ids.push(state.id);
    urls_withheld.push(state.url_withheld);
    exported_at_given.push(state.exported_at_given);
    first_detected_at.push(state.first_detected_at);
    filters.push(...state.filters);
  }

  /** Begins the next batch. @param rowsThrough rows of the file so far */
  take(rowsThrough: number, unknownRows: UnknownRows = {}): RowBatch {
    const text = Buffer.concat(this.#texts);
    // Only photos have the mark.
    const frame = encodeFrame('lines', text.includes(MARK_BYTE) ? escapeMark(text.toString()) : text);
    // In memory of their own, so that they can be transferred to another thread.
    const batch = { rowsThrough, unknownRows, frame, lines: new Uint8Array(text), ...this.#columns };
    this.#texts = [];
    this.#bytes = 0;
    this.#columns = emptyColumns();
    return batch;
  }
}

/** What a row's detection has beside its text (see `DetectionState`). */
function emptyColumns() {
  return {
    /** Where in the lines the rendered match of each row begins (see `renderMatch`), and where it ends. */
    begins: [] as number[],
    ends: [] as number[],
    ids: [] as string[],
    urls_withheld: [] as (string | null)[],
    exported_at_given: [] as (string | null)[],
    first_detected_at: [] as number[],
    /** Those of all rows, one after the other. */
    filters: [] as FilterValues[number][],
  };
}

/** A row, as it is stored if its detection is new. */
export function stateOf(batch: RowBatch, row: number, id: string): StoredState {
  return {
    id,
    rendered: renderedOf(batch, row),
    exported_at_given: batch.exported_at_given[row] ?? null,
    url_withheld: batch.urls_withheld[row] ?? null,
    first_detected_at: batch.first_detected_at[row] ?? 0,
    filters: batch.filters.slice(row * FILTER_COLUMNS_COUNT, (row + 1) * FILTER_COLUMNS_COUNT),
  };
}

/** A row, as {@link merge} takes it: with the address as exported. */
export function scoringOf(batch: RowBatch, row: number): Scoring {
  const match = readMatch(Buffer.from(renderedOf(batch, row)).toString());
  match.article.url = batch.urls_withheld[row] ?? match.article.url;
  return { match, exported_at_given: batch.exported_at_given[row] ?? null };
}

function renderedOf({ lines, begins, ends }: RowBatch, row: number): Uint8Array {
  return lines.subarray(begins[row], ends[row]);
}
