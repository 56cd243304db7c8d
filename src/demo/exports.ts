/**
 * The sample agency's exports: a day of both at once, then each new window when it has ended, and in between corrections
 * and new scores in the newest window.
 *
 * The contents of a window's file depend on the window alone, so a demonstration that is started again continues where it
 * stopped; the later changes depend on the clock.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { ndjsonLine } from '../generate/lines.ts';
import { exportRows, type SampleRow } from '../generate/rows.ts';
import { SAMPLE_SUBSCRIPTIONS } from '../generate/sample-agency.ts';
import { DAY_MS, formatMs, formatWindowStart, SECOND_MS, WINDOW_MS } from '../time.ts';
import { samplePhoto } from './photos.ts';

const SEED = 'demo';
const ROWS_A_FILE = 40;
const NEW_ROWS_A_CHANGE = 2;
const CHANGED_ROWS_A_CHANGE = 3;
/** After this time, a change has new rows. */
const CHANGE_EVERY_MS = 20 * SECOND_MS;
const SCORE_MAX = 99;

export interface SampleFolders {
  readonly drop: string;
  readonly photos: string;
}

export class SampleExports {
  readonly #folders: SampleFolders;
  /** Later windows have not been dropped, except the newest. */
  #nextWindowMs: number;
  #newestDroppedMs: number;
  #nextExport = 0;

  /** @param doneMs the end of the newest window that both exports have, epoch milliseconds; null if there is none */
  constructor(folders: SampleFolders, doneMs: number | null, nowMs: number) {
    this.#folders = folders;
    const dayAgoMs = Math.floor((nowMs - DAY_MS) / WINDOW_MS) * WINDOW_MS;
    this.#nextWindowMs = Math.max(doneMs ?? 0, dayAgoMs);
    this.#newestDroppedMs = (doneMs ?? 0) - WINDOW_MS;
  }

  /** Drops the window that ended last, on which health depends. @returns the number of files */
  async dropNewest(nowMs: number): Promise<number> {
    const newest = newestEndedWindow(nowMs);
    if (newest <= this.#newestDroppedMs) return 0;
    this.#newestDroppedMs = newest;
    return this.#dropWindow(newest);
  }

  /** Drops every window between the existing ones and the newest. @returns the number of files */
  async dropOthers(): Promise<number> {
    let files = 0;
    for (; this.#nextWindowMs < this.#newestDroppedMs; this.#nextWindowMs += WINDOW_MS)
      files += await this.#dropWindow(this.#nextWindowMs);
    this.#nextWindowMs = Math.max(this.#nextWindowMs, this.#newestDroppedMs + WINDOW_MS);
    return files;
  }

  /** Drops new scores, corrections and a few late rows of the newest window of one export, then of the other. */
  async dropChanges(nowMs: number): Promise<number> {
    const exportName = EXPORT_NAMES[this.#nextExport] ?? 'newswire';
    this.#nextExport = (this.#nextExport + 1) % EXPORT_NAMES.length;
    return this.#drop(
      exportName,
      this.#newestDroppedMs,
      changedRows(exportName, this.#newestDroppedMs, nowMs),
    );
  }

  async #dropWindow(windowStartMs: number): Promise<number> {
    let files = 0;
    for (const exportName of EXPORT_NAMES)
      files += await this.#drop(exportName, windowStartMs, rowsOf(exportName, windowStartMs, ROWS_A_FILE));
    return files;
  }

  /** @returns the number of files: none if the previous one of that window still waits */
  async #drop(exportName: ExportName, windowStartMs: number, rows: readonly SampleRow[]): Promise<number> {
    const { drop, photos } = this.#folders;
    const file = join(drop, `${exportName}.${formatWindowStart(windowStartMs)}.ndjson`);
    if (existsSync(file)) return 0;
    if (exportName === 'imagewire') await writePhotos(photos, rows);
    await writeFile(`${file}.part`, rows.map(ndjsonLine).join(''));
    await rename(`${file}.part`, file);
    return 1;
  }
}

/** The start of the window that ended last, epoch milliseconds. */
export function newestEndedWindow(nowMs: number): number {
  return Math.floor(nowMs / WINDOW_MS) * WINDOW_MS - WINDOW_MS;
}

function rowsOf(exportName: ExportName, windowStartMs: number, rows: number): SampleRow[] {
  const options = { seed: SEED, exportName, windowStartMs, rows, subscriptions: SAMPLE_SUBSCRIPTIONS };
  // The agency's host does not exist: without an address, Wirewatch serves the photo itself.
  return [...exportRows(options)].map((row) =>
    'source_image_url' in row ? { ...row, source_image_url: null } : row,
  );
}

/** Later changes of a window: some rows scored again, most with another score, and a few new rows. */
function changedRows(exportName: ExportName, windowStartMs: number, nowMs: number): SampleRow[] {
  const change = Math.max(0, Math.floor((nowMs - windowStartMs - WINDOW_MS) / CHANGE_EVERY_MS));
  const newRowsMax = ROWS_A_FILE + (change + 1) * NEW_ROWS_A_CHANGE;
  const rows = rowsOf(exportName, windowStartMs, newRowsMax);
  const at = formatMs(nowMs);
  const seconds = Math.floor(nowMs / SECOND_MS);
  const scoredAgain = Array.from({ length: CHANGED_ROWS_A_CHANGE }, (_, number) => {
    const row = rows[(seconds * CHANGED_ROWS_A_CHANGE + number) % ROWS_A_FILE];
    if (row === undefined) throw new RangeError('a window has fewer rows than are changed');
    const score = Math.round((row.strength_score + 7 + (seconds % 60)) % SCORE_MAX);
    return { ...row, last_scored_at: at, exported_at: at, strength_score: score };
  });
  return [...scoredAgain, ...rows.slice(-NEW_ROWS_A_CHANGE)];
}

/** A photo for each item of imagewire, so that every address signed by Wirewatch leads to one. */
export async function writePhotos(folder: string, rows: readonly SampleRow[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const id of new Set(rows.map((row) => row.source_internal_id))) {
    const path = join(folder, `${id}.png`);
    if (!existsSync(path)) await writeFile(path, samplePhoto(id));
  }
}
