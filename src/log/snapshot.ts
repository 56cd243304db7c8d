/**
 * The snapshot: the entry that starts a rewritten log (compact.ts), in place of the last one that is in it. It has all
 * rows of `detections.db` as ordinary lines (row-lines.ts, effects.ts), so the log is read like any other.
 *
 * | line | for |
 * |---|---|
 * | `put` of `stream` | each stream, so that it keeps its ordinal |
 * | `changed` | each version, ordered by position, so that counting gives the sequence numbers |
 * | `rescored` | after the newest version of a detection, if it was scored again since |
 * | `put` | each row of the other tables |
 *
 * Members that the database keeps only for the newest version are null in older ones.
 */
import { renderedMatchOf } from '../detection/match.ts';
import type { Database } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { LOGGED_TABLES } from './apply-log.ts';
import { STREAM_LINE } from './detection-rows.ts';
import { effectsOfRows } from './effects.ts';
import { type Commit, type Mark, SNAPSHOT } from './format.ts';
import type { LogWriter } from './log-writer.ts';
import { changedLine, type DetectionState, rescoredLine } from './row-lines.ts';
import type { SteppedWork } from './scrub.ts';

type StreamRow = Readonly<Record<'place' | 'position' | 'version', number> & { body: string }>;

/** `place`: of its newest version; `rescored`: null if it was not scored again since that version. */
type Detection = Pick<DetectionState, 'exported_at_given' | 'url_withheld'> &
  Readonly<{ place: number; rescored: string | null }>;

const FRAME_ROWS = 500;

const COUNT_ROWS = 'SELECT coalesce(sum(sequence), 0) FROM stream WHERE removed = 0';
/** The versions of all streams in one order, which no index has. Removed streams are left out. */
export const SELECT_PLACES = `
  SELECT place FROM stream CROSS JOIN stream_row INDEXED BY stream_row_by_position ON place >> 34 = ordinal + 0
  WHERE removed = 0 ORDER BY stream_row.position`;
const SELECT_STREAMS = `SELECT ${STREAM_LINE} FROM stream ORDER BY ordinal`;
const SELECT_ROW = 'SELECT place, position, version, body FROM stream_row WHERE place = ?';

const SELECT_DETECTION = `
  SELECT detection.place AS place, exported_at_given, url_withheld, rescored.body AS rescored
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

function* linesOf(db: Database): Generator<string> {
  for (const line of db.prepare<[], string>(SELECT_STREAMS).pluck().iterate()) yield `${line}\n`;
  const selectRow = db.prepare<unknown[], StreamRow>(SELECT_ROW);
  const selectDetection = db.prepare<unknown[], Detection>(SELECT_DETECTION);
  for (const place of db.prepare<[], number>(SELECT_PLACES).pluck().iterate()) {
    const row = selectRow.get(place);
    if (row === undefined) throw new DatabaseDamage('an index points to a stream row that does not exist');
    const [, id = ''] = STREAM_ROW.exec(row.body) ?? [];
    const current = selectDetection.get(id);
    const where = `position ${row.position} of the stream`;
    if (current === undefined) throw new DatabaseDamage(`${where} belongs to ${id}, which does not exist`);
    yield linesOfRow(id, row, current);
  }
  for (const table of LOGGED_TABLES) for (const line of effectsOfRows(db, table)) yield `${line}\n`;
}

function linesOfRow(id: string, { place, position, version, body }: StreamRow, current: Detection): string {
  const { exported_at_given, url_withheld, rescored } = current;
  const rendered = renderedMatchOf(body);
  const older = { id, rendered, exported_at_given: null, url_withheld: null };
  if (current.place !== place) return changedLine(older, position, version);
  const state = { id, rendered, exported_at_given, url_withheld };
  if (rescored === null) return changedLine(state, position, version);
  const now = { ...state, rendered: renderedMatchOf(rescored) };
  return changedLine(older, position, version) + rescoredLine(now, version);
}
