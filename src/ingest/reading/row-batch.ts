/**
 * A batch of rows, as the reader thread sends it to the ingest thread: columns and one block of bytes, since cloning objects
 * and strings costs both threads more than all their other work. The block is appended to the log, and the second part of
 * each of its lines is stored in the database.
 */
import { BASE_URL_MARK, FILTER_COLUMNS_COUNT, type FilterValues, readMatch } from '../../detection/match.ts';
import type { Scoring } from '../../detection/merge.ts';
import { NEWLINE } from '../../exports/lines.ts';
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

/** The block grows if needed. */
const LINES_BYTES = 1024 * 1024;
/** The most UTF-8 bytes for one UTF-16 code unit. */
const UNIT_BYTES_MAX = 3;
const MARK_BYTE = BASE_URL_MARK.charCodeAt(0);

/** @param memory buffers to use first: allocating one costs as much as filling it */
export function batchBuilder(memory: ArrayBuffer[] = []) {
  let block = nextBlock();
  let end = 0;
  let columns = emptyColumns();

  function nextBlock(): Buffer<ArrayBuffer> {
    const used = memory.pop();
    return used === undefined ? Buffer.allocUnsafeSlow(LINES_BYTES) : Buffer.from(used);
  }

  function reserve(bytes: number): void {
    if (end + bytes <= block.length) return;
    const larger = Buffer.allocUnsafeSlow((end + bytes) * 2);
    block.copy(larger, 0, 0, end);
    block = larger;
  }

  return {
    rows: () => columns.ids.length,
    /** @param state the row, as its detection would be stored */
    add(state: DetectionState): void {
      const head = rowHead(state);
      reserve((head.length + state.rendered.length + 1) * UNIT_BYTES_MAX);
      end += block.write(head, end);
      columns.begins.push(end);
      end += block.write(state.rendered, end);
      columns.ends.push(end);
      block[end] = NEWLINE;
      end += 1;
      columns.ids.push(state.id);
      columns.urls_withheld.push(state.url_withheld);
      columns.exported_at_given.push(state.exported_at_given);
      columns.first_detected_at.push(state.first_detected_at);
      columns.filters.push(...state.filters);
    },
    /** Begins the next batch. @param rowsThrough rows of the file so far */
    take(rowsThrough: number, unknownRows: UnknownRows = {}): RowBatch {
      const lines = block.subarray(0, end);
      // Only photos have the mark.
      const frame = encodeFrame('lines', lines.includes(MARK_BYTE) ? escapeMark(textOf(lines)) : lines);
      const batch = { rowsThrough, unknownRows, frame, lines, ...columns };
      columns = emptyColumns();
      block = nextBlock();
      end = 0;
      return batch;
    },
  };
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
  const match = readMatch(textOf(renderedOf(batch, row)));
  match.article.url = batch.urls_withheld[row] ?? match.article.url;
  return { match, exported_at_given: batch.exported_at_given[row] ?? null };
}

const renderedOf = ({ lines, begins, ends }: RowBatch, row: number): Uint8Array =>
  lines.subarray(begins[row], ends[row]);

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
