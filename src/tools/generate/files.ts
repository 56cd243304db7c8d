/**
 * Writes sample export files with the names and formats of the drop folder.
 *
 * A file has a name that ends in `.part`, which Wirewatch ignores, until it is complete. So it can be written into a drop
 * folder in use.
 */
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip, createZstdCompress } from 'node:zlib';
import { type ExportName, perExport } from '../../detection/content-type.ts';
import { EXPORT_COLUMNS } from '../../exports/columns.ts';
import type { Form } from '../../exports/file-name.ts';
import { failed } from '../../refused.ts';
import { formatMs, formatWindowStart } from '../../time.ts';

export type SampleFile = {
  exportName: ExportName;
  /** The start of its window, epoch milliseconds; or the label of a backfill. */
  part: number | string;
  form: Form;
  /** Whether NDJSON ends with a line that gives the number of rows; CSV has none. */
  trailer?: boolean;
};

/** In the API's names; a backfill has no window. */
export type WrittenFile = { file: string; export: ExportName; window_start: string | null; rows: number };

/** The columns of an export, in the order in which every sample row has them. */
export const COLUMNS: Readonly<Record<ExportName, readonly string[]>> = perExport((exportName) =>
  EXPORT_COLUMNS.filter(({ exports }) => exports.includes(exportName)).map(({ name }) => name),
);

const CHUNK_CHARACTERS = 128 * 1024;
const CHUNK_BYTES = 256 * 1024;

/**
 * Writes one file, and creates the folder if it is missing.
 * @param content its rows, with their columns in the order of the format
 * @throws Refused `failed` if the file exists or cannot be written; no part of it remains
 */
export async function writeExportFile(
  folder: string,
  { exportName, part, form, trailer }: SampleFile,
  content: Iterable<object>,
): Promise<WrittenFile> {
  const middle = typeof part === 'string' ? `backfill-${part}` : formatWindowStart(part);
  const file = path.join(folder, `${exportName}.${middle}.${form}`);
  // One name for all runs: the next run replaces what an interrupted one has left.
  const unfinished = `${file}.part`;
  const isCsv = form.startsWith('csv');
  let rows = 0;
  /** In chunks: one is in memory at a time, and the next is made when the disk is ready. */
  function* text(): Generator<string, void, undefined> {
    let chunk = isCsv ? csvRecord(COLUMNS[exportName]) : '';
    for (const row of content) {
      chunk += isCsv ? csvRecord(Object.values(row)) : `${JSON.stringify(row)}\n`;
      rows += 1;
      if (chunk.length < CHUNK_CHARACTERS) continue;
      yield chunk;
      chunk = '';
    }
    if (trailer === true && !isCsv) chunk += `${JSON.stringify({ end_of_export: true, rows })}\n`;
    if (chunk !== '') yield chunk;
  }
  try {
    await mkdir(folder, { recursive: true });
    if (existsSync(file))
      throw failed(
        `${file} already exists, and is not overwritten. Move it away, or choose another --out, --start or --backfill.`,
      );
    await pipeline(text(), packer(form), createWriteStream(unfinished));
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw failed(
      `cannot write ${file}: ${error.message}. Check that the folder is writable and the disk has free space, then run the command again.`,
      { cause: error },
    );
  }
  return { file, export: exportName, window_start: typeof part === 'number' ? formatMs(part) : null, rows };
}

/** RFC 4180. */
function csvRecord(values: readonly unknown[]): string {
  const fields = values.map((value) => {
    const text = value === null ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${fields.join(',')}\r\n`;
}

/** Neither compression writes a time or a name: equal rows give equal bytes. */
function packer(form: Form): Transform {
  if (form.endsWith('.gz')) return createGzip({ level: 3, chunkSize: CHUNK_BYTES });
  if (!form.endsWith('.zst')) return new PassThrough({ highWaterMark: CHUNK_BYTES });
  const params = { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 };
  return createZstdCompress({ params, chunkSize: CHUNK_BYTES });
}
