/** The ledger of export windows and their statuses. */
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { WINDOW_MS } from '../time.ts';
import { isHistory, type ResettableStatus, type WindowStatus } from './window-states.ts';

export interface ExportWindow {
  readonly export: ExportName;
  /** Epoch milliseconds. */
  readonly window_start: number;
  readonly status: WindowStatus;
  /** When it got this status, epoch milliseconds. */
  readonly since: number;
  /** The ingest number of the file that changed it. */
  readonly file: number | null;
}

/** Epoch milliseconds, both. */
export interface Expectation {
  readonly expected_from: number;
  /** All windows before it are in the ledger: no search is needed. */
  readonly looked_through: number;
}

const SELECT_WINDOW = `
  SELECT export, window_start, status, since, file FROM export_window
  WHERE export = :export AND window_start = :window_start`;

const UPSERT_WINDOW = `
  INSERT INTO export_window (export, window_start, status, since, file)
  VALUES (:export, :window_start, :status, :since, :file)
  ON CONFLICT (export, window_start)
  DO UPDATE SET status = excluded.status, since = excluded.since, file = excluded.file`;

/** By the index of windows that are not done: there are few of them. */
export const SELECT_RESETTABLE = `
  SELECT window_start, status FROM export_window
  WHERE status <> 'done' AND export = :export AND status IN ('failed', 'abandoned')`;

const SELECT_NEWEST_DONE = `
  SELECT max(window_start) AS window_start FROM export_window WHERE export = :export AND status = 'done'`;

const SELECT_WINDOWS = `
  SELECT export, window_start, status, since, file FROM export_window
  WHERE (:export IS NULL OR export = :export) AND (:status IS NULL OR status = :status)
  ORDER BY window_start DESC, export LIMIT :limit`;

const INSERT_EXPECTATION = `
  INSERT INTO export_expectation (export, expected_from, looked_through)
  VALUES (:export, :window_start, :window_start) ON CONFLICT (export) DO NOTHING`;

const SET_EXPECTATION = `
  INSERT INTO export_expectation (export, expected_from, looked_through)
  VALUES (:export, :window_start, :window_start)
  ON CONFLICT (export) DO UPDATE
  SET expected_from = excluded.expected_from, looked_through = excluded.looked_through`;

const DELETE_NOT_EXPECTED = `
  DELETE FROM export_window
  WHERE export = :export AND status IN ('missing', 'abandoned') AND window_start < :window_start`;

const SELECT_EXPECTATION = 'SELECT expected_from, looked_through FROM export_expectation WHERE export = ?';
const SET_LOOKED_THROUGH = `
  UPDATE export_expectation SET looked_through = :looked_through
  WHERE export = :export AND looked_through <> :looked_through`;

const SELECT_BETWEEN = `
  SELECT export, window_start, status, since, file FROM export_window
  WHERE export = :export AND window_start >= :from AND window_start < :to`;

export const COUNT_WINDOWS = `
  SELECT count(*) AS windows FROM export_window
  WHERE export = :export AND status = :status AND window_start >= :from`;

const SELECT_EXPECTATIONS =
  'SELECT export, expected_from, looked_through FROM export_expectation ORDER BY export';

export const COUNT_KNOWN = `
  SELECT count(*) AS windows FROM export_window
  WHERE export = :export AND window_start >= :from AND window_start < :to`;

/** The first known window with nothing known of the next one, or the last one with nothing known of the one before. */
export const FIRST_BEFORE_GAP = besideGap('ASC', WINDOW_MS);
export const LAST_BEHIND_GAP = besideGap('DESC', -WINDOW_MS);

function besideGap(order: 'ASC' | 'DESC', step: number): string {
  return `
  SELECT window_start FROM export_window AS known
  WHERE export = :export AND window_start >= :from AND window_start < :to AND NOT EXISTS (
    SELECT 1 FROM export_window AS other
    WHERE other.export = :export AND other.window_start = known.window_start + ${step})
  ORDER BY window_start ${order} LIMIT 1`;
}

const SELECT_LONG_MISSING = `
  SELECT export, window_start, status, since, file FROM export_window
  WHERE export = :export AND status = 'missing' AND window_start > :after AND since <= :before
  ORDER BY window_start LIMIT :limit`;

const DELETE_NOT_YET_DUE = `
  DELETE FROM export_window
  WHERE export = :export AND status IN ('missing', 'abandoned') AND window_start >= :from`;

const SELECT_LOOK = 'SELECT looked_at FROM window_look WHERE id = 1';
const DELETE_LOOK = 'DELETE FROM window_look';
const UPSERT_LOOK = `
  INSERT INTO window_look (id, looked_at) VALUES (1, ?)
  ON CONFLICT (id) DO UPDATE SET looked_at = excluded.looked_at`;

export function findWindow(
  db: Database,
  exportName: ExportName,
  windowStart: number,
): ExportWindow | undefined {
  return db
    .prepare<unknown[], ExportWindow>(SELECT_WINDOW)
    .get({ export: exportName, window_start: windowStart });
}

export function listWindows(
  db: Database,
  wanted: {
    readonly export: ExportName | null;
    readonly status: WindowStatus | null;
    readonly limit: number;
  },
): ExportWindow[] {
  return db.prepare<unknown[], ExportWindow>(SELECT_WINDOWS).all(wanted);
}

/** The failed and the abandoned windows of an export, by start in epoch milliseconds. */
export function resettableWindows(db: Database, exportName: ExportName): Map<number, ResettableStatus> {
  const rows = db
    .prepare<unknown[], { window_start: number; status: ResettableStatus }>(SELECT_RESETTABLE)
    .all({ export: exportName });
  return new Map(rows.map(({ window_start, status }) => [window_start, status]));
}

/** The end of an export's newest finished window, epoch milliseconds; null when none is finished. */
export function newestDone(db: Database, exportName: ExportName): number | null {
  const row = db
    .prepare<unknown[], { window_start: number | null }>(SELECT_NEWEST_DONE)
    .get({ export: exportName });
  return row === undefined || row.window_start === null ? null : row.window_start + WINDOW_MS;
}

/**
 * The end of the newest finished window of all exports, epoch milliseconds; 0 while there is none. A clock that is
 * behind it is wrong.
 *
 * It can be trusted even when our own clock was ahead for a while: the agency names a window's file once the window
 * has ended by the agency's clock, so a file that was read then is no newer than what the agency had written. Delivery
 * times prove nothing about the clock: they come from our own, and keep a jump ahead after it was corrected.
 */
export function newestWindowEnd(db: Database): number {
  return Math.max(...EXPORT_NAMES.map((name) => newestDone(db, name) ?? 0));
}

export function setWindow(db: Database, window: ExportWindow): void {
  db.prepare(UPSERT_WINDOW).run(window);
  // Windows are expected from the first one that finishes. No later one changes that.
  if (window.status === 'done' && !isHistory(window.window_start, window.since))
    db.prepare(INSERT_EXPECTATION).run(window);
}

/**
 * Sets from which window on those of an export are expected, and forgets what was said of earlier ones whose files
 * never came: files that are held for them are read. The next search is due at once.
 *
 * @returns how many windows are no longer missing or abandoned
 */
export function expectFrom(db: Database, exportName: ExportName, windowStartMs: number): number {
  db.prepare(SET_EXPECTATION).run({ export: exportName, window_start: windowStartMs });
  const { changes } = db
    .prepare(DELETE_NOT_EXPECTED)
    .run({ export: exportName, window_start: windowStartMs });
  db.prepare(DELETE_LOOK).run();
  return changes;
}

/** The first expected window of an export; null while none has finished. */
export function readExpectation(db: Database, exportName: ExportName): Expectation | null {
  return db.prepare<unknown[], Expectation>(SELECT_EXPECTATION).get(exportName) ?? null;
}

export function setLookedThrough(db: Database, exportName: ExportName, windowStartMs: number): void {
  db.prepare(SET_LOOKED_THROUGH).run({ export: exportName, looked_through: windowStartMs });
}

/** How many of an export's windows from one on have a status; `from` in epoch milliseconds. */
export function countWindows(
  db: Database,
  exportName: ExportName,
  status: WindowStatus,
  from: number,
): number {
  const row = db
    .prepare<unknown[], { windows: number }>(COUNT_WINDOWS)
    .get({ export: exportName, status, from });
  return row?.windows ?? 0;
}

/** The known windows of an export in `[from, to)`, epoch milliseconds. */
export function windowsBetween(
  db: Database,
  exportName: ExportName,
  from: number,
  to: number,
): ExportWindow[] {
  return db.prepare<unknown[], ExportWindow>(SELECT_BETWEEN).all({ export: exportName, from, to });
}

/** Windows after `after` that have been missing since `before` or longer, the oldest first, epoch milliseconds. */
export function longMissing(
  db: Database,
  wanted: {
    readonly export: ExportName;
    readonly after: number;
    readonly before: number;
    readonly limit: number;
  },
): ExportWindow[] {
  return db.prepare<unknown[], ExportWindow>(SELECT_LONG_MISSING).all(wanted);
}

/** Removes windows that cannot be missing yet: the clock was ahead when they were added. */
export function forgetNotYetDue(db: Database, exportName: ExportName, from: number): void {
  db.prepare(DELETE_NOT_YET_DUE).run({ export: exportName, from });
}

/** When missing windows were last searched for, epoch milliseconds; null: never. */
export function readLook(db: Database): number | null {
  return db.prepare<unknown[], { looked_at: number }>(SELECT_LOOK).get()?.looked_at ?? null;
}

export function setLook(db: Database, nowMs: number): void {
  db.prepare(UPSERT_LOOK).run(nowMs);
}

/** How many windows of an export, in a span; epoch milliseconds. */
export interface UnknownWindows {
  readonly export: ExportName;
  readonly windows: number;
  readonly first: number;
  readonly last: number;
}

/**
 * Windows, by export, that start before `before` and of which nothing is known though a later one was read. A search
 * for missing windows leaves none before `looked_through` but those whose files wait. Only known windows are read:
 * there may be far more of the others.
 */
export function unknownWindows(db: Database, before: number): UnknownWindows[] {
  const expectations = db
    .prepare<unknown[], Expectation & { readonly export: ExportName }>(SELECT_EXPECTATIONS)
    .all();
  return expectations.flatMap(({ export: exportName, expected_from, looked_through }) => {
    const newest = newestDone(db, exportName);
    const from = Math.max(expected_from, looked_through);
    const to = Math.min(before, (newest ?? 0) - WINDOW_MS);
    if (from >= to) return [];
    const span = { export: exportName, from, to };
    const known = db.prepare<unknown[], { windows: number }>(COUNT_KNOWN).get(span)?.windows ?? 0;
    const windows = (to - from) / WINDOW_MS - known;
    if (windows === 0) return [];
    const beside = (sql: string) =>
      db.prepare<unknown[], { window_start: number }>(sql).get(span)?.window_start;
    const isKnown = (start: number) => findWindow(db, exportName, start) !== undefined;
    const first = isKnown(from) ? (beside(FIRST_BEFORE_GAP) ?? from) + WINDOW_MS : from;
    const last = isKnown(to - WINDOW_MS) ? (beside(LAST_BEHIND_GAP) ?? to) - WINDOW_MS : to - WINDOW_MS;
    return [{ export: exportName, windows, first, last }];
  });
}
