/** The search for windows whose file never came. Call it only when no file is left to be read: a file that waits has arrived. */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS } from '../time.ts';
import { newestWindowEnd, readExpectation, UNKNOWN_STARTS, unknownIn } from './ledger.ts';
import { ABANDONED_AFTER_MS, overdueBeforeMs } from './window-states.ts';

const INSERT_MISSING = `
  ${UNKNOWN_STARTS} INSERT INTO export_window (export, window_start, status, since, file)
  SELECT :export, start, 'missing', :now, NULL FROM unknown
  WHERE start NOT IN (SELECT value FROM json_each(:waiting))`;

const DELETE_NOT_YET_DUE = `
  DELETE FROM export_window
  WHERE export = :export AND status IN ('missing', 'abandoned') AND window_start >= :to`;

const SET_LOOKED_THROUGH = `
  UPDATE export_expectation SET looked_through = :looked_through
  WHERE export = :export AND looked_through <> :looked_through`;

const ABANDON = `
  UPDATE export_window SET status = 'abandoned', since = :now
  WHERE export = :export AND status = 'missing' AND since <= :before
    AND window_start NOT IN (SELECT value FROM json_each(:waiting))`;

/** Between two searches. */
const LOOK_EVERY_MS = DAY_MS;

const SELECT_LOOK = 'SELECT looked_at FROM window_look WHERE id = 1';
const UPSERT_LOOK = `
  INSERT INTO window_look (id, looked_at) VALUES (1, ?)
  ON CONFLICT (id) DO UPDATE SET looked_at = excluded.looked_at`;

/**
 * @param write runs one transaction
 * @param waitingWindows the starts of the windows of an export whose files lie in the drop folder, for whatever reason
 * @returns what searches if it is time to, which is once a day and at every start: nobody knows what happened during the
 *   stop, or whether it was a restore. `isSteady`: see steadyClock. After a jump of the clock nothing is searched, and
 *   then once more; nor is anything by a clock that is behind a finished window. It returns how many windows became
 *   missing and how many were abandoned; null: it was not time
 */
export function missingWindowsSearch(
  db: Database,
  exports: readonly ExportName[],
  write: (work: () => void) => void,
  waitingWindows: (exportName: ExportName) => ReadonlySet<number>,
) {
  let isWanted = true;
  return (now: number, isSteady: boolean): { missing: number; abandoned: number } | null => {
    const lookedAt = db.prepare<[], number>(SELECT_LOOK).pluck().get() ?? null;
    // A time in the future is from a wrong clock: waiting for it could take years.
    isWanted ||= !isSteady || lookedAt === null || now - lookedAt >= LOOK_EVERY_MS || now < lookedAt;
    // By a clock that is behind, long known gaps would not be due yet, and their windows would be forgotten.
    if (!isSteady || !isWanted || now < newestWindowEnd(db)) return null;
    const waitingByExport = exports.map((name) => [name, JSON.stringify([...waitingWindows(name)])] as const);
    const found = { missing: 0, abandoned: 0 };
    write(() => {
      for (const [name, waiting] of waitingByExport) {
        const [to, before] = [overdueBeforeMs(now), now - ABANDONED_AFTER_MS];
        const search = { export: name, now, waiting, to, before };
        const run = (sql: string, more: object = {}) => db.prepare(sql).run({ ...search, ...more }).changes;
        found.abandoned += run(ABANDON);
        const expectation = readExpectation(db, name);
        if (expectation === null) continue;
        const { expected_from, looked_through: from } = expectation;
        found.missing += run(INSERT_MISSING, { from });
        // Windows that were added by a clock that was ahead.
        run(DELETE_NOT_YET_DUE);
        // The next search begins at the first window that this one skipped, because its file waits.
        const next = unknownIn(db, name, from, to)?.first ?? to;
        run(SET_LOOKED_THROUGH, { looked_through: Math.max(expected_from, next) });
      }
      db.prepare(UPSERT_LOOK).run(now);
    });
    isWanted = false;
    return found;
  };
}
