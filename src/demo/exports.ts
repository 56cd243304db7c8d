/**
 * The sample agency's exports: a day of both kinds at once, then one file after the other as if time went on.
 *
 * A file depends on its window alone, so a demonstration that is started again carries on where it stopped.
 */
import { existsSync } from 'node:fs';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { type SampleFile, sampleFilePath, writeExportFile } from '../generate/files.ts';
import { SAMPLE_SUBSCRIPTIONS } from '../generate/sample-agency.ts';
import { DAY_MS, WINDOW_MS } from '../time.ts';

const SEED = 'demo';
const ROWS_A_FILE = 40;
/** Windows that are kept back to be dropped while one watches: six minutes of them. */
const HELD_BACK_WINDOWS = 9;

export class SampleExports {
  readonly #drop: string;
  #nextWindowMs: number;
  #nextExport = 0;

  /**
   * @param drop the drop folder
   * @param doneMs the end of the newest window that is there already, epoch milliseconds; null: none
   */
  constructor(drop: string, doneMs: number | null, nowMs: number) {
    this.#drop = drop;
    const dayAgoMs = Math.floor((nowMs - DAY_MS) / WINDOW_MS) * WINDOW_MS;
    this.#nextWindowMs = Math.max(doneMs ?? 0, dayAgoMs);
  }

  /** Drops all but what is held back; @returns how many files that are */
  async dropDay(nowMs: number): Promise<number> {
    let files = 0;
    while (this.#nextWindowMs + (HELD_BACK_WINDOWS + 1) * WINDOW_MS <= nowMs) {
      if ((await this.dropNext(nowMs)) !== null) files += 1;
    }
    return files;
  }

  /** Drops the next file whose window has ended; @returns its name, null when there is none yet */
  async dropNext(nowMs: number): Promise<string | null> {
    if (this.#nextWindowMs + WINDOW_MS > nowMs) return null;
    const exportName = EXPORT_NAMES[this.#nextExport] ?? 'newswire';
    const sample = sampleOf(exportName, this.#nextWindowMs);
    this.#nextExport = (this.#nextExport + 1) % EXPORT_NAMES.length;
    if (this.#nextExport === 0) this.#nextWindowMs += WINDOW_MS;
    if (existsSync(sampleFilePath(this.#drop, sample))) return null;
    return (await writeExportFile(this.#drop, sample)).file;
  }
}

function sampleOf(exportName: ExportName, windowStartMs: number): SampleFile {
  return {
    seed: SEED,
    exportName,
    windowStartMs,
    rows: ROWS_A_FILE,
    subscriptions: SAMPLE_SUBSCRIPTIONS,
    form: 'ndjson.gz',
  };
}
