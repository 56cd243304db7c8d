/**
 * Applies batches of rows to the detections and the stream, within the caller's transaction, and appends the outcome of
 * each row to the log. Most rows are new: a row is inserted first, and merged only if its detection exists.
 */
import { filterValues, readMatch, renderedMatchOf, renderMatch } from '../../detection/match.ts';
import { type Known, merge, type Outcome, type Scoring } from '../../detection/merge.ts';
import type { DetectionRows, StoredDetection } from '../../log/detection-rows.ts';
import type { LogWriter } from '../../log/log-writer.ts';
import { changedLine, createdLine, passedLine, rescoredLine } from '../../log/row-lines.ts';
import { epochsIn, epochTimes, positionOfClock } from '../../log/version-epoch.ts';
import type { Database } from '../../store/database.ts';
import { parseSeconds } from '../../time.ts';
import { type RowBatch, scoringOf, stateOf } from '../reading/row-batch.ts';

/**
 * A removed subscription leaves no rows, but `stream` and `delivery` still have its last position. After a version epoch,
 * positions continue beyond all that may have been issued and lost.
 */
const SELECT_LAST_POSITION = `
  SELECT max(
    coalesce((SELECT max(position) FROM stream), 0),
    coalesce((SELECT last_position FROM delivery ORDER BY first_position DESC LIMIT 1), 0),
    coalesce((SELECT max(position) FROM version_epoch), 0)
  ) AS position`;

const SELECT_CHANGED_STREAMS =
  'SELECT ordinal FROM stream WHERE removed = 0 AND position > ? ORDER BY ordinal';
/** The detections of a stream that last changed between two positions. The id is the first member of a row's text. */
export const SELECT_CHANGED = `
  SELECT substr(body, 8, instr(substr(body, 8), '"') - 1) AS id, position
  FROM stream_row
  WHERE place >> 34 = @ordinal AND position > @after AND position <= @end
    AND place = (SELECT place FROM detection WHERE id = substr(body, 8, instr(substr(body, 8), '"') - 1))
  ORDER BY position LIMIT @limit`;

const REISSUED_A_FRAME = 500;

/** By how much a version epoch raises versions: far more than a detection gathers in what may be lost. */
const RAISE_VERSIONS = 1000;

export type ApplyCounts = Record<Outcome['kind'], number>;

export const NO_COUNTS: Readonly<ApplyCounts> = { created: 0, updated: 0, rescored: 0, unchanged: 0 };

/** What is counted in `b`, in both together. */
export function sumOf<Name extends string>(
  a: Readonly<Record<NoInfer<Name>, number>>,
  b: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const sums: Record<Name, number> = { ...a };
  for (const name in b) sums[name] = (sums[name] ?? 0) + b[name];
  return sums;
}

type ApplyOptions = Readonly<{ db: Database; rows: DetectionRows; log: LogWriter }> &
  Readonly<{ lastPosition: number; nowMs: number; licensed: ReadonlySet<number> }>;

export type Applier = ReturnType<typeof rowApplier>;

/**
 * Applies rows in one transaction: `apply` any number of batches, then `finish` before the commit. Positions only grow: each
 * is the last one plus 1, or the time in microseconds and a year for each version epoch, whichever is greater.
 */
export function rowApplier({ db, rows, log, lastPosition, nowMs, licensed }: ApplyOptions) {
  const counts: ApplyCounts = { ...NO_COUNTS };
  const epochsMs = epochTimes(db);
  const before = Math.max(lastPosition, positionOfClock(nowMs, epochsMs.length) - 1);
  let position = before;
  // A transaction that was rolled back may have left rows.
  rows.forget();

  /** @param next the version without new epochs; @param epochs the number of epochs that the previous version includes */
  function change(state: ReturnType<typeof stateOfKnown>, next: number, epochs: number): string {
    const version = next + RAISE_VERSIONS * (epochsMs.length - epochs);
    position += 1;
    rows.change(state, version, position);
    return changedLine(state, position, version);
  }

  /** @returns its line for the log; empty if the row changed nothing */
  function mergeRow(id: string, scoring: Scoring): string {
    const stored = rows.find(id);
    if (stored === undefined) throw new Error(`detection ${id} is neither new nor stored`);
    const outcome = merge(toKnown(stored), scoring, licensed.has(scoring.match.subscription_id));
    counts[outcome.kind] += 1;
    if (outcome.kind === 'unchanged') return '';
    const { known } = outcome;
    const state = stateOfKnown(id, known);
    if (outcome.kind === 'updated') return change(state, known.version, epochsIn(db, stored.position));
    rows.rescore(state, known.version);
    return rescoredLine(state, known.version);
  }

  /** All are found first: each search writes the versions that are pending, which go faster in a row. */
  function reissued(ids: readonly string[]): string {
    const found = ids.map((id) => ({ id, stored: rows.find(id) }));
    const lines = found.map(({ id, stored }) => {
      if (stored === undefined) return '';
      const epochs = epochsIn(db, stored.position);
      // It was announced already.
      if (epochs === epochsMs.length) return '';
      return change(stateOfKnown(id, toKnown(stored)), stored.version + 1, epochs);
    });
    return lines.join('');
  }

  return {
    counts,
    apply(batch: RowBatch): void {
      const outcomes = Array.from(batch.ids, (id, row): RowOutcome => {
        const state = stateOf(batch, row, id);
        // What was detected after an epoch began cannot have been known before it.
        const raises = epochsMs.filter((atMs) => state.first_detected_at * 1000 < atMs).length;
        const version = 1 + RAISE_VERSIONS * raises;
        if (!rows.create(state, version, position + 1)) return mergeRow(id, scoringOf(batch, row));
        counts.created += 1;
        position += 1;
        return { position, version };
      });
      rows.flush();
      // Without new detections, the lines of the changed ones are enough for the log.
      const hasCreated = outcomes.some((outcome) => typeof outcome !== 'string');
      if (hasCreated) log.appendFrame(batch.frame);
      log.append(hasCreated ? outcomeLines(outcomes) : outcomes.join(''));
    },
    /** Ends the streams of a subscription; its rows are deleted later. */
    removeSubscription: (subscription: number) => log.append(rows.end(subscription)),
    /**
     * Announces every detection that changed after a position again, in a new version, and those that are named: it is
     * unknown which versions clients have. Call it first in a transaction.
     */
    reissue({ parted, undone = new Set() }: { parted: number; undone?: ReadonlySet<string> }): void {
      const end = position;
      const streams = db.prepare<unknown[], { ordinal: number }>(SELECT_CHANGED_STREAMS).all(parted);
      const changed = db.prepare<unknown[], { id: string; position: number }>(SELECT_CHANGED);
      for (const { ordinal } of streams)
        for (let after: number | undefined = parted; after !== undefined; ) {
          const batch = changed.all({ ordinal, after, end, limit: REISSUED_A_FRAME });
          log.append(reissued(batch.map(({ id }) => id)));
          after = batch.at(-1)?.position;
        }
      for (const id of undone) log.append(reissued([id]));
    },
    /** Writes the heads of the streams. Nothing may be applied after it. @returns the first position; 0: nothing was added */
    finish(): number {
      rows.finish();
      if (position === before) return 0;
      const insert = db.prepare('INSERT INTO delivery (first_position, last_position) VALUES (?, ?)');
      insert.run(before + 1, position);
      return before + 1;
    },
  };
}

/** Where a new detection is; otherwise the line of a row for the log, empty if it changed nothing. */
type RowOutcome = { readonly position: number; readonly version: number } | string;

/** The outcomes of a batch's rows, in order, as lines for the log: one line for consecutive rows of the same outcome. */
function outcomeLines(outcomes: readonly RowOutcome[]): string {
  let lines = '';
  for (let at = 0; at < outcomes.length; ) {
    const first = outcomes[at] ?? '';
    let rows = 1;
    if (typeof first === 'string') {
      // The last one may have a line of its own.
      for (; outcomes[at + rows - 1] === '' && typeof outcomes[at + rows] === 'string'; ) rows += 1;
      lines += passedLine(rows) + outcomes[at + rows - 1];
    } else {
      const { position, version } = first;
      const isNext = (next: RowOutcome | undefined) =>
        typeof next === 'object' && next.position === position + rows && next.version === version;
      while (isNext(outcomes[at + rows])) rows += 1;
      lines += createdLine(rows, position, version);
    }
    at += rows;
  }
  return lines;
}

/** 0 in a new database. */
export const lastPosition = (db: Database): number =>
  db.prepare<unknown[], { position: number }>(SELECT_LAST_POSITION).get()?.position ?? 0;

/** The stored detection, as {@link merge} takes it; null if there is none. */
export function findKnown(rows: DetectionRows, id: string): Known | null {
  const stored = rows.find(id);
  return stored === undefined ? null : toKnown(stored);
}

function toKnown(stored: StoredDetection): Known {
  const match = readMatch(renderedMatchOf(stored.body));
  const urlShown = match.article.url;
  match.article.url = stored.url_withheld ?? urlShown;
  const { exported_at_given, version } = stored;
  return { match, exported_at_given, version, url_shown: urlShown };
}

function stateOfKnown(id: string, { match, exported_at_given, url_shown }: Known) {
  return {
    id,
    rendered: renderMatch({ ...match, article: { ...match.article, url: url_shown } }),
    exported_at_given,
    url_withheld: url_shown === match.article.url ? null : match.article.url,
    first_detected_at: parseSeconds(match.first_detected_at) ?? 0,
    filters: filterValues(match),
  };
}
