/**
 * Writes sample export files with the names and formats that the drop folder expects.
 *
 * A file is written under a name that ends in `.part`, which the appliance ignores, and renamed when it is complete, so
 * it can be written straight into a drop folder in use.
 */
import { createWriteStream } from 'node:fs';
import { lstat, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip, createZstdCompress } from 'node:zlib';
import type { ExportName } from '../detection/content-type.ts';
import type { Form } from '../ingest/format/file-name.ts';
import { Refused } from '../refused.ts';
import { formatMs, formatWindowStart } from '../time.ts';
import { csvHeader, csvLine, ndjsonLine, trailerLine } from './lines.ts';
import { historyRows, type RowsOptions, type SampleRow } from './rows.ts';

export type SampleFile = RowsOptions & {
  form: Form;
  /** End NDJSON with the line that says how many rows there are; CSV has none. */
  trailer?: boolean;
  /** One file of history over that many windows, instead of one window's. */
  backfill?: { label: string; windows: number } | null;
};

/** What was written, in the contract's words; a backfill has no window. */
export type WrittenFile = { file: string; export: ExportName; window_start: string | null; rows: number };

export type WriteOptions = {
  /** Told now and then how many rows of this file have been written. */
  onRows?: (rows: number) => void;
  /** Ends the writing early; the part that was written is removed. */
  signal?: AbortSignal;
};

/** Far more than the longest line, which has some kilobytes. */
const CHUNK_BYTES = 256 * 1024;
const TRAILER_BYTES = 256;

/**
 * Writes one file, and the folder where it is not there yet.
 *
 * @throws Refused `failed` if the name is taken, the file cannot be written, or the signal was raised; no part of it
 *   remains
 */
export async function writeExportFile(
  folder: string,
  sample: SampleFile,
  { onRows = () => {}, signal }: WriteOptions = {},
): Promise<WrittenFile> {
  const file = sampleFilePath(folder, sample);
  let rows = 0;
  const count = (written: number) => {
    rows = written;
    onRows(written);
  };
  try {
    await mkdir(folder, { recursive: true });
    await refuseTaken(file);
    // Two runs at once for one name must not write into one another: the first to finish has it.
    const unfinished = `${file}.${process.pid}.part`;
    try {
      const target = createWriteStream(unfinished);
      await pipeline(chunks(sample, count), packer(sample.form), target, signal ? { signal } : {});
      await refuseTaken(file);
      await rename(unfinished, file);
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      throw error;
    }
  } catch (error) {
    throw refusal(error, file);
  }
  const windowStart = sample.backfill ? null : formatMs(sample.windowStartMs);
  return { file, export: sample.exportName, window_start: windowStart, rows };
}

/** The path of the complete file. */
export function sampleFilePath(
  folder: string,
  { exportName, windowStartMs, form, backfill }: SampleFile,
): string {
  const middle = backfill ? `backfill-${backfill.label}` : formatWindowStart(windowStartMs);
  return path.join(folder, `${exportName}.${middle}.${form}`);
}

/** @throws Refused `failed` when there is something of that name */
export async function refuseTaken(file: string): Promise<void> {
  const taken = await lstat(file).then(
    () => true,
    (error: unknown) => {
      if (isSystemError(error) && error.code === 'ENOENT') return false;
      throw refusal(error, file);
    },
  );
  if (!taken) return;
  throw new Refused(
    'failed',
    `${file} already exists, and generate never overwrites a file. Move it away, or choose another --out, --start or --backfill.`,
  );
}

/**
 * The file's bytes in pieces: one piece is in memory at a time, and the next is made when the disk wants it.
 * Each line is encoded on its own: joined first, one line in Greek would make the entire piece twice as wide.
 */
function* chunks(sample: SampleFile, onRows: (rows: number) => void): Generator<Buffer, void, undefined> {
  const isCsv = sample.form.startsWith('csv');
  const toLine: (row: SampleRow) => string = isCsv ? csvLine : ndjsonLine;
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = isCsv ? chunk.write(csvHeader(sample.exportName)) : 0;
  let rows = 0;
  for (const row of historyRows({ ...sample, windows: sample.backfill?.windows ?? 1 })) {
    const line = toLine(row);
    // A UTF-16 unit has at most three bytes in UTF-8.
    if (bytes + line.length * 3 > CHUNK_BYTES - TRAILER_BYTES) {
      yield chunk.subarray(0, bytes);
      onRows(rows);
      chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      bytes = 0;
    }
    bytes += chunk.write(line, bytes);
    rows += 1;
  }
  if (sample.trailer === true && !isCsv) bytes += chunk.write(trailerLine(rows), bytes);
  if (bytes > 0) yield chunk.subarray(0, bytes);
  onRows(rows);
}

/** Neither packing puts a time or a name into the file: the same rows give the same bytes. */
function packer(form: Form): Transform {
  if (form.endsWith('.gz')) return createGzip({ level: 3, chunkSize: CHUNK_BYTES });
  if (!form.endsWith('.zst')) return new PassThrough({ highWaterMark: CHUNK_BYTES });
  const params = { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 };
  return createZstdCompress({ params, chunkSize: CHUNK_BYTES });
}

/** A fault of the surroundings as a reason for the one who asked; any other fault as it is. */
function refusal(error: unknown, file: string): unknown {
  if (error instanceof Error && error.name === 'AbortError') {
    return new Refused('failed', `stopped while writing ${file}; the incomplete file was removed`);
  }
  if (!isSystemError(error)) return error;
  return new Refused(
    'failed',
    `cannot write ${file}: ${error.message}. Check that the folder is writable and the disk has free space, then run the command again.`,
    { cause: error },
  );
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}
