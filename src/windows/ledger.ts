/** The ledger of export windows and their statuses. Times are epoch milliseconds. */
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { WINDOW_MS } from '../time.ts';
import { arrival, isHistory, type ResettableStatus, type WindowStatus } from './window-states.ts';

export interface ExportWindow {
  readonly export: ExportName;
  readonly window_start: number;
  readonly status: WindowStatus;
  /** When it got this status. */
  readonly since: number;
  /** The ingest number of the file that changed it. */
  readonly file: number | null;
}

interface Expectation {
  readonly export: ExportName;
  readonly expected_from: number;
  /** All windows before it are in the ledger: no search is needed. */
  readonly looked_through: number;
}

const SELECT = 'SELECT export, window_start, status, since, file FROM export_window';

const UPSERT_WINDOW = `
  INSERT INTO export_window (export, window_start, status, since, file)
  VALUES (:export, :window_start, :status, :since, :file)
  ON CONFLICT (export, window_start)
  DO UPDATE SET status = excluded.status, since = excluded.since, file = excluded.file`;

/** By the index of windows that are not done: there are few of them. */
export const SELECT_RESETTABLE = `
  SELECT export, window_start, status FROM export_window
  WHERE status <> 'done' AND status IN ('failed', 'abandoned')`;

const SELECT_NEWEST_DONE =
  "SELECT max(window_start) AS start FROM export_window WHERE export = ? AND status = 'done'";

const SELECT_WINDOWS = `
  ${SELECT} WHERE (:export IS NULL OR export = :export) AND (:status IS NULL OR status = :status)
  ORDER BY window_start DESC, export LIMIT :limit`;

const EXPECT = `
  INSERT INTO export_expectation (export, expected_from, looked_through)
  VALUES (:export, :window_start, :window_start) ON CONFLICT (export)`;
const INSERT_EXPECTATION = `${EXPECT} DO NOTHING`;
const SET_EXPECTATION = `${EXPECT}
  DO UPDATE SET expected_from = excluded.expected_from, looked_through = excluded.looked_through`;
const SELECT_EXPECTATIONS =
  'SELECT export, expected_from, looked_through FROM export_expectation ORDER BY export';

const DELETE_NOT_EXPECTED = `
  DELETE FROM export_window
  WHERE export = :export AND status IN ('missing', 'abandoned') AND window_start < :window_start`;

const DELETE_WINDOW = 'DELETE FROM export_window WHERE export = :export AND window_start = :window_start';

/** Every start of a window in `[from, to)` of which the ledger knows nothing. It reads an entry of an index for each. */
export const UNKNOWN_STARTS = `
  WITH RECURSIVE span (start) AS (
    SELECT :from WHERE :from < :to
    UNION ALL SELECT start + ${WINDOW_MS} FROM span WHERE start + ${WINDOW_MS} < :to
  ), unknown AS (
    SELECT start FROM span
    WHERE NOT EXISTS (SELECT 1 FROM export_window WHERE export = :export AND window_start = start))`;

export const COUNT_UNKNOWN = `
  ${UNKNOWN_STARTS} SELECT count(*) AS windows, min(start) AS first, max(start) AS last FROM unknown`;

export function findWindow(db: Database, exportName: ExportName, start: number): ExportWindow | undefined {
  const select = db.prepare<unknown[], ExportWindow>(`${SELECT} WHERE export = ? AND window_start = ?`);
  return select.get(exportName, start);
}

/** The newest first. A null member wants all. */
export function listWindows(
  db: Database,
  wanted: { export: ExportName | null; status: WindowStatus | null; limit: number },
): ExportWindow[] {
  return db.prepare<unknown[], ExportWindow>(SELECT_WINDOWS).all(wanted);
}

export interface HoldRules {
  readonly failed_windows: 'hold' | 'read';
  /** Files of the other exports are refused, whatever their window. */
  readonly enabled_exports: readonly ExportName[];
}

/** The status that has the file of a window, or a backfill, held; null: it is read when it is ready. */
export type HeldBy = (file: { export: ExportName; window_start: number | null }) => ResettableStatus | null;

/** For any number of files. */
export function heldBy(db: Database, { failed_windows, enabled_exports }: HoldRules): HeldBy {
  const held = db
    .prepare<[], ExportWindow & { readonly status: ResettableStatus }>(SELECT_RESETTABLE)
    .all()
    .filter((own) => enabled_exports.includes(own.export) && arrival(own.status, failed_windows) === 'hold')
    .map((own) => [`${own.export} ${own.window_start}`, own.status] as const);
  const statuses = new Map<string, ResettableStatus>(held);
  return (file) => statuses.get(`${file.export} ${file.window_start}`) ?? null;
}

/** The end of an export's newest finished window; null when none is finished. */
export function newestDone(db: Database, exportName: ExportName): number | null {
  const row = db.prepare<unknown[], { start: number | null }>(SELECT_NEWEST_DONE).get(exportName);
  return row === undefined || row.start === null ? null : row.start + WINDOW_MS;
}

/**
 * The end of the newest finished window of all exports; 0 while there is none. A clock that is behind it is wrong: the agency
 * names a window's file once the window has ended by the agency's clock. Delivery times prove nothing, since they come from
 * our own clock, and keep a jump ahead.
 */
export const newestWindowEnd = (db: Database): number =>
  Math.max(...EXPORT_NAMES.map((name) => newestDone(db, name) ?? 0));

export function setWindow(db: Database, window: ExportWindow): void {
  db.prepare(UPSERT_WINDOW).run(window);
  // Windows are expected from the first one that finishes. No later one changes that.
  if (window.status === 'done' && !isHistory(window.window_start, window.since))
    db.prepare(INSERT_EXPECTATION).run(window);
}

/**
 * A failed window counts as done without its file. If windows of its time are not expected, nothing is said of it any
 * more: it must not make others expected.
 */
export function dismissWindow(db: Database, exportName: ExportName, window_start: number, now: number): void {
  const expectation = readExpectation(db, exportName);
  if (expectation !== null && window_start >= expectation.expected_from)
    setWindow(db, { export: exportName, window_start, status: 'done', since: now, file: null });
  else db.prepare(DELETE_WINDOW).run({ export: exportName, window_start });
}

/**
 * Sets from which window on those of an export are expected, and forgets what was said of earlier ones whose files
 * never came: files that are held for them are read. The next search is due at once.
 * @returns how many windows are no longer missing or abandoned
 */
export function expectFrom(db: Database, exportName: ExportName, window_start: number): number {
  db.prepare(SET_EXPECTATION).run({ export: exportName, window_start });
  db.prepare('DELETE FROM window_look').run();
  return db.prepare(DELETE_NOT_EXPECTED).run({ export: exportName, window_start }).changes;
}

const expectations = (db: Database) => db.prepare<unknown[], Expectation>(SELECT_EXPECTATIONS).all();

/** The first expected window of an export; null while none has finished. */
export const readExpectation = (db: Database, exportName: ExportName): Expectation | null =>
  expectations(db).find((row) => row.export === exportName) ?? null;

/** How many windows of an export, in a span. */
export type UnknownWindows = Readonly<{ export: ExportName; windows: number; first: number; last: number }>;

/**
 * Windows, by export, that start before `before` and of which nothing is known though a later one was read. A search
 * for missing windows leaves none before `looked_through` but those whose files wait.
 */
export function unknownWindows(db: Database, before: number): UnknownWindows[] {
  return expectations(db).flatMap(({ export: exportName, expected_from, looked_through }) => {
    const from = Math.max(expected_from, looked_through);
    const to = Math.min(before, (newestDone(db, exportName) ?? 0) - WINDOW_MS);
    return unknownIn(db, exportName, from, to) ?? [];
  });
}

/** The windows in `[from, to)` of which nothing is known; null: there are none. */
export function unknownIn(db: Database, exportName: ExportName, from: number, to: number) {
  const count = db.prepare<unknown[], Omit<UnknownWindows, 'export'>>(COUNT_UNKNOWN);
  const found = count.get({ export: exportName, from, to });
  return found === undefined || found.windows === 0 ? null : { export: exportName, ...found };
}
