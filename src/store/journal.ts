/**
 * The journal: a second witness, outside the databases, of what was given out and taken in.
 *
 * A database can be put back to an older state, by a restore or by hand; the journal says what happened since:
 * which files were applied, in which order, which keys were revoked, and how far positions have been given
 * out. It is only ever appended to, a JSON object a line, each on disk before the next step is taken.
 */
import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatMs } from '../time.ts';
import { syncFolder } from './folder.ts';

/** What the journal's last lines say; it need not be read whole, since both numbers only grow. */
export interface JournalEnd {
  /** The highest position that may have been given out. */
  readonly position: number;
  /** The highest ingest number of a file that was applied. */
  readonly file: number;
}

export interface AppliedFile {
  readonly number: number;
  /** Relative to the drop folder. */
  readonly archived: string;
  readonly sha256: string;
}

/** How much of the end is read: far more than the lines of one file. */
const TAIL_BYTES = 64 * 1024;

/** Before a transaction commits: these positions will never be given out again. */
export function appendPosition(path: string, position: number): void {
  append(path, { position });
}

/** After a file's last transaction committed, before it goes to the archive. */
export function appendApplied(path: string, file: AppliedFile, position: number, atMs: number): void {
  append(path, {
    applied: file.number,
    archived: file.archived,
    sha256: file.sha256,
    position,
    at: formatMs(atMs),
  });
}

/** After an archived file was read again and changed something. */
export function appendReplayed(path: string, number: number, position: number, atMs: number): void {
  append(path, { replayed: number, position, at: formatMs(atMs) });
}

/** After a key was revoked. */
export function appendKeyRevoked(path: string, keyId: string, atMs: number): void {
  append(path, { key_revoked: keyId, at: formatMs(atMs) });
}

/** After an older state was put in place with a journal that may lack what happened since. */
export function appendRestored(path: string, reason: string, atMs: number): void {
  append(path, { restored: formatMs(atMs), proven: false, reason });
}

export function readJournalEnd(path: string): JournalEnd {
  const end = { position: 0, file: 0 };
  if (!existsSync(path)) return end;
  for (let bytes = TAIL_BYTES; ; bytes *= 16) {
    const tail = readTail(path, bytes);
    for (const line of tail.text.split('\n')) {
      const entry = parseLine(line);
      end.position = Math.max(end.position, entry.position);
      end.file = Math.max(end.file, entry.applied);
    }
    // A run of revoked keys can fill a tail; then a longer one is read.
    if (tail.isWhole || (end.position > 0 && end.file > 0)) return end;
  }
}

/**
 * Whether the journal names a file as applied: what a start asks about the last files before a crash, so the
 * answer stands near the end, unless it is no.
 */
export function isJournaled(path: string, number: number): boolean {
  if (!existsSync(path)) return false;
  for (let bytes = TAIL_BYTES; ; bytes *= 16) {
    const tail = readTail(path, bytes);
    if (tail.text.split('\n').some((line) => parseLine(line).applied === number)) return true;
    if (tail.isWhole) return false;
  }
}

function append(path: string, entry: object): void {
  const isNew = !existsSync(path);
  const file = openSync(path, 'a+', 0o600);
  try {
    // A line that a crash cut off is ended first: it must not swallow this one.
    const text = `${endsInsideLine(file) ? '\n' : ''}${JSON.stringify(entry)}\n`;
    // Unlike writeSync, it throws when a full disk takes only the beginning.
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  if (isNew) syncFolder(dirname(path));
}

function endsInsideLine(file: number): boolean {
  const { size } = fstatSync(file);
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] !== 0x0a;
}

function readTail(path: string, bytes: number): { text: string; isWhole: boolean } {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const length = Math.min(size, bytes);
    const buffer = Buffer.alloc(length);
    readSync(file, buffer, 0, length, size - length);
    return { text: buffer.toString('utf8'), isWhole: length === size };
  } finally {
    closeSync(file);
  }
}

function parseLine(line: string): { position: number; applied: number } {
  try {
    const entry: unknown = JSON.parse(line);
    return { position: numberIn(entry, 'position'), applied: numberIn(entry, 'applied') };
  } catch {
    return { position: 0, applied: 0 };
  }
}

function numberIn(entry: unknown, name: string): number {
  if (typeof entry !== 'object' || entry === null) return 0;
  const value: unknown = Reflect.get(entry, name);
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : 0;
}
