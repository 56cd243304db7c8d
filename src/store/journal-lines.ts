/** How the journal is read again: its lines, its name, and whether a place in it is what somebody remembers. */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';

/** A place in the journal: the end of a line, and what makes sure that it is still that line. */
export interface JournalMark {
  /** The journal's name; null for one that was begun before journals had names. */
  readonly journal: string | null;
  readonly bytes: number;
  /** See {@link lineCheck}. */
  readonly line: string;
}

export type JournalEntry = Readonly<Record<string, unknown>>;

export interface JournalLine {
  /** Where the line begins and where it ends, its line feed included. */
  readonly start: number;
  readonly end: number;
  readonly entry: JournalEntry;
  readonly mark: JournalMark;
}

const CHUNK_BYTES = 1024 * 1024;
const IDENTITY_BYTES_MAX = 256;
const LINE_FEED = 0x0a;

/**
 * The whole lines of a journal from a line's start on; what is no JSON object is passed over.
 *
 * Nothing may be appended by this process between two lines that are asked for, but behind them it may.
 */
export function* journalLines(path: string, from = 0): Generator<JournalLine> {
  if (!existsSync(path)) return;
  const file = openSync(path, 'r');
  try {
    const journal = identityOf(file);
    let rest: Buffer = Buffer.alloc(0);
    let start = from;
    for (let at = from; ; ) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const length = readSync(file, chunk, 0, chunk.length, at);
      if (length === 0) return;
      at += length;
      rest = Buffer.concat([rest, chunk.subarray(0, length)]);
      for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
        const text = rest.toString('utf8', 0, end);
        const entry = parseLine(text);
        const bytes = start + end + 1;
        if (entry !== null) {
          yield { start, end: bytes, entry, mark: { journal, bytes, line: lineCheck(`${text}\n`) } };
        }
        start = bytes;
        rest = rest.subarray(end + 1);
      }
    }
  } finally {
    closeSync(file);
  }
}

/** The journal's name, which is its first line; null where it has none. */
export function journalIdentity(path: string): string | null {
  if (!existsSync(path)) return null;
  const file = openSync(path, 'r');
  try {
    return identityOf(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Whether a journal goes on from a mark: it has the same name, and the line that the mark remembers ends there.
 *
 * @returns in words why it does not; null when it does
 */
export function whyNotFrom(path: string, mark: JournalMark): string | null {
  if (!existsSync(path)) return 'the journal is missing';
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    if (size === 0) return 'the journal is empty';
    if (identityOf(file) !== mark.journal) return 'the journal is another one than the database knows';
    if (size < mark.bytes) return 'the journal is shorter than the database knows it';
    if (lineCheck(lineEndingAt(file, mark.bytes)) !== mark.line)
      return 'the journal is not as the database knows it';
    return null;
  } finally {
    closeSync(file);
  }
}

/** Sixteen hex digits by which a line, with its line feed, is known again. */
export function lineCheck(line: string | Buffer): string {
  return createHash('sha256').update(line).digest('hex').slice(0, 16);
}

/** @param file an open journal */
export function identityOf(file: number): string | null {
  const buffer = Buffer.alloc(IDENTITY_BYTES_MAX);
  const length = readSync(file, buffer, 0, buffer.length, 0);
  const end = buffer.subarray(0, length).indexOf(LINE_FEED);
  const entry = end < 0 ? null : parseLine(buffer.toString('utf8', 0, end));
  return typeof entry?.journal === 'string' ? entry.journal : null;
}

/** The object in a line; null where there is none. */
export function parseLine(line: string): JournalEntry | null {
  try {
    const entry: unknown = JSON.parse(line);
    return isObject(entry) ? entry : null;
  } catch {
    return null;
  }
}

/** A count in a line; 0 where there is none. */
export function numberIn(entry: JournalEntry | null, name: string): number {
  const value = entry?.[name];
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : 0;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function lineEndingAt(file: number, end: number): Buffer {
  for (let bytes = 4096; ; bytes *= 8) {
    const length = Math.min(end, bytes);
    const buffer = Buffer.alloc(length);
    readSync(file, buffer, 0, length, end - length);
    const before = buffer.subarray(0, Math.max(0, length - 1)).lastIndexOf(LINE_FEED);
    if (before >= 0) return buffer.subarray(before + 1);
    if (length === end) return buffer;
  }
}
