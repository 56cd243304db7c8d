/** Reads an export file to its end; checks and renders its rows. Only errors of the machine are thrown; others are results. */
import { counted, grouped } from '../../counted.ts';
import { CONTENT_TYPE_OF_EXPORT, type StreamName, streamName } from '../../detection/content-type.ts';
import { formatDetectionId } from '../../detection/id.ts';
import { filterValuesOf, type RenderOptions, renderRow } from '../../detection/match.ts';
import { shownUrl } from '../../detection/merge.ts';
import { Bad } from '../../exports/article-address.ts';
import { checkRow, type RowError, type TimeBounds } from '../../exports/check-row.ts';
import { csvEntries } from '../../exports/csv.ts';
import { BadRows, type FileErrors, type LineError } from '../../exports/error-groups.ts';
import { type ExportFileName, formOf } from '../../exports/file-name.ts';
import type { RawEntry } from '../../exports/lines.ts';
import type { Mapping, Origin } from '../../exports/mapping.ts';
import { ndjsonEntries } from '../../exports/ndjson.ts';
import { type ExportSource, openContent, UnreadableContent } from '../../exports/unpacking.ts';
import { parseSeconds } from '../../time.ts';
import { BATCH_ROWS_MAX, batchBuilder, type RowBatch, type UnknownRows } from './row-batch.ts';

/** How to read a file. Plain data: it is sent to the reader thread. */
export interface ReadingOrder extends TimeBounds {
  readonly source: ExportSource;
  readonly file: ExportFileName;
  readonly exported_at_default: string;
  /** What the shape of the file is; null: our own form. */
  readonly mapping: Mapping | null;
  readonly require_trailer: boolean;
  /** Whether an invalid row fails the file, or is skipped, unless most are invalid. */
  readonly bad_rows: 'fail' | 'skip';
  /** With so many errors, a file that fails is read no further. */
  readonly errors_max: number;
  /** The streams that exist; null: any. */
  readonly streams: readonly StreamName[] | null;
  /** Subscriptions whose rows are those of an earlier owner of the number: they are left out, and not counted. */
  readonly former: readonly number[];
  /** Subscriptions whose account may see the addresses of print articles. */
  readonly licensed: readonly number[];
  /** Rows at the start of the file that were applied before. */
  readonly rows_to_skip: number;
}

export interface ReadingSinks {
  readonly photoPath: RenderOptions['photoPath'];
  /** Buffers for batches, used before new ones are allocated. */
  readonly memory?: ArrayBuffer[];
  /** Receives each batch; the next one follows when it resolves. Without it, rows are only checked. */
  readonly onBatch?: (batch: RowBatch) => Promise<void> | void;
  /** Called for each row that could be read, with what it was read as. */
  readonly onRow?: (row: ReadRow) => void;
  readonly onProgress?: (rows: number) => void;
}

/** `origin`: the row as the file has it, under a mapping. */
export type ReadRow = Pick<Extract<RawEntry, { kind: 'row' }>, 'line' | 'raw' | 'origin'>;

export interface ReadingCounts {
  readonly sha256: string;
  readonly rows: number;
  /** Rows skipped because they are invalid. */
  readonly bad_rows: number;
  readonly unknown_rows: UnknownRows;
  readonly ignored_columns: readonly string[];
  /** Rows whose `article_publisher_name` was dropped, because they have no `article_publisher_id`. */
  readonly names_without_id: number;
  /** Rows of print articles whose URL customers do not see, because their account has no licence. */
  readonly urls_withheld: number;
}

export type ReadingResult = {
  readonly counts: ReadingCounts;
  /** The notes of the skipped rows; see {@link BadRows}. */
  readonly skipped: string;
} & (
  | { readonly kind: 'read' }
  /** Rows or the file itself are invalid. */
  | ({ readonly kind: 'bad'; readonly rows_with_errors: number } & FileErrors)
  /** Truncated: the packed data ends too early, and the file may still be growing. */
  | { readonly kind: 'truncated' | 'damaged'; readonly reason: string }
);

/** So many bad rows may be skipped in any file, however short; and so many in any, however long. */
const BAD_ROWS_IN_ANY_FILE = 100;
const BAD_ROWS_MAX = 100_000;
/** After so many rows of the file there is a batch, even an empty one: whoever applies it has other work to do as well. */
const ROWS_THROUGH_MAX = 20_000;
/** Any further ones are counted together. */
const UNKNOWN_STREAMS_MAX = 50;

export async function readExport(order: ReadingOrder, sinks: ReadingSinks): Promise<ReadingResult> {
  const { source, file } = order;
  const form = formOf(file.name);
  const content = await openContent(source, form);
  const reading = readingOf(order, sinks);
  try {
    const entries = form.startsWith('csv')
      ? csvEntries(content.chunks, file.export, order.mapping)
      : ndjsonEntries(content.chunks, order.mapping);
    for await (const group of entries) {
      for (const entry of group) {
        const full = reading.take(entry);
        if (full !== null) await sinks.onBatch?.(full);
        if (reading.isOver()) break;
      }
      sinks.onProgress?.(reading.rows());
      if (reading.isOver()) break;
    }
    reading.finish();
    const last = reading.rest();
    if (last !== null) await sinks.onBatch?.(last);
    // A file that was not read to its end has no hash.
    return reading.result(reading.isOver() ? '' : content.sha256());
  } catch (error) {
    if (!(error instanceof UnreadableContent)) throw error;
    return { kind: error.kind, ...reading.read(''), reason: error.message };
  } finally {
    await content.close();
  }
}

const NO_VALUE = { column: null, value: null } as const;

function readingOf(order: ReadingOrder, sinks: ReadingSinks) {
  const { file, earliest, latest, rows_to_skip } = order;
  const skips = order.bad_rows === 'skip';
  const contentType = CONTENT_TYPE_OF_EXPORT[file.export];
  const streams = order.streams === null ? null : new Set(order.streams);
  const former = new Set(order.former);
  const licensed = new Set(order.licensed);
  const limits = { export: file.export, earliest, latest, estimated: file.window_start === null };
  const match = { exportedAtDefault: order.exported_at_default, photoPath: sinks.photoPath };
  const batch = batchBuilder(sinks.memory);
  const bad = new BadRows();
  /** What is wrong with the file as a whole. */
  const errors: LineError[] = [];
  const unknown = new Map<string, number>();
  const unknownOfBatch = new Map<string, number>();
  const ignored = new Set<string>();
  let rows = 0;
  let isOver = false;
  const noted = { names_without_id: 0, urls_withheld: 0 };
  let trailer: { readonly line: number; readonly rows: number } | null = null;
  /** Rows of the file up to and including the last batch. */
  let rowsThrough = 0;

  /** Whether the file is invalid, as far as it was read. */
  const isBad = () => errors.length > 0 || (!skips && bad.rows > 0);

  /** @returns no batch */
  function fail(error: LineError): null {
    errors.push(error);
    isOver = true;
    return null;
  }

  function addBad(line: number, found: readonly RowError[], row: unknown): void {
    bad.add(line, found, row);
    isOver = skips ? bad.rows > BAD_ROWS_MAX : bad.errors >= order.errors_max;
  }

  /** @returns the last batch; null if there is nothing to pass on */
  function rest(): RowBatch | null {
    if (isBad() || (batch.rows() === 0 && rowsThrough === rows)) return null;
    rowsThrough = rows;
    const full = batch.take(rows, Object.fromEntries(unknownOfBatch));
    unknownOfBatch.clear();
    return full;
  }

  function check(read: ReadRow) {
    const { line, raw, origin } = read;
    sinks.onRow?.(read);
    const checked = checkRow(raw, limits, ignored);
    if (checked.kind === 'bad') {
      if (origin === null) addBad(line, checked.errors, raw);
      else addBad(line, checked.errors.map(origin.named), asGiven(raw, origin));
      return;
    }
    const { row, isNameDropped } = checked;
    if (former.has(row.subscription_id)) return;
    const stream = streamName(row.subscription_id, contentType);
    if (streams?.has(stream) === false) return countUnknown(stream);
    if (isNameDropped) noted.names_without_id += 1;
    /** The URL that customers see. */
    const article_url = shownUrl(row.article_url, row.article_print, licensed.has(row.subscription_id));
    const isWithheld = article_url !== row.article_url;
    if (isWithheld) noted.urls_withheld += 1;
    if (isBad() || sinks.onBatch === undefined) return;
    batch.add({
      id: formatDetectionId(contentType, row.subscription_id, row.source_internal_id, row.article_id),
      rendered: renderRow(contentType, isWithheld ? { ...row, article_url } : row, match),
      url_withheld: isWithheld ? row.article_url : null,
      exported_at_given: row.exported_at,
      first_detected_at: parseSeconds(row.first_detected_at) ?? 0,
      filters: filterValuesOf(contentType, row),
    });
  }

  function countUnknown(stream: string): void {
    const key = unknown.has(stream) || unknown.size < UNKNOWN_STREAMS_MAX ? stream : 'others';
    for (const counts of [unknown, unknownOfBatch]) counts.set(key, (counts.get(key) ?? 0) + 1);
  }

  function read(sha256: string): Pick<ReadingResult, 'counts' | 'skipped'> {
    const counts = {
      sha256,
      rows,
      bad_rows: skips ? bad.rows : 0,
      unknown_rows: Object.fromEntries(unknown),
      ignored_columns: [...ignored].sort(),
      ...noted,
    };
    return { counts, skipped: skips ? bad.notes() : '' };
  }

  return {
    ...{ rest, read },
    rows: () => rows,
    isOver: () => isOver,
    /** @returns a batch once it is full, or after many rows that have no place in it */
    take(entry: RawEntry): RowBatch | null {
      if (trailer !== null)
        return fail({ line: entry.line, ...NO_VALUE, expected: 'no lines after the end_of_export line' });
      if (entry.kind === 'bad file') return fail({ line: entry.line, ...entry.error });
      if (entry.kind === 'trailer') {
        trailer = entry;
        return null;
      }
      rows += 1;
      if (rows > rows_to_skip) {
        if (entry.kind === 'row') check(entry);
        else addBad(entry.line, [entry.error], entry.text);
      }
      const isFull = batch.rows() >= BATCH_ROWS_MAX || rows - rowsThrough >= ROWS_THROUGH_MAX;
      return isFull ? rest() : null;
    },
    finish(): void {
      if (trailer === null) {
        if (order.require_trailer && !formOf(file.name).startsWith('csv') && !isOver)
          fail({ line: 0, ...NO_VALUE, expected: 'a last line {"end_of_export":true,"rows":N}' });
      } else if (trailer.rows !== rows) {
        const expected = `${rows}, the number of rows in the file`;
        fail({ line: trailer.line, column: 'rows', value: trailer.rows, expected });
      }
      // Where most rows are bad, the writer is at fault, and somebody must know.
      const isMostlyBad = bad.rows > BAD_ROWS_IN_ANY_FILE && bad.rows > rows / 10;
      if (isBad() || !(isMostlyBad || bad.rows > BAD_ROWS_MAX)) return;
      const most = isOver
        ? `${grouped(BAD_ROWS_MAX)} bad rows in a file`
        : `${BAD_ROWS_IN_ANY_FILE} bad rows, or 10% of the ${counted(rows, 'row')} in the file`;
      const expected = `at most ${most}, so that they can be skipped`;
      errors.push({ line: 0, column: null, value: bad.rows, expected });
    },
    result(sha256: string): ReadingResult {
      if (!isBad()) return { kind: 'read', ...read(sha256) };
      return { kind: 'bad', ...read(sha256), rows_with_errors: bad.rows, ...bad.all(errors) };
    },
  };
}

/** A row with the file's own values where a mapping could not read them. */
function asGiven(raw: Readonly<Record<string, unknown>>, origin: Origin) {
  const given = Object.entries(raw).map(([name, value]) => {
    return [name, value instanceof Bad ? origin.of(name, null).value_in_file : value] as const;
  });
  return Object.fromEntries(given);
}
