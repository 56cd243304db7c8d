/**
 * The export files of a lab: a month or a day of detections at its start, and the files of later operations. All of them go
 * through the drop folder. Detections follow the seed: they are drawn for fixed windows, those of the n-th drop for the
 * n-th window, and only their times follow the clock.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { LabParts } from '../../appliance.ts';
import { now } from '../../clock.ts';
import type { Config } from '../../config/load.ts';
import {
  CONTENT_TYPE_OF_EXPORT,
  EXPORT_NAMES,
  type ExportName,
  streamParts,
  TYPE_RULES,
} from '../../detection/content-type.ts';
import { formatDetectionId, streamOfId } from '../../detection/id.ts';
import type { LabValues } from '../../operations/lab.ts';
import { invalid } from '../../query/parameters.ts';
import { failed, Refused } from '../../refused.ts';
import { DAY_MS, formatMs, parseDuration, parseInstant, SECOND_MS, WINDOW_MS } from '../../time.ts';
import { findWindow, listWindows } from '../../windows/ledger.ts';
import { overdueBeforeMs } from '../../windows/window-states.ts';
import { COLUMNS, writeExportFile } from '../generate/files.ts';
import { samplePhoto } from '../generate/photo.ts';
import { exportRows, type RowsOptions, SAMPLE_SUBSCRIPTIONS, type SampleRow } from '../generate/rows.ts';

/** The window of the first drop; the month lies before it. */
const FIRST_WINDOW_MS = Date.UTC(2026, 0, 1);
const HISTORY_WINDOWS = 30 * 144;
/** A story every two hours, and a photo every four. More would delay the start. */
const HISTORY_ROWS: Readonly<Record<ExportName, number>> = { newswire: 360, imagewire: 180 };
/** In another order than Wirewatch reads files that wait together, the stream would depend on timing. */
const READING_ORDER = EXPORT_NAMES.toSorted();
const ROWS_DEFAULT = 10;
/** Drawn for each new row: about one row in ten repeats an older detection. */
const DRAWN_PER_ROW = 2;
const DRAWN_MIN = 20;
const WINDOWS_BACK_MAX = 90 * 144;
const MARK = 'lab';
const TIMES = [...new Set(Object.values(COLUMNS).flat())].filter((column) => column.endsWith('_at'));

type Wanted = Omit<LabValues['drop'], 'age'>;

export type Feed = ReturnType<typeof createFeed>;

/** @param parts of the appliance; throws before it has any */
export function createFeed(seed: string, config: Config, parts: () => LabParts) {
  /** The rows that it dropped, as they were last scored, by id. */
  const rowOf = new Map<string, SampleRow>();
  let subscriptions: RowsOptions['subscriptions'] = SAMPLE_SUBSCRIPTIONS;
  let drops = 0;
  let backfills = 0;

  /** @throws Refused `invalid_request` for a subscription that is unknown or removed */
  function requireSubscription(subscription: number): void {
    const known = subscriptions.map(({ id }) => id);
    if (known.includes(subscription)) return;
    const expected = known.join(' or ') || 'none, since all are removed';
    throw invalid(`subscription: expected ${expected}, found ${subscription}`);
  }

  function unknownWindow(exportName: ExportName, fromMs: number): number {
    const db = parts().detections();
    for (let at = fromMs; at > fromMs - WINDOWS_BACK_MAX * WINDOW_MS; at -= WINDOW_MS)
      if (findWindow(db, exportName, at) === undefined) return at;
    throw failed(`no window of ${exportName} in the last 90 days is free for this`);
  }

  async function dropNew(windowMs: number, { rows = ROWS_DEFAULT, export: only, subscription }: Wanted) {
    if (subscription !== undefined) requireSubscription(subscription);
    const exports = READING_ORDER.filter((name) => only === undefined || name === only);
    const drawnMs = FIRST_WINDOW_MS + drops * WINDOW_MS;
    drops += 1;
    const dropped = [];
    for (const [index, exportName] of exports.entries()) {
      const count = Math.floor((rows + index) / exports.length);
      const drawing = drawingOf(exportName, drawnMs, subscription);
      const drawn = exportRows({ ...drawing, rows: DRAWN_MIN + count * DRAWN_PER_ROW });
      const fresh = [...drawn].filter((row) => (parseInstant(row.first_detected_at) ?? 0) >= drawnMs);
      const own = moved(fresh.slice(0, count), windowMs - drawnMs);
      const file = await writeRows(exportName, windowMs, own);
      const ids = own.map((row) => idOf(exportName, row));
      dropped.push({ file, export: exportName, window_start: formatMs(windowMs), ids });
    }
    return dropped.reverse();
  }

  function drawingOf(exportName: ExportName, windowStartMs: number, subscription?: number) {
    const own = subscriptions.filter(({ id }) => id === (subscription ?? id));
    return { seed, exportName, windowStartMs, subscriptions: own };
  }

  /** The same, until the files are read. */
  async function dropRead(windowMs: number, wanted: Wanted) {
    const files = await dropNew(windowMs, wanted);
    await parts().ingest.rested();
    return { files };
  }

  async function writeRows(exportName: ExportName, part: number | string, rows: readonly SampleRow[]) {
    for (const row of rows) {
      rowOf.set(idOf(exportName, row), row);
      const photo = join(config.photos.folder, `${row.source_internal_id}.png`);
      if (exportName === 'imagewire' && !existsSync(photo))
        await writeFile(photo, samplePhoto(row.source_internal_id));
    }
    return write(exportName, part, rows);
  }

  /** With a trailer: without it, Wirewatch would wait for the rows of an empty file. @returns the name of the file */
  async function write(exportName: ExportName, part: number | string, rows: Iterable<object>) {
    const sample = { exportName, part, form: 'ndjson', trailer: true } as const;
    return basename((await writeExportFile(config.ingest.drop, sample, rows)).file);
  }

  return {
    /** @param given those for which detections are drawn from now on */
    watch(given: RowsOptions['subscriptions']): void {
      subscriptions = given;
    },
    /** Drops the newest window and those of the day before it. @param rows over both files of a window together */
    async dropDay(rows: number): Promise<void> {
      const newestMs = newestEndedWindow(now());
      for (let at = newestMs; at > newestMs - DAY_MS; at -= WINDOW_MS) await dropNew(at, { rows });
    },
    /** Drops the newest window and the month before it. */
    async dropMonth(): Promise<void> {
      const newestMs = newestEndedWindow(now());
      await dropNew(newestMs, {});
      for (const exportName of READING_ORDER) {
        const windowStartMs = FIRST_WINDOW_MS - HISTORY_WINDOWS * WINDOW_MS;
        const drawn = { ...drawingOf(exportName, windowStartMs), rows: HISTORY_ROWS[exportName] };
        const rows = [...exportRows({ ...drawn, windows: HISTORY_WINDOWS })];
        await writeRows(exportName, `${MARK}-month`, moved(rows, newestMs - FIRST_WINDOW_MS));
      }
    },
    drop: ({ age = '0s', ...wanted }: LabValues['drop']) => dropRead(endedBefore(age), wanted),
    /** Fills the oldest missing window; without one, the newest unknown window of that age or older. */
    async late({ age = '2h', ...wanted }: LabValues['late']) {
      const filter = { export: wanted.export ?? null, status: 'missing', limit: WINDOWS_BACK_MAX } as const;
      const missing = listWindows(parts().detections(), filter).at(-1);
      if (missing !== undefined) return dropRead(missing.window_start, { ...wanted, export: missing.export });
      return dropRead(unknownWindow(wanted.export ?? 'newswire', endedBefore(age)), wanted);
    },
    /** Rescores a detection that it dropped. */
    async score(id: string, strength_score: number) {
      const { content_type } = streamParts(streamOfId(id));
      const { export: exportName, score_max } = TYPE_RULES[content_type];
      if (strength_score > score_max)
        throw invalid(`score: expected 0 to ${score_max} for this detection, found ${strength_score}`);
      const row = rowOf.get(id);
      if (row === undefined) throw new Refused('not_found', `there is no detection ${id} of this lab`);
      requireSubscription(row.subscription_id);
      const scoredMs = Math.max(now(), (parseInstant(row.last_scored_at) ?? 0) + SECOND_MS);
      const last_scored_at = formatMs(scoredMs);
      const own = { ...row, last_scored_at, exported_at: last_scored_at, strength_score };
      backfills += 1;
      const file = await writeRows(exportName, `${MARK}-${backfills}-${scoredMs}`, [own]);
      await parts().ingest.rested();
      return { file, export: exportName, window_start: null, ids: [id] };
    },
    /**
     * Drops an invalid file. @returns the start of its window, epoch milliseconds
     * @throws Refused `failed` for a window that would not fail: its file waits, is held, or changes nothing
     */
    async fail(exportName: ExportName, windowMs: number | null): Promise<number> {
      const newestMs = newestEndedWindow(now());
      const startMs = windowMs ?? unknownWindow(exportName, newestMs);
      const status = findWindow(parts().detections(), exportName, startMs)?.status ?? 'missing';
      if (status !== 'missing') throw failed(`window ${formatMs(startMs)} of ${exportName} is ${status}`);
      if (startMs > newestMs) throw failed(`window ${formatMs(startMs)} of ${exportName} has not ended`);
      await write(exportName, startMs, [{ this_is: 'not an export row' }]);
      await parts().ingest.rested();
      return startMs;
    },
    /** The newest unknown window that is overdue; epoch milliseconds. */
    missable: (exportName: ExportName) => unknownWindow(exportName, overdueBeforeMs(now()) - WINDOW_MS),
  };
}

/** The start of the window that ended last, epoch milliseconds. */
export const newestEndedWindow = (nowMs: number) => Math.floor(nowMs / WINDOW_MS) * WINDOW_MS - WINDOW_MS;

/** The newest window that had ended at a time before now. */
const endedBefore = (age: string) => newestEndedWindow(now() - (parseDuration(age) ?? 0));

/** Moves all times of rows. The addresses of photos are left to the appliance, which serves and signs them. */
function moved(rows: readonly SampleRow[], byMs: number): SampleRow[] {
  return rows.map((row) => {
    const own: Record<string, unknown> & SampleRow = { ...row };
    for (const name of TIMES) {
      const value = own[name];
      const ms = typeof value === 'string' ? parseInstant(value) : null;
      if (ms !== null) own[name] = formatMs(ms + byMs);
    }
    // Otherwise the time of reading, which no seed gives.
    own.exported_at ??= own.last_scored_at;
    if ('source_image_url' in own) own.source_image_url = null;
    return own;
  });
}

function idOf(exportName: ExportName, { subscription_id, source_internal_id, article_id }: SampleRow) {
  const type = CONTENT_TYPE_OF_EXPORT[exportName];
  return formatDetectionId(type, subscription_id, source_internal_id, article_id);
}
