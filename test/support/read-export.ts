/** Reads export files in this process, as the reader thread does. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExportName } from '../../src/detection/content-type.ts';
import type { Match } from '../../src/detection/match.ts';
import { type ExportFileName, type Form, timesOf } from '../../src/exports/file-name.ts';
import { type ReadingOrder, readExport } from '../../src/ingest/reading/read-export.ts';
import { type RowBatch, scoringOf } from '../../src/ingest/reading/row-batch.ts';
import type { Row } from './export-files.ts';
import { testFolder } from './test-folder.ts';

export interface ReadOptions extends Partial<Omit<ReadingOrder, 'source' | 'file'>> {
  readonly exportName?: ExportName;
  /** The start of the window; null: a backfill. Now, unless given. */
  readonly windowMs?: number | null;
}

let folder: string | undefined;
let files = 0;

/** @returns `skipped`: the lines of skipped rows */
export async function readContent(form: Form, content: string | Buffer, options: ReadOptions = {}) {
  const { exportName = 'newswire', windowMs = Date.now(), ...order } = options;
  folder ??= testFolder();
  files += 1;
  const path = join(folder, `${files}.${form}`);
  writeFileSync(path, content);
  const named = { name: `export.${form}`, export: exportName };
  const file: ExportFileName =
    windowMs === null
      ? { ...named, window_start: null, label: 'x' }
      : { ...named, window_start: windowMs, label: null };
  const batches: RowBatch[] = [];
  const result = await readExport(
    {
      ...{ source: { path, found: null }, file, ...timesOf(file, Date.now(), null) },
      ...{ mapping: null, require_trailer: false, bad_rows: 'fail', errors_max: 100 },
      ...{ streams: null, former: [], licensed: [], rows_to_skip: 0, ...order },
    },
    {
      photoPath: (id) => `/photos/${id}?signature=abc`,
      onBatch: (batch) => void batches.push(batch),
    },
  );
  rmSync(path);
  const notes = result.skipped.split('\n').filter(Boolean);
  return { result, batches, skipped: notes.map((note): number => JSON.parse(note).line) };
}

/** The detections in these batches, in the order of their rows. */
export const matchesOf = (batches: readonly RowBatch[]): Match[] =>
  batches.flatMap((batch) => batch.ids.map((_, row) => scoringOf(batch, row).match));

/** Reads a file that must be good, with these rows. @returns their detections */
export async function applied(
  form: Form,
  content: string | Buffer,
  rows: readonly Row[],
  options?: ReadOptions,
): Promise<Match[]> {
  const { result, batches } = await readContent(form, content, options);
  assert.equal(result.kind, 'read', JSON.stringify(result));
  assert.equal(result.counts.rows, rows.length);
  const matches = matchesOf(batches);
  const ids = matches.map(({ article }) => article.id);
  const expected = rows.map((row) => row.article_id);
  assert.deepEqual(ids, expected);
  return matches;
}

/** Reads a file that must fail. @returns its errors */
export async function failed(form: Form, content: string | Buffer, options?: ReadOptions) {
  const { result } = await readContent(form, content, options);
  assert.ok(result.kind === 'bad', JSON.stringify(result));
  return result;
}
