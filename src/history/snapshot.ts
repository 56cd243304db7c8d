/**
 * The entry with which a log begins anew (`rebuild --log`): all that `detections.db` holds, in the lines of row-lines.ts
 * and effects.ts, so that a log that begins with it is read like any other.
 *
 * | lines | say |
 * |---|---|
 * | `changed` | each row of the stream, in the order of positions, so that sequences come out by counting |
 * | `rescored` | behind the newest version of a detection: where the detection has since been scored again |
 * | `put` of `version_epoch` | before the first detection that has it in its version: a version counts the epochs before it |
 * | `put` | all rows of the other tables |
 *
 * What only the newest version of a detection needs is not known of older ones, and null in them.
 */
import { readMatch, renderedMatchOf, renderStreamRow } from '../detection/match.ts';
import { isSameToSee } from '../detection/merge.ts';
import type { Database } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { effectsOfRows } from './effects.ts';
import { type Commit, SNAPSHOT } from './format.ts';
import type { LogWriter } from './log-writer.ts';
import { LOGGED_TABLES } from './projection.ts';
import { changedLine, rescoredLine } from './row-lines.ts';

export interface SnapshotOptions {
  readonly nowMs: number;
  /** Whether the database was found to be what a log says; without it, its two texts of a detection must agree. */
  readonly isProven: boolean;
  readonly between: () => Promise<void>;
  /** Rows of the stream that are written. */
  readonly onProgress: (done: number, total: number) => void;
}

interface StreamRow {
  readonly position: number;
  readonly body: string;
}

interface Detection {
  readonly version: number;
  readonly exported_at_given: string | null;
  readonly url_withheld: string | null;
  readonly body: string;
  readonly epochs: number;
}

const FRAME_ROWS = 500;
const EPOCHS = 'version_epoch';

const SELECT_ROWS = 'SELECT position, body FROM stream_row WHERE position > ? ORDER BY position LIMIT ?';
const SELECT_DETECTION =
  'SELECT version, exported_at_given, url_withheld, body, epochs FROM detection WHERE id = ?';
const COUNT_ROWS = 'SELECT count(*) AS rows FROM stream_row';

const STREAM_ROW = /^\{"id":"([^"]+)","version":(\d+),/;

/**
 * Writes the entry, and makes it durable.
 *
 * @param db nobody else writes to it
 * @throws DatabaseDamage where a row is not what this program writes; LogFailure
 */
export async function writeSnapshot(
  db: Database,
  log: LogWriter,
  { nowMs, isProven, between, onProgress }: SnapshotOptions,
): Promise<Commit> {
  const total = db.prepare<unknown[], { rows: number }>(COUNT_ROWS).get()?.rows ?? 0;
  const selectRows = db.prepare<unknown[], StreamRow>(SELECT_ROWS);
  const lines = new RowLines(db, isProven);
  let done = 0;
  for (let position = -1; ; ) {
    const rows = selectRows.all(position, FRAME_ROWS);
    const last = rows.at(-1);
    if (last === undefined) break;
    log.append(rows.map((row) => lines.of(row)).join(''));
    position = last.position;
    done += rows.length;
    onProgress(done, total);
    await between();
  }
  appendSome(log, lines.rest());
  for (const table of LOGGED_TABLES) if (table !== EPOCHS) appendTable(db, log, table);
  return log.commit('', { kind: SNAPSHOT }, nowMs);
}

class RowLines {
  readonly #isProven: boolean;
  readonly #selectDetection;
  /** Lines of version epochs, the next one first. */
  readonly #epochs: string[];
  #epochsSaid = 0;

  constructor(db: Database, isProven: boolean) {
    this.#isProven = isProven;
    this.#selectDetection = db.prepare<unknown[], Detection>(SELECT_DETECTION);
    this.#epochs = [...effectsOfRows(db, EPOCHS)];
  }

  of({ position, body }: StreamRow): string {
    const [, id = '', digits = ''] = STREAM_ROW.exec(body) ?? [];
    const version = Number(digits);
    const rendered = renderedMatchOf(body);
    if (renderStreamRow(id, version, rendered) !== body)
      throw new DatabaseDamage(
        `the row of the stream at position ${position} is not a version of a detection`,
      );
    const current = this.#selectDetection.get(id);
    if (current === undefined)
      throw new DatabaseDamage(`position ${position} of the stream is of ${id}, which is not there`);
    const older = { id, rendered, exported_at_given: null, url_withheld: null };
    if (current.version !== version) return changedLine(older, position, version);
    const { exported_at_given, url_withheld, epochs } = current;
    const state = { id, rendered: renderedMatchOf(current.body), exported_at_given, url_withheld };
    const before = this.#epochsUpTo(epochs);
    const isSame = state.rendered === rendered;
    // Scored again, it looks the same, or it would have a version of its own.
    if (!isSame && !this.#isProven && !isSameText(rendered, state.rendered))
      throw new DatabaseDamage(`${id} is not what its version ${version} says in the stream`);
    return isSame
      ? `${before}${changedLine(state, position, version)}`
      : `${before}${changedLine(older, position, version)}${rescoredLine(state, version)}`;
  }

  /** Epochs that no version has yet. */
  rest(): string {
    return this.#epochsUpTo(this.#epochs.length);
  }

  #epochsUpTo(epochs: number): string {
    const lines = this.#epochs.slice(this.#epochsSaid, epochs);
    this.#epochsSaid = Math.max(this.#epochsSaid, epochs);
    return lines.map((line) => `${line}\n`).join('');
  }
}

function isSameText(a: string, b: string): boolean {
  try {
    return isSameToSee(readMatch(a), readMatch(b));
  } catch {
    // One of them is no JSON.
    return false;
  }
}

function appendTable(db: Database, log: LogWriter, table: string): void {
  let lines: string[] = [];
  for (const line of effectsOfRows(db, table)) {
    lines.push(`${line}\n`);
    if (lines.length < FRAME_ROWS) continue;
    log.append(lines.join(''));
    lines = [];
  }
  appendSome(log, lines.join(''));
}

function appendSome(log: LogWriter, lines: string): void {
  if (lines !== '') log.append(lines);
}
