/**
 * A copy as NDJSON or CSV: every version that is read is appended as a line.
 *
 * A file beside it stores the position, with the length of the copy at that position: anything that a crash left after
 * that length is cut off before reading continues, so no line is there twice.
 */
import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createInterface } from 'node:readline';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { counted, grouped } from '../counted.ts';
import { Refused } from '../refused.ts';
import { writeWhole } from '../store/folder.ts';
import { takeLock } from '../store/locks.ts';
import { type Detection, parseJson } from './api.ts';
import { APPLICATION_ID, bodyOf, type Copy, readDetection } from './copy.ts';
import type { LineForm } from './csv.ts';

const Noted = Type.Object({
  bytes: Type.Integer({ minimum: 0 }),
  cursor: Type.Union([Type.String(), Type.Null()]),
  walk: Type.Union([Type.String(), Type.Null()]),
  /** Missing where an earlier version wrote it. */
  selection: Type.Optional(Type.Union([Type.String(), Type.Null()])),
});
type Noted = Static<typeof Noted>;

export const NDJSON: LineForm = {
  head: null,
  line: bodyOf,
  read: (input) => createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }),
};

/**
 * @param isRead whether it is only read, maybe while a pull appends to it; then it may be of another client
 * @throws Refused `failed` when another pull is at work on it, or it is no copy
 */
export function openLines(path: string, form: LineForm, isRead = false): Copy {
  if (isRead) return copyOf(path, form, null);
  // SQLite has its own lock; two processes that append lines would each cut off the other's.
  const release = takeLock(`${path}.lock`);
  if (release === null)
    throw new Refused('failed', `another pull is at work on ${path}. Stop it first, or name another file.`);
  const file = openSync(path, 'a', 0o600);
  const close = () => {
    closeSync(file);
    release();
  };
  try {
    const noted = readPlace(path);
    refuseOther(path, form, fstatSync(file).size, noted);
    // From here on the file is known as a copy, whatever a crash leaves in it.
    if (!existsSync(placeOf(path))) writePlace(path, noted);
    ftruncateSync(file, noted.bytes);
    return { ...copyOf(path, form, file), close };
  } catch (error) {
    close();
    throw error;
  }
}

/** @param file null: only read */
function copyOf(path: string, { head, line, read }: LineForm, file: number | null): Copy {
  let noted = readPlace(path);
  return {
    notes: () => ({ ...noted, selection: noted.selection ?? null }),
    store: (rows, changes) => {
      const isFirst = noted.bytes === 0 && head !== null;
      const text = `${isFirst ? `${head}\n` : ''}${rows.map((row) => `${line(row)}\n`).join('')}`;
      // Unlike writeSync, it throws when a full disk takes only the beginning.
      if (file !== null && text !== '') writeFileSync(file, text, { flush: true });
      noted = { ...noted, ...changes, bytes: noted.bytes + Buffer.byteLength(text) };
      writePlace(path, noted);
      return rows.length;
    },
    count: () => null,
    rows: () => linesOf(path, read, existsSync(placeOf(path)) ? noted.bytes : Number.POSITIVE_INFINITY),
    close() {},
  };
}

async function* linesOf(path: string, read: LineForm['read'], bytes: number): AsyncIterable<Detection> {
  if (bytes === 0) return;
  let number = 0;
  for await (const text of read(createReadStream(path, { end: bytes - 1 }))) {
    number += 1;
    if (text.trim() !== '') yield readDetection(text, `${path}, line ${number}`);
  }
}

function refuseOther(path: string, { head }: LineForm, size: number, { bytes }: Noted): void {
  const place = placeOf(path);
  if (size < bytes) {
    const told = `${path} has ${counted(size, 'byte')}, but according to ${place} it had ${grouped(bytes)}: lines are missing.`;
    throw new Refused(
      'failed',
      `${told} Remove both files to start again, or name another file with --into.`,
    );
  }
  if (size > 0 && !existsSync(place)) {
    const told = `${path} already exists, but is not a copy: ${place} is missing.`;
    throw new Refused('failed', `${told} Name another file with --into.`);
  }
  const columns = Buffer.from(`${head}\n`);
  if (bytes === 0 || head === null || headOf(path, columns.length).equals(columns)) return;
  const told = `${path} does not begin with the columns that the service has now.`;
  throw new Refused('failed', `${told} Name another file with --into.`);
}

function placeOf(path: string): string {
  return `${path}.place`;
}

function readPlace(path: string): Noted {
  const place = placeOf(path);
  if (!existsSync(place)) return { bytes: 0, cursor: null, walk: null };
  const noted = parseJson(readFileSync(place, 'utf8'));
  if (Value.Check(Noted, noted)) return noted;
  const told = `${place} does not contain the position of a copy.`;
  throw new Refused('failed', `${told} Name another file with --into to start a new copy.`);
}

function writePlace(path: string, noted: Noted): void {
  writeWhole(placeOf(path), JSON.stringify(noted));
}

export const COPY_FORMATS = ['sqlite', 'ndjson', 'csv'] as const;
export type CopyFormat = (typeof COPY_FORMATS)[number];

const NAMES: Record<CopyFormat, string> = { sqlite: 'SQLite', ndjson: 'NDJSON', csv: 'CSV' };
/** SQLite's database header: its magic string, and where the application id is (sqlite.org/fileformat.html). */
const HEADER_BYTES = 100;
const MAGIC = 'SQLite format 3\0';
const APPLICATION_ID_OFFSET = 68;

/** @throws Refused `usage` when the file is a copy in another format, and would be damaged in this one */
export function requireFormat(path: string, format: CopyFormat): void {
  const head = headOf(path, HEADER_BYTES);
  const text = head.toString('latin1');
  const isDatabase = text.startsWith(MAGIC) && head.readUInt32BE(APPLICATION_ID_OFFSET) === APPLICATION_ID;
  const lines = text.startsWith('{') ? 'ndjson' : text.startsWith('id,') ? 'csv' : null;
  const found = isDatabase ? 'sqlite' : existsSync(placeOf(path)) ? lines : null;
  if (found === null || found === format) return;
  const next = isDatabase ? 'Leave out --format' : `Use --format ${found}`;
  throw new Refused(
    'usage',
    `${path} is a copy in ${NAMES[found]}. ${next}, or name another file with --into.`,
  );
}

/** The first bytes of a file, with zeros behind its end; opening a pipe would wait for its writer. */
function headOf(path: string, bytes: number): Buffer {
  const head = Buffer.alloc(bytes);
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return head;
  const file = openSync(path, 'r');
  readSync(file, head);
  closeSync(file);
  return head;
}
