/**
 * The snapshot: the entry that starts a rewritten log (compact.ts), in place of the last one that is in it. It has all
 * rows of `detections.db` as ordinary lines (row-lines.ts, effects.ts), so the log is read like any other.
 *
 * | line | for |
 * |---|---|
 * | `changed` | each version, ordered by position, so that counting gives the sequence numbers |
 * | `rescored` | after the newest version of a detection, if it was scored again since |
 * | `put` of `stream` | a removed stream, before the first version of the stream with the next ordinal |
 * | `put` of `version_epoch` | an epoch, before the first detection that has it in its version |
 * | `put` | each row of the other tables |
 *
 * Members that the database keeps only for the newest version are null in older ones.
 */
import { renderedMatchOf } from '../detection/match.ts';
import type { Database } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { ordinalOf } from '../store/stream-place.ts';
import { ENDED_TABLE, LOGGED_TABLES } from './apply-log.ts';
import { givenOf } from './detection-rows.ts';
import { effectsOfRows } from './effects.ts';
import { type Commit, type Mark, SNAPSHOT } from './format.ts';
import type { LogWriter } from './log-writer.ts';
import { changedLine, rescoredLine } from './row-lines.ts';
import type { SteppedWork } from './scrub.ts';

interface StreamRow {
  readonly place: number;
  readonly position: number;
  readonly version: number;
  readonly body: string;
}

interface Detection {
  /** Where its newest version is. */
  readonly place: number;
  /** See {@link givenOf}. */
  readonly exported_at_given: string | null;
  readonly url_withheld: string | null;
  readonly epochs: number;
  /** Null: it was not scored again since that version. */
  readonly rescored: string | null;
}

const FRAME_ROWS = 500;
const EPOCHS = 'version_epoch';

const COUNT_ROWS = 'SELECT coalesce(sum(sequence), 0) FROM stream WHERE removed = 0';
/** The versions of all streams in one order, which no index has. Removed streams are left out. */
export const SELECT_PLACES = `
  SELECT place FROM stream CROSS JOIN stream_row INDEXED BY stream_row_by_position ON place >> 34 = ordinal + 0
  WHERE removed = 0 ORDER BY stream_row.position`;
const SELECT_ROW = 'SELECT place, position, version, body FROM stream_row WHERE place = ?';

const SELECT_DETECTION = `
  SELECT detection.place AS place, exported_at_given, url_withheld, epochs, rescored.body AS rescored
  FROM detection LEFT JOIN rescored ON rescored.place = detection.place WHERE id = ?`;

const STREAM_ROW = /^\{"id":"([^"]+)"/;

/**
 * Writes the snapshot, and makes it durable.
 * @param db a view on one state of it: in a transaction, or nobody else writes
 * @param mark of the last entry in the database, whose place it takes
 * @throws DatabaseDamage if a row belongs to no detection; LogFailure. Other damage shows when the database is compared
 *   with the snapshot
 */
export async function writeSnapshot(
  db: Database,
  log: LogWriter,
  mark: Mark,
  { nowMs, between, onProgress }: SteppedWork & { readonly nowMs: number },
): Promise<Commit> {
  const total = db.prepare<[], number>(COUNT_ROWS).pluck().get() ?? 0;
  let frame: string[] = [];
  let done = 0;
  for (const lines of linesOf(db)) {
    done += 1;
    if (frame.push(lines) < FRAME_ROWS) continue;
    log.append(frame.join(''));
    frame = [];
    onProgress('writing', Math.min(done, total), total);
    await between();
  }
  return log.commit(frame.join(''), { kind: SNAPSHOT }, nowMs, mark);
}

/** The lines of each version, then of each row of the other tables. */
function* linesOf(db: Database): Generator<string> {
  const selectRow = db.prepare<unknown[], StreamRow>(SELECT_ROW);
  const lines = rowLines(db);
  for (const place of db.prepare<[], number>(SELECT_PLACES).pluck().iterate()) {
    const row = selectRow.get(place);
    if (row === undefined) throw new DatabaseDamage('an index points to a stream row that does not exist');
    yield lines.of(row);
  }
  yield lines.rest();
  for (const table of LOGGED_TABLES.filter((name) => name !== EPOCHS))
    for (const line of effectsOfRows(db, table)) yield `${line}\n`;
}

function rowLines(db: Database) {
  const selectDetection = db.prepare<unknown[], Detection>(SELECT_DETECTION);
  const epochsUpTo = linesUpTo(db, EPOCHS, ({ number }) => number);
  /** Streams appear in the order of their ordinals, so the removed ones between two others are written before the second. */
  const removedUpTo = linesUpTo(db, ENDED_TABLE, ({ ordinal, removed }) => (removed === 1 ? ordinal : null));

  function lineOf({ place, position, version, body }: StreamRow): string {
    const [, id = ''] = STREAM_ROW.exec(body) ?? [];
    const current = selectDetection.get(id);
    if (current === undefined)
      throw new DatabaseDamage(`position ${position} of the stream belongs to ${id}, which does not exist`);
    const rendered = renderedMatchOf(body);
    const removed = removedUpTo(ordinalOf(place));
    const older = { id, rendered, exported_at_given: null, url_withheld: null };
    if (current.place !== place) return `${removed}${changedLine(older, position, version)}`;
    const { url_withheld, epochs, rescored } = current;
    const exported_at_given = givenOf(current.exported_at_given, rescored ?? body);
    const state = { id, rendered, exported_at_given, url_withheld };
    const before = `${removed}${epochsUpTo(epochs)}`;
    if (rescored === null) return `${before}${changedLine(state, position, version)}`;
    const now = { ...state, rendered: renderedMatchOf(rescored) };
    return `${before}${changedLine(older, position, version)}${rescoredLine(now, version)}`;
  }

  return {
    of: lineOf,
    /** The remaining epochs and removed streams. */
    rest: () => epochsUpTo(Number.POSITIVE_INFINITY) + removedUpTo(Number.POSITIVE_INFINITY),
  };
}

/**
 * The lines of a table's rows, each once.
 * @param numberOf ascending with the rows; null: the row has no line
 * @returns the next lines, of rows with numbers up to the given one
 */
function linesUpTo(
  db: Database,
  table: string,
  numberOf: (row: Record<string, number>) => number | null | undefined,
): (number: number) => string {
  const all = [...effectsOfRows(db, table)].flatMap((line) => {
    const number = numberOf(JSON.parse(line).row);
    return number === null || number === undefined ? [] : [{ number, line }];
  });
  let written = 0;
  return (upTo) => {
    let lines = '';
    for (; ; written += 1) {
      const next = all[written];
      if (next === undefined || next.number > upTo) return lines;
      lines += `${next.line}\n`;
    }
  };
}
