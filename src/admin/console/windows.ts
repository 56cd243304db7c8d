/** The map of windows with the list of those that brought nothing, and one window (api.ts). */
import { EXPORT_NAMES, type ExportName, isExportName } from '../../detection/content-type.ts';
import { type FileRecord, fileDocument, filesOfWindow } from '../../ingest/file-record.ts';
import { deliveredSpan, newestRows, rowsByStream } from '../../query/latest-rows.ts';
import { invalid, parseParameters, readText } from '../../query/parameters.ts';
import { EVERY_STREAM } from '../../query/streams.ts';
import { Refused } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { DAY_MS, formatMs, parseInstant, WINDOW_MS } from '../../time.ts';
import { dueAtMs } from '../../windows/transitions.ts';
import { offered, windowActions } from './action-offers.ts';
import type { OpenWindow, WindowDetail, WindowLetter, WindowMap } from './api.ts';
import { entriesOf } from './detections.ts';
import type { Read } from './reads.ts';
import type { Sources } from './sources.ts';
import { type WindowState, windowStates } from './window-states.ts';

const DAYS = 90;
const OPEN_MAX = 1000;
const FILES_MAX = 20;
const DETECTIONS_MAX = 20;
/** Of those that somebody may have to do something about. */
const OPEN: readonly WindowLetter[] = ['f', 'm', 'a', 'l'];

export function readWindowMap(sources: Sources, { query, mayAct }: Read, nowMs: number): WindowMap {
  parseParameters(query, {});
  const to = (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS;
  const from = to - DAYS * DAY_MS;
  const db = sources.detections();
  const states = (name: ExportName): WindowState[] =>
    db === null ? [] : windowStates(db, { export: name, from, to }, sources.enabled.has(name), nowMs);
  const of = { newswire: states('newswire'), imagewire: states('imagewire') };
  const shown = (name: ExportName) => ({
    enabled: sources.enabled.has(name),
    windows:
      db === null ? '-'.repeat((to - from) / WINDOW_MS) : of[name].map(({ letter }) => letter).join(''),
    rows: db === null ? Array((to - from) / WINDOW_MS).fill(0) : of[name].map(({ rows }) => rows),
  });
  return {
    at: formatMs(nowMs),
    from: formatMs(from),
    exports: { newswire: shown('newswire'), imagewire: shown('imagewire') },
    open: EXPORT_NAMES.flatMap((name) => of[name].filter(isOpen).slice(-OPEN_MAX))
      .sort((a, b) => b.window_start - a.window_start)
      .map((state) => openWindow(state, mayAct)),
  };
}

function isOpen({ letter, held }: WindowState): boolean {
  return OPEN.includes(letter) || held;
}

function openWindow(state: WindowState, mayAct: boolean): OpenWindow {
  const { letter, since, held, reason } = state;
  return {
    export: state.export,
    window_start: formatMs(state.window_start),
    window_end: formatMs(state.window_start + WINDOW_MS),
    letter,
    since: since === null ? null : formatMs(since),
    held,
    reason,
    actions: offered(mayAct, windowActions(state)),
  };
}

export function readWindow(sources: Sources, { query, mayAct }: Read, nowMs: number): WindowDetail {
  const parameters = parseParameters(query, { export: 'single', window_start: 'single' });
  const name = readText(parameters, 'export') ?? '';
  if (!isExportName(name)) throw invalid('export: expected newswire or imagewire');
  const start = parseInstant(readText(parameters, 'window_start') ?? '');
  if (start === null || start % WINDOW_MS !== 0)
    throw invalid('window_start: expected a multiple of ten minutes such as 2026-11-21T10:10:00Z');
  const db = sources.detections();
  if (db === null) throw new Refused('not_found', 'Nothing was ingested yet.');
  const span = { export: name, from: start, to: start + WINDOW_MS };
  const [state] = windowStates(db, span, sources.enabled.has(name), nowMs);
  if (state === undefined) throw new Error('a span of one window has one window');
  const files = filesOfWindow(db, { export: name, window_start: start }, FILES_MAX);
  const expect = { kind: 'window-expect', export: name, window_start: formatMs(start) } as const;
  const { reason: _, actions, ...shown } = openWindow(state, mayAct);
  return {
    ...shown,
    due_at: formatMs(dueAtMs(start)),
    files: files.map(fileDocument),
    ...broughtBy(sources, db, files),
    actions: [...actions, ...offered(mayAct, start <= nowMs ? [expect] : [])],
  };
}

/** What the newest applied file has brought: its transaction is known by when it was made, and its number of rows. */
function broughtBy(
  sources: Sources,
  db: Database,
  files: readonly FileRecord[],
): Pick<WindowDetail, 'streams' | 'detections'> {
  const applied = files.find(({ outcome }) => outcome === 'applied');
  const { created = 0, updated = 0 } = applied?.report ?? {};
  const isEmpty = applied === undefined || created + updated === 0;
  const span = isEmpty ? null : deliveredSpan(db, applied.finished_at ?? applied.taken_at, created + updated);
  if (span === null) return { streams: [], detections: [] };
  const all = { selection: EVERY_STREAM, filters: null };
  const rows = newestRows(db, span, all, DETECTIONS_MAX);
  return { streams: rowsByStream(db, span), detections: entriesOf(sources, rows) };
}
