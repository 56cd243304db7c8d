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
import { failed, Refused } from '../../refused.ts';
import { DAY_MS, formatMs, parseDuration, parseInstant, SECOND_MS, WINDOW_MS } from '../../time.ts';
import { findWindow, listWindows } from '../../windows/ledger.ts';
import { overdueBeforeMs } from '../../windows/window-states.ts';
import { COLUMNS, writeExportFile } from '../generate/files.ts';
import { samplePhoto } from '../generate/photo.ts';
import {
  exportRows,
  SAMPLE_SUBSCRIPTIONS,
  type SampleRow,
  type SampleSubscription,
} from '../generate/rows.ts';

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

export class Feed {
  readonly #seed: string;
  readonly #config: Config;
  readonly #parts: () => LabParts;
  /** The rows that it dropped, as they were last scored, by id. */
  readonly #rows = new Map<string, SampleRow>();
  /** Those for which detections are drawn. */
  subscriptions: readonly SampleSubscription[] = SAMPLE_SUBSCRIPTIONS;
  #drops = 0;
  #backfills = 0;

  /** @param parts of the appliance; throws before it has any */
  constructor(seed: string, config: Config, parts: () => LabParts) {
    this.#seed = seed;
    this.#config = config;
    this.#parts = parts;
  }

  /** Drops the newest window and those of the day before it. @param rows over both files of a window together */
  async dropDay(rows: number): Promise<void> {
    const newestMs = newestEndedWindow(now());
    for (let at = newestMs; at > newestMs - DAY_MS; at -= WINDOW_MS) await this.#dropNew(at, { rows });
  }

  /** Drops the newest window and the month before it. */
  async dropMonth(): Promise<void> {
    const newestMs = newestEndedWindow(now());
    await this.#dropNew(newestMs, {});
    for (const exportName of READING_ORDER) {
      const windowStartMs = FIRST_WINDOW_MS - HISTORY_WINDOWS * WINDOW_MS;
      const drawn = { ...this.#drawing(exportName, windowStartMs), rows: HISTORY_ROWS[exportName] };
      const rows = [...exportRows({ ...drawn, windows: HISTORY_WINDOWS })];
      await this.#writeRows(exportName, `${MARK}-month`, moved(rows, newestMs - FIRST_WINDOW_MS));
    }
  }

  async drop({ age = '0s', ...wanted }: LabValues['drop']) {
    return this.#dropRead(endedBefore(age), wanted);
  }

  /** Fills the oldest missing window; without one, the newest unknown window of that age or older. */
  async late({ age = '2h', ...wanted }: LabValues['late']) {
    const db = this.#parts().detections();
    const filter = { export: wanted.export ?? null, status: 'missing', limit: WINDOWS_BACK_MAX } as const;
    const missing = listWindows(db, filter).at(-1);
    if (missing !== undefined)
      return this.#dropRead(missing.window_start, { ...wanted, export: missing.export });
    return this.#dropRead(this.#unknownWindow(wanted.export ?? 'newswire', endedBefore(age)), wanted);
  }

  /** Rescores a detection that it dropped. */
  async score(id: string, strength_score: number) {
    const { content_type } = streamParts(streamOfId(id));
    const { export: exportName, score_max } = TYPE_RULES[content_type];
    if (strength_score > score_max)
      throw new Refused(
        'invalid_request',
        `score: expected 0 to ${score_max} for this detection, found ${strength_score}`,
      );
    const row = this.#rows.get(id);
    if (row === undefined) throw new Refused('not_found', `there is no detection ${id} of this lab`);
    this.#requireSubscription(row.subscription_id);
    const scoredMs = Math.max(now(), (parseInstant(row.last_scored_at) ?? 0) + SECOND_MS);
    const last_scored_at = formatMs(scoredMs);
    const own = { ...row, last_scored_at, exported_at: last_scored_at, strength_score };
    this.#backfills += 1;
    const file = await this.#writeRows(exportName, `${MARK}-${this.#backfills}-${scoredMs}`, [own]);
    await this.#parts().ingest.rested();
    return { file, export: exportName, window_start: null, ids: [id] };
  }

  /** @throws Refused `invalid_request` for a subscription that is unknown or removed */
  #requireSubscription(subscription: number): void {
    const known = this.subscriptions.map(({ id }) => id);
    if (known.includes(subscription)) return;
    const expected = known.join(' or ') || 'none, since all are removed';
    throw new Refused('invalid_request', `subscription: expected ${expected}, found ${subscription}`);
  }

  /**
   * Drops an invalid file. @returns the start of its window, epoch milliseconds
   * @throws Refused `failed` for a window that would not fail: its file waits, is held, or changes nothing
   */
  async fail(exportName: ExportName, windowMs: number | null): Promise<number> {
    const newestMs = newestEndedWindow(now());
    const startMs = windowMs ?? this.#unknownWindow(exportName, newestMs);
    const status = findWindow(this.#parts().detections(), exportName, startMs)?.status ?? 'missing';
    if (status !== 'missing') throw failed(`window ${formatMs(startMs)} of ${exportName} is ${status}`);
    if (startMs > newestMs) throw failed(`window ${formatMs(startMs)} of ${exportName} has not ended`);
    await this.#write(exportName, startMs, [{ this_is: 'not an export row' }]);
    await this.#parts().ingest.rested();
    return startMs;
  }

  /** The newest unknown window that is overdue; epoch milliseconds. */
  missable(exportName: ExportName): number {
    return this.#unknownWindow(exportName, overdueBeforeMs(now()) - WINDOW_MS);
  }

  #unknownWindow(exportName: ExportName, fromMs: number): number {
    const db = this.#parts().detections();
    for (let at = fromMs; at > fromMs - WINDOWS_BACK_MAX * WINDOW_MS; at -= WINDOW_MS)
      if (findWindow(db, exportName, at) === undefined) return at;
    throw failed(`no window of ${exportName} in the last 90 days is free for this`);
  }

  async #dropNew(windowMs: number, wanted: Wanted) {
    const { rows = ROWS_DEFAULT, export: only, subscription } = wanted;
    if (subscription !== undefined) this.#requireSubscription(subscription);
    const exports = READING_ORDER.filter((name) => only === undefined || name === only);
    const drawnMs = FIRST_WINDOW_MS + this.#drops * WINDOW_MS;
    this.#drops += 1;
    const dropped = [];
    for (const [index, exportName] of exports.entries()) {
      const count = Math.floor((rows + index) / exports.length);
      const drawing = this.#drawing(exportName, drawnMs, subscription);
      const drawn = exportRows({ ...drawing, rows: DRAWN_MIN + count * DRAWN_PER_ROW });
      const fresh = [...drawn].filter((row) => (parseInstant(row.first_detected_at) ?? 0) >= drawnMs);
      const own = moved(fresh.slice(0, count), windowMs - drawnMs);
      const file = await this.#writeRows(exportName, windowMs, own);
      const ids = own.map((row) => idOf(exportName, row));
      dropped.push({ file, export: exportName, window_start: formatMs(windowMs), ids });
    }
    return dropped.reverse();
  }

  #drawing(exportName: ExportName, windowStartMs: number, subscription?: number) {
    const subscriptions = this.subscriptions.filter(({ id }) => id === (subscription ?? id));
    return { seed: this.#seed, exportName, windowStartMs, subscriptions };
  }

  /** The same, until the files are read. */
  async #dropRead(windowMs: number, wanted: Wanted) {
    const files = await this.#dropNew(windowMs, wanted);
    await this.#parts().ingest.rested();
    return { files };
  }

  async #writeRows(exportName: ExportName, part: number | string, rows: readonly SampleRow[]) {
    for (const row of rows) {
      this.#rows.set(idOf(exportName, row), row);
      if (exportName === 'imagewire') await this.#writePhoto(row.source_internal_id);
    }
    return this.#write(exportName, part, rows);
  }

  async #writePhoto(id: number): Promise<void> {
    const path = join(this.#config.photos.folder, `${id}.png`);
    if (!existsSync(path)) await writeFile(path, samplePhoto(id));
  }

  /** With a trailer: without it, Wirewatch would wait for the rows of an empty file. @returns the name of the file */
  async #write(exportName: ExportName, part: number | string, rows: Iterable<object>): Promise<string> {
    const sample = { exportName, part, form: 'ndjson', trailer: true } as const;
    return basename((await writeExportFile(this.#config.ingest.drop, sample, rows)).file);
  }
}

/** The start of the window that ended last, epoch milliseconds. */
export function newestEndedWindow(nowMs: number): number {
  return Math.floor(nowMs / WINDOW_MS) * WINDOW_MS - WINDOW_MS;
}

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
