/**
 * A page of the change stream never says less than there is: what its rows state about themselves is held against what
 * the streams state before the page is sent.
 *
 * One flipped bit in a database can hide rows from a query that finds no error: an index that leads past them, a row
 * that lies under another position. A client would move its cursor past what it never saw, for good. So the rows of a
 * page must be those between two known ones: of each stream, the last at or before the cursor, and the last at or before
 * the position that was reached, which is looked for from the other side; where nothing is said to be left, the end that
 * the stream itself records. Sequence numbers have no gaps, so these two say how many rows there are, and which.
 *
 * It judges raw rows, so it holds for requests without filters. What a filter leaves out has no number to be missed.
 */
import { isUtf8 } from 'node:buffer';
import type { Database } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { preparedOnce, statementFamily, streamArms, streamValues } from './statements.ts';

/** What the rows of a page come to: of {@link SUMS_SQL}, or {@link sumsOf}. */
export interface RowSums {
  readonly rows: number;
  readonly sequences: number | null;
  readonly streams: number | null;
}

/** Stream numbers are large: their sum over a page must stay a safe integer. */
const STREAM_MODULUS = 1_000_003;

/**
 * Columns of a page, cheap enough for every one: a row that is missing, stands twice, or is of another stream changes a
 * sum. `endings` counts the texts that end as an object does: where the head of a record is damaged, they do not.
 */
export const SUMS_SQL = `count(*) AS rows, sum(row.sequence) AS sequences, sum(row.stream % ${STREAM_MODULUS}) AS streams,
    sum(substr(CAST(row.body AS BLOB), -1) = x'7d') AS endings`;

export function sumsOf(rows: readonly { readonly stream: number; readonly sequence: number }[]): RowSums {
  let sequences = 0;
  let streams = 0;
  for (const { stream, sequence } of rows) {
    sequences += sequence;
    streams += stream % STREAM_MODULUS;
  }
  return { rows: rows.length, sequences, streams };
}

/** @throws DatabaseDamage where the page is not made of so many texts, each of which could be an object in JSON */
export function checkText(data: Buffer, { rows, endings }: { rows: number; endings: number | null }): void {
  if (endings !== rows) throw new DatabaseDamage('a row of the stream holds no text of a detection');
  requireUtf8(data);
}

/** Where a database was overwritten, what stands there is seldom text. @throws DatabaseDamage */
export function requireUtf8(text: Buffer): void {
  if (!isUtf8(text)) throw new DatabaseDamage('a row of the stream is not valid UTF-8');
}

/**
 * Call it within the snapshot of the page.
 *
 * @param start the position behind which the page begins
 * @param reached the position up to which it read; null where it says that nothing is left in its streams
 * @throws DatabaseDamage when rows are missing, stand twice, or are of another stream
 */
export function checkRows(
  db: Database,
  streams: readonly number[],
  { start, reached, sums }: { start: number; reached: number | null; sums: RowSums },
): void {
  const values = streamValues(streams);
  const before = sequencesByStream(lastUpTo(db, streams.length, '').all({ ...values, position: start }));
  const after = sequencesByStream(
    reached === null
      ? heads(db, streams.length, '').all(values)
      : lastUpTo(db, streams.length, '').all({ ...values, position: reached }),
  );
  const expected = { rows: 0, sequences: 0, streams: 0 };
  for (const stream of streams) {
    const [from, to] = [before.get(stream) ?? 0, after.get(stream) ?? 0];
    const rows = to - from;
    if (rows < 0)
      throw new DatabaseDamage(`stream ${stream}: sequence ${from} is followed by its end, ${to}`);
    expected.rows += rows;
    expected.sequences += (rows * (from + 1 + to)) / 2;
    expected.streams += rows * (stream % STREAM_MODULUS);
  }
  const found = { rows: sums.rows, sequences: sums.sequences ?? 0, streams: sums.streams ?? 0 };
  if (
    found.rows !== expected.rows ||
    found.sequences !== expected.sequences ||
    found.streams !== expected.streams
  )
    throw new DatabaseDamage(
      `the change stream behind position ${start} has ${expected.rows} rows for a page, of which ${found.rows} are found; their sequence numbers add up to ${found.sequences}, not ${expected.sequences}`,
    );
}

/** The greatest position of all rows that was held against the ends that the streams record. */
const checkedHeads = new WeakMap<Database, number>();

/** Whether {@link checkHead} has found nothing wrong with this head: then a poll needs no transaction. */
export function isCheckedHead(db: Database, head: number): boolean {
  return checkedHeads.get(db) === head;
}

/**
 * Every page relies on the greatest position of all rows. Call it within the snapshot in which that was read; it asks
 * the streams once for each head, not for each request.
 *
 * @throws DatabaseDamage when a stream records a row behind it
 */
export function checkHead(db: Database, head: number): void {
  if (isCheckedHead(db, head)) return;
  const recorded = recordedHead(db).get()?.position ?? 0;
  if (recorded > head)
    throw new DatabaseDamage(`a stream ends at position ${recorded}, but all rows end at ${head}`);
  checkedHeads.set(db, head);
}

function sequencesByStream(places: readonly Place[]): Map<number, number> {
  return new Map(places.map(({ stream, sequence }) => [stream, sequence]));
}

interface Place {
  readonly stream: number;
  readonly sequence: number;
}

/** The last row of each stream at or before a position. */
export function lastUpToSql(streams: number): string {
  const arms = streamArms(
    streams,
    (ofStream) => `SELECT * FROM (SELECT stream, sequence FROM stream_row
      WHERE ${ofStream} AND position <= @position ORDER BY position DESC LIMIT 1)`,
  );
  return arms.join(' UNION ALL ');
}

/** The end that each stream records. */
export function headsSql(streams: number): string {
  const arms = streamArms(
    streams,
    (ofStream) => `SELECT stream, sequence FROM stream_head WHERE ${ofStream}`,
  );
  return arms.join(' UNION ALL ');
}

const RECORDED_HEAD = 'SELECT max(position) AS position FROM stream_head';

const lastUpTo = statementFamily<Place>(lastUpToSql);
const heads = statementFamily<Place>(headsSql);
const recordedHead = preparedOnce<{ position: number | null }>(RECORDED_HEAD);
