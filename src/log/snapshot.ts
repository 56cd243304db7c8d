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

export interface SnapshotOptions {
  readonly nowMs: number;
  /** The mark of the last entry in the database, whose place the snapshot takes. */
  readonly mark: Mark;
  readonly between: () => Promise<void>;
  /** In versions. */
  readonly onProgress: (done: number, total: number) => void;
}

interface StreamRow {
  readonly number: number;
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

/** The versions of all streams in one order, which no index has. Removed streams are left out. */
const CREATE_ORDER = 'CREATE TEMP TABLE row_order (number INTEGER PRIMARY KEY, place INTEGER NOT NULL)';
export const INSERT_ORDER = `
  INSERT INTO temp.row_order (place)
  SELECT place FROM stream CROSS JOIN stream_row INDEXED BY stream_row_by_position ON place >> 34 = ordinal + 0
  WHERE removed = 0 ORDER BY stream_row.position`;
const DROP_ORDER = 'DROP TABLE IF EXISTS temp.row_order';
const SELECT_ROWS = `
  SELECT number, row.place AS place, position, version, body
  FROM (SELECT number, place FROM temp.row_order WHERE number > ? ORDER BY number LIMIT ?) AS page
    CROSS JOIN stream_row AS row ON row.place = page.place
  ORDER BY number`;

const SELECT_DETECTION = `
  SELECT detection.place AS place, exported_at_given, url_withheld, epochs, rescored.body AS rescored
  FROM detection LEFT JOIN rescored ON rescored.place = detection.place WHERE id = ?`;

const STREAM_ROW = /^\{"id":"([^"]+)"/;

/**
 * Writes the snapshot, and makes it durable.
 * @param db a view on one state of it: in a transaction, or nobody else writes
 * @throws DatabaseDamage if a row belongs to no detection; LogFailure. Other damage shows when the database is compared
 *   with the snapshot
 */
export async function writeSnapshot(
  db: Database,
  log: LogWriter,
  { nowMs, mark, between, onProgress }: SnapshotOptions,
): Promise<Commit> {
  const lines = rowLines(db);
  db.exec(`${DROP_ORDER}; ${CREATE_ORDER}; ${INSERT_ORDER}`);
  try {
    const total = db.prepare<[], number>('SELECT count(*) FROM temp.row_order').pluck().get() ?? 0;
    const selectRows = db.prepare<unknown[], StreamRow>(SELECT_ROWS);
    for (let done = 0; done < total; done += FRAME_ROWS) {
      const rows = selectRows.all(done, FRAME_ROWS);
      if (rows.length < Math.min(FRAME_ROWS, total - done))
        throw new DatabaseDamage('an index points to a stream row that does not exist');
      log.append(rows.map((row) => lines.of(row)).join(''));
      onProgress(done + rows.length, total);
      await between();
    }
  } finally {
    db.exec(DROP_ORDER);
  }
  log.append(lines.rest());
  for (const table of LOGGED_TABLES) if (table !== EPOCHS) appendTable(db, log, table);
  return log.commit('', { kind: SNAPSHOT }, nowMs, mark);
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

function appendTable(db: Database, log: LogWriter, table: string): void {
  let lines: string[] = [];
  for (const line of effectsOfRows(db, table)) {
    lines.push(`${line}\n`);
    if (lines.length < FRAME_ROWS) continue;
    log.append(lines.join(''));
    lines = [];
  }
  log.append(lines.join(''));
}
