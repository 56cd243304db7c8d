/**
 * The map of windows with the list of those without data, and one window (api.ts). One query reads the states of all
 * windows of a span; map, list and actions are made from it, so they never disagree.
 */
import { EXPORT_NAMES, type ExportName, perExport } from '../../detection/content-type.ts';
import type { HeldFile } from '../../drop/waiting-names.ts';
import { type FileReport, fileDocument, filesOfWindow } from '../../ingest/files/file-record.ts';
import { heldIn } from '../../operations/windows.ts';
import { invalid, readParameters } from '../../query/parameters.ts';
import { choice, INSTANT } from '../../query/value-kinds.ts';
import type { Database } from '../../store/database.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../time.ts';
import { newestDone, readExpectation } from '../../windows/ledger.ts';
import { dueAtMs, lateBeforeMs, type WindowStatus } from '../../windows/window-states.ts';
import type { Read, Sources } from './sources.ts';

/** An act that can be done now: `POST /operations/NAME` takes what is given, and what its form asks for. */
export interface Action {
  /** Its name in the table of operations: `window reset`. */
  readonly operation: string;
  readonly given: Readonly<Record<string, string | number | readonly string[]>>;
}

/**
 * `d` done; `e` done, with an empty file; `f` failed; `m` missing; `a` abandoned; `l` late: overdue although a later one
 * was read; `w` due, or its file is being read; `n` not due yet; `-` not expected.
 */
export type WindowLetter = 'd' | 'e' | 'f' | 'm' | 'a' | 'l' | 'w' | 'n' | '-';

const DAYS = 90;
const OPEN_MAX = 1000;
const FILES_MAX = 20;
const OPEN: readonly WindowLetter[] = ['f', 'm', 'a', 'l'];

export async function readWindowMap(sources: Sources) {
  const { config, nowMs } = sources;
  const to = (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS;
  const from = to - DAYS * DAY_MS;
  const states = await readStates(sources, from, to);
  return {
    at: formatMs(nowMs),
    /** Midnight (UTC) at the beginning of the map. */
    from: formatMs(from),
    exports: perExport((name) => ({
      enabled: config.exports[name].enabled,
      /** A {@link WindowLetter} each, or `h`: a file of it is held. */
      windows: states[name].map(({ letter, held }) => (held ? 'h' : letter)).join(''),
      rows: states[name].map(({ rows }) => rows),
    })),
    /** Windows that are failed, missing, abandoned, late or held, the newest first, at most 1000 an export. */
    open: EXPORT_NAMES.flatMap((name) =>
      states[name].filter(({ letter, held }) => OPEN.includes(letter) || held).slice(-OPEN_MAX),
    )
      .sort((a, b) => b.window_start - a.window_start)
      .map(openWindow),
  };
}

async function readStates(sources: Sources, from: number, to: number) {
  const { config, nowMs } = sources;
  const held = await heldIn(sources);
  // After the wait: it may have been made anew meanwhile.
  const db = sources.detections();
  return perExport((name) =>
    windowStates(db, { export: name, from, to }, { isEnabled: config.exports[name].enabled, held }, nowMs),
  );
}

function openWindow(state: WindowState) {
  const { rows: _, hasFile: __, window_start, since, ...shown } = state;
  return {
    ...shown,
    window_start: formatMs(window_start),
    since: since === null ? null : formatMs(since),
    actions: windowActions(state),
  };
}

const WINDOW_PARAMETERS = {
  export: { ...choice(perExport((name) => name)), required: 'newswire or imagewire' },
  window_start: { ...INSTANT, required: 'the start of a window, such as 2026-11-21T10:10:00Z' },
};

/** `?export=newswire&window_start=2026-11-21T10:10:00Z` */
export async function readWindow(sources: Sources, { query }: Read) {
  const { export: name, window_start: start } = readParameters(query, WINDOW_PARAMETERS);
  if (start % WINDOW_MS !== 0)
    throw invalid('window_start: expected a multiple of ten minutes such as 2026-11-21T10:10:00Z');
  const [state] = (await readStates(sources, start, start + WINDOW_MS))[name];
  if (state === undefined) throw new Error('a span of one window has one window');
  const files = filesOfWindow(sources.detections(), name, start, FILES_MAX);
  const expect = { operation: 'window expect', given: { export: name, start: formatMs(start) } };
  const { actions, ...shown } = openWindow(state);
  return {
    ...shown,
    due_at: formatMs(dueAtMs(start)),
    files: files.map(fileDocument),
    actions: [...actions, ...(start <= sources.nowMs ? [expect] : [])],
  };
}

type WindowState = ReturnType<typeof windowStates>[number];

export const WINDOWS_WITH_ROWS = `
  SELECT known.window_start, status, since, iif(status = 'failed', report ->> '$.reason', NULL) AS reason,
    iif(status = 'failed', report -> '$.errors[0]', NULL) AS error, report ->> '$.errors_total' AS errors,
    (SELECT coalesce(sum(report ->> '$.rows'), 0) FROM ingest_file AS file
      WHERE file.export = known.export AND file.window_start = known.window_start
        AND file.outcome = 'applied') AS rows
  FROM export_window AS known LEFT JOIN ingest_file ON ingest_file.number = known.file
  WHERE known.export = :export AND known.window_start >= :from AND known.window_start < :to`;

/** The failed files that a reset can read again (ingest/files/file-record.ts). */
export const WINDOWS_WITH_FAILED_FILES = `
  SELECT DISTINCT window_start FROM ingest_file
  WHERE outcome = 'failed' AND destination IS NOT NULL AND destination NOT LIKE 'archive/%'
    AND export = :export AND window_start >= :from AND window_start < :to`;

const LETTERS = { done: 'd', failed: 'f', missing: 'm', abandoned: 'a' } as const;

interface Known {
  readonly window_start: number;
  readonly status: WindowStatus;
  readonly since: number | null;
  readonly rows: number;
  readonly reason: string | null;
  readonly error: string | null;
  readonly errors: number | null;
}

/** @param span epoch milliseconds, `[from, to)` @param isEnabled whether the export is switched on */
export function windowStates(
  db: Database,
  span: { readonly export: ExportName; readonly from: number; readonly to: number },
  { isEnabled, held }: { readonly isEnabled: boolean; readonly held: readonly HeldFile[] },
  nowMs: number,
) {
  const knownRows = db.prepare<unknown[], Known>(WINDOWS_WITH_ROWS).all(span);
  const known = new Map(knownRows.map((window) => [window.window_start, window]));
  const failed = new Set(db.prepare<unknown[], number>(WINDOWS_WITH_FAILED_FILES).pluck().all(span));
  const own = held.filter(({ file }) => file.export === span.export);
  const heldStarts = new Set(own.map(({ file }) => file.window_start));
  const expectedFrom = isEnabled ? readExpectation(db, span.export)?.expected_from : undefined;
  const lateBefore = Math.min(lateBeforeMs(nowMs), (newestDone(db, span.export) ?? 0) - WINDOW_MS);
  const letterOf = (start: number, found: Known | undefined): WindowLetter => {
    if (found !== undefined) return found.status === 'done' && found.rows === 0 ? 'e' : LETTERS[found.status];
    if (expectedFrom === undefined || start < expectedFrom) return '-';
    if (nowMs < dueAtMs(start)) return 'n';
    return start < lateBefore ? 'l' : 'w';
  };
  return Array.from({ length: (span.to - span.from) / WINDOW_MS }, (_, at) => {
    const start = span.from + at * WINDOW_MS;
    const found = known.get(start);
    /** The first error of a file that failed, with their number; null: it has none. */
    const report: Pick<FileReport, 'errors' | 'errors_total'> | null =
      found?.error == null ? null : { errors: [JSON.parse(found.error)], errors_total: found.errors ?? 1 };
    return {
      export: span.export,
      window_start: start,
      letter: letterOf(start, found),
      since: found?.since ?? null,
      rows: found?.rows ?? 0,
      reason: found?.reason ?? null,
      report,
      /** A file waits in the drop folder until the window is reset or accepted. */
      held: heldStarts.has(start),
      /** A file of it is held, or in failed/, from where it can be read. */
      hasFile: heldStarts.has(start) || failed.has(start),
    };
  });
}

function windowActions(state: WindowState): Action[] {
  const given = { export: state.export, start: [formatMs(state.window_start)] };
  const reset = { operation: 'window reset', given };
  const accept = { operation: 'window accept', given };
  if (state.letter === 'f') return state.hasFile ? [reset, accept] : [accept];
  return state.letter === 'a' && state.held ? [accept] : [];
}
