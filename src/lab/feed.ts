/**
 * What a lab's agency exports: a month of detections, and what is asked for later. All of it goes through the drop folder
 * like any export. Detections are the same for one seed: they are drawn for fixed windows, the n-th drop's from the
 * n-th, and only their times follow the clock.
 */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { now } from '../clock.ts';
import { newestEndedWindow, writePhotos } from '../demo/exports.ts';
import { EXPORT_NAMES, type ExportName, streamParts, TYPE_RULES } from '../detection/content-type.ts';
import { columnOf, FIELDS } from '../detection/fields.ts';
import { streamOfId } from '../detection/id.ts';
import { COLUMNS, trailerLine } from '../generate/lines.ts';
import { exportRows, historyRows, type SampleRow, type SampleSubscription } from '../generate/rows.ts';
import { SAMPLE_SUBSCRIPTIONS } from '../generate/sample-agency.ts';
import { readOneDetection } from '../query/one-detection.ts';
import { Refused } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { formatMs, formatWindowStart, HOUR_MS, parseInstant, SECOND_MS, WINDOW_MS } from '../time.ts';
import { findWindow, listWindows } from '../windows/ledger.ts';
import { overdueBeforeMs } from '../windows/transitions.ts';
import { type ActionBody, parseDuration } from './actions.ts';

/** Where drawing begins: history lies before it, drops behind it. */
const FIRST_WINDOW_MS = Date.UTC(2026, 0, 1);
const HISTORY_WINDOWS = 30 * 144;
/** A story every two hours, and a photo every four: more would hold up the start. */
const HISTORY_ROWS: Readonly<Record<ExportName, number>> = { newswire: 360, imagewire: 180 };
/** Of files of one window, and of backfills. Dropped in another, what is read first would depend on the moment. */
const READING_ORDER = EXPORT_NAMES.toSorted();
const ROWS_DEFAULT = 10;
const LATE_AGE_MS = 2 * HOUR_MS;
/** About one row in ten is not new. */
const DRAWN_PER_ROW = 2;
const DRAWN_MIN = 20;
const WINDOWS_BACK_MAX = 90 * 144;
const MARK = 'lab';
/** The columns that are times. */
const TIMES = [...new Set(Object.values(COLUMNS).flat())].filter((column) => column.endsWith('_at'));

export interface FeedOptions {
  readonly seed: string;
  readonly drop: string;
  readonly photos: string;
  /** A reader; throws while there is no database. */
  readonly detections: () => Database;
  /** Settles when all that was dropped is read. */
  readonly rested: () => Promise<void>;
}

interface Dropped {
  readonly file: string;
  readonly export: ExportName;
  /** Null for a backfill, which belongs to no window. */
  readonly window_start: string | null;
  readonly ids: readonly string[];
}

export class Feed {
  readonly #options: FeedOptions;
  /** Rows of which the photos are not written. */
  #unpictured: SampleRow[] = [];
  #subscriptions: readonly SampleSubscription[] = SAMPLE_SUBSCRIPTIONS;
  #drops = 0;
  #backfills = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** The newest window, and the month before it: while the appliance starts. */
  async dropMonth(): Promise<void> {
    const newestMs = newestEndedWindow(now());
    await this.#dropNew(newestMs, {});
    for (const exportName of READING_ORDER) {
      const windowStartMs = FIRST_WINDOW_MS - HISTORY_WINDOWS * WINDOW_MS;
      const drawn = { ...this.#drawing(exportName, windowStartMs), rows: HISTORY_ROWS[exportName] };
      const rows = [...historyRows({ ...drawn, windows: HISTORY_WINDOWS })];
      await this.#write(`${exportName}.backfill-${MARK}-month`, moved(rows, newestMs - FIRST_WINDOW_MS));
      if (exportName === 'imagewire') this.#unpictured.push(...rows);
    }
  }

  async drop({ age = '0s', ...wanted }: ActionBody<'drop'>): Promise<{ files: Dropped[] }> {
    return this.#told(await this.#dropNew(newestEndedWindow(now() - (parseDuration(age) ?? 0)), wanted));
  }

  /** The oldest missing window; else the newest one that is not known, of that age or older. */
  async late({ age, ...wanted }: ActionBody<'late'>): Promise<{ files: Dropped[] }> {
    const db = this.#options.detections();
    const filter = { export: wanted.export ?? null, status: 'missing', limit: WINDOWS_BACK_MAX } as const;
    const missing = listWindows(db, filter).at(-1);
    if (missing !== undefined)
      return this.#told(await this.#dropNew(missing.window_start, { ...wanted, export: missing.export }));
    const from = newestEndedWindow(now() - (age === undefined ? LATE_AGE_MS : (parseDuration(age) ?? 0)));
    return this.#told(await this.#dropNew(this.#unknownWindow(wanted.export ?? 'newswire', from), wanted));
  }

  /** Those of the month need not be there before anybody asks. */
  async writePhotos(): Promise<void> {
    await writePhotos(this.#options.photos, this.#unpictured.splice(0));
  }

  /** @param score undefined: the one it has */
  async score(id: string, score?: number): Promise<Dropped> {
    const [content_type, exportName] = exportOfId(id);
    if (content_type === 'image' && (score ?? 0) > 99)
      throw new Refused('invalid_request', `score: expected 0 to 99 for an image, found ${score}`);
    const body = readOneDetection(this.#options.detections(), {
      id,
      streams: [streamOfId(id)],
      projection: null,
      baseUrl: Buffer.from(''),
    });
    if (body === null) throw new Refused('not_found', `there is no detection ${id}`);
    const row = rowOf(JSON.parse(body), exportName);
    const scoredMs = Math.max(now(), (parseInstant(String(row.last_scored_at)) ?? 0) + SECOND_MS);
    row.last_scored_at = formatMs(scoredMs);
    row.exported_at = row.last_scored_at;
    if (score !== undefined) row.strength_score = score;
    this.#backfills += 1;
    const file = await this.#write(`${exportName}.backfill-${MARK}-${this.#backfills}-${scoredMs}`, [row]);
    await this.#options.rested();
    return { file, export: exportName, window_start: null, ids: [id] };
  }

  /** @throws Refused `invalid_request` for one that was removed, too */
  requireSubscription(subscription: number): void {
    const known = this.#subscriptions.map(({ id }) => id);
    if (known.includes(subscription)) return;
    const expected =
      known.length === 0 ? 'all are removed, start the lab anew' : `expected ${known.join(' or ')}`;
    throw new Refused('invalid_request', `subscription: ${expected}, found ${subscription}`);
  }

  /** From now on, no detections are drawn for it. */
  endSubscription(subscription: number): void {
    this.#subscriptions = this.#subscriptions.filter(({ id }) => id !== subscription);
  }

  /** Drops a file that cannot be read. @returns the start of its window, epoch milliseconds */
  async fail(exportName: ExportName, windowMs: number | null): Promise<number> {
    const startMs = windowMs ?? this.#unknownWindow(exportName, newestEndedWindow(now()));
    await this.#place(`${exportName}.${formatWindowStart(startMs)}.ndjson`, 'not an export row\n');
    await this.#options.rested();
    return startMs;
  }

  /** The newest window that can be missing by now and is not known; epoch milliseconds. */
  missable(exportName: ExportName): number {
    return this.#unknownWindow(exportName, overdueBeforeMs(now()) - WINDOW_MS);
  }

  #unknownWindow(exportName: ExportName, fromMs: number): number {
    const db = this.#options.detections();
    for (let at = fromMs; at > fromMs - WINDOWS_BACK_MAX * WINDOW_MS; at -= WINDOW_MS)
      if (findWindow(db, exportName, at) === undefined) return at;
    throw new Refused('failed', `no window of ${exportName} in the last 90 days is free for this`);
  }

  async #dropNew(windowMs: number, wanted: Omit<ActionBody<'drop'>, 'age'>): Promise<Dropped[]> {
    const { rows = ROWS_DEFAULT, export: only, subscription } = wanted;
    if (subscription !== undefined) this.requireSubscription(subscription);
    const exports = READING_ORDER.filter((name) => only === undefined || name === only);
    const drawnMs = FIRST_WINDOW_MS + this.#drops * WINDOW_MS;
    this.#drops += 1;
    const dropped: Dropped[] = [];
    for (const [index, exportName] of exports.entries()) {
      const count = Math.floor((rows + index) / exports.length);
      const drawing = this.#drawing(exportName, drawnMs, subscription);
      const drawn = exportRows({ ...drawing, rows: DRAWN_MIN + count * DRAWN_PER_ROW });
      const fresh = [...drawn].filter((row) => (parseInstant(row.first_detected_at) ?? 0) >= drawnMs);
      const own = moved(fresh.slice(0, count), windowMs - drawnMs);
      const file = await this.#write(`${exportName}.${formatWindowStart(windowMs)}`, own);
      if (exportName === 'imagewire') this.#unpictured.push(...own);
      dropped.unshift({ file, export: exportName, window_start: formatMs(windowMs), ids: own.map(idOf) });
    }
    return dropped;
  }

  #drawing(exportName: ExportName, windowStartMs: number, subscription?: number) {
    const subscriptions = this.#subscriptions.filter(({ id }) => id === (subscription ?? id));
    return { seed: this.#options.seed, exportName, windowStartMs, subscriptions };
  }

  async #told(files: Dropped[]): Promise<{ files: Dropped[] }> {
    await this.writePhotos();
    await this.#options.rested();
    return { files };
  }

  /** The last line says that a file is whole: an empty one would otherwise be waited for. */
  #write(name: string, rows: readonly object[]): Promise<string> {
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`);
    return this.#place(`${name}.ndjson`, lines.join('') + trailerLine(rows.length));
  }

  async #place(name: string, text: string): Promise<string> {
    const path = join(this.#options.drop, name);
    await writeFile(`${path}.part`, text);
    await rename(`${path}.part`, path);
    return name;
  }
}

/** Rows with all their times moved; the appliance signs the addresses of photos itself, as the agency has no host. */
function moved(rows: readonly SampleRow[], byMs: number): SampleRow[] {
  return rows.map((row) => {
    const own: Record<string, unknown> & SampleRow = { ...row };
    for (const name of TIMES) {
      const value = own[name];
      const ms = typeof value === 'string' ? parseInstant(value) : null;
      if (ms !== null) own[name] = formatMs(ms + byMs);
    }
    if ('source_image_url' in own) own.source_image_url = null;
    return own;
  });
}

function idOf(row: SampleRow): string {
  const type = 'source_image_url' in row ? 'i' : 't';
  return `${type}.${row.subscription_id}.${row.source_internal_id}.${row.article_id}`;
}

function exportOfId(id: string) {
  const { content_type } = streamParts(streamOfId(id));
  return [content_type, TYPE_RULES[content_type].export] as const;
}

/** The export row that gives a detection as it is. */
function rowOf(detection: object, exportName: ExportName): Record<string, unknown> {
  const columns = COLUMNS[exportName].map((column) => {
    const path = FIELDS.find((field) => columnOf(field.path) === column)?.path.split('.') ?? [];
    const value = path.reduce<unknown>(
      (at, name) => (typeof at === 'object' && at !== null ? Reflect.get(at, name) : null),
      detection,
    );
    // An address of our own has no host here.
    return [column, column === 'source_image_url' && String(value).startsWith('/') ? null : value];
  });
  return Object.fromEntries(columns);
}
