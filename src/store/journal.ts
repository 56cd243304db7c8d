/**
 * The journal: a second witness, outside the databases, of what was done.
 *
 * A database can be put back to an older state, by a restore or by hand; the journal says what happened since:
 * every operation that changed detections, in its order, which keys were revoked, what was changed of
 * subscriptions and licences, and how far positions have been given out. It is only ever appended to, a JSON
 * object a line, each on disk before the next step is taken. Its first line names it.
 *
 * How its lines are read again, and what a database knows of them: `journal-lines.ts`, `journal-mark.ts`.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { formatMs } from '../time.ts';
import { syncFolder } from './folder.ts';
import {
  identityOf,
  type JournalEntry,
  type JournalMark,
  lineCheck,
  numberIn,
  parseLine,
} from './journal-lines.ts';

/** What the journal's last lines say; it need not be read whole. */
export interface JournalEnd {
  /** The highest position that may have been given out. */
  readonly position: number;
  /** The highest ingest number that a file was given. */
  readonly file: number;
}

/** How much of the end is read: far more than the lines of one file. */
const TAIL_BYTES = 64 * 1024;

/** The names under which lines carry the ingest number of a file that was taken. */
const FILE_NUMBERS = ['applied', 'began', 'part', 'unapplied'];

/** Whether a line is the first that names its file: such numbers only grow, as positions do. */
function isFirstOfFile(entry: JournalEntry): boolean {
  return 'began' in entry || 'unapplied' in entry || ('applied' in entry && 'reading' in entry);
}

/** Before a transaction commits that is in the journal already: these positions will never be given out again. */
export function appendPosition(path: string, position: number): void {
  appendEntry(path, { position });
}

/** After a key was revoked. */
export function appendKeyRevoked(path: string, keyId: string, atMs: number): void {
  appendEntry(path, { key_revoked: keyId, at: formatMs(atMs) });
}

/**
 * Before a change commits that decides which rows are taken or what they show.
 *
 * @param what in words, such as `subscription 7003 added`
 * @returns where the line ends, for the mark in access.db
 */
export function appendChanged(path: string, what: string, atMs: number): JournalMark {
  return appendEntry(path, { changed: what, at: formatMs(atMs) });
}

/** After an older state was put in place with a journal that may lack what happened since. */
export function appendRestored(path: string, reason: string, atMs: number): JournalMark {
  return appendEntry(path, { restored: formatMs(atMs), proven: false, reason });
}

const journalErrors = new WeakSet<object>();

/** Whether an error was met while a line was appended. */
export function isJournalError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && journalErrors.has(error);
}

/** Appends a line and waits until it is on disk; a new journal is named first. @returns where the line ends */
export function appendEntry(path: string, entry: object): JournalMark {
  try {
    return append(path, entry);
  } catch (error) {
    if (error instanceof Error) journalErrors.add(error);
    throw error;
  }
}

function append(path: string, entry: object): JournalMark {
  const isNew = !existsSync(path);
  const line = `${JSON.stringify(entry)}\n`;
  const file = openSync(path, 'a+', 0o600);
  try {
    const sizeBefore = fstatSync(file).size;
    // Unlike writeSync, it throws when a full disk takes only the beginning.
    writeFileSync(file, `${beginning(file, sizeBefore)}${line}`);
    fsyncSync(file);
    const bytes = endOf(line, file, sizeBefore);
    return { journal: identityOf(file), bytes, line: lineCheck(line) };
  } finally {
    closeSync(file);
    if (isNew) syncFolder(dirname(path));
  }
}

/** Names a journal that is not there yet, or empty. */
export function beginJournal(path: string): void {
  const isNew = !existsSync(path);
  const file = openSync(path, 'a+', 0o600);
  try {
    if (fstatSync(file).size === 0) writeFileSync(file, beginning(file, 0));
    fsyncSync(file);
  } finally {
    closeSync(file);
    if (isNew) syncFolder(dirname(path));
  }
}

export function readJournalEnd(path: string): JournalEnd {
  const end = { position: 0, file: 0 };
  if (!existsSync(path)) return end;
  for (let bytes = TAIL_BYTES; ; bytes *= 16) {
    const tail = readTail(path, bytes);
    let hasFirst = false;
    for (const line of tail.text.split('\n')) {
      const entry = parseLine(line);
      end.position = Math.max(end.position, numberIn(entry, 'position'));
      end.file = Math.max(end.file, ...FILE_NUMBERS.map((name) => numberIn(entry, name)));
      hasFirst ||= entry !== null && isFirstOfFile(entry);
    }
    // A run of revoked keys, or the parts of a backfill, can fill a tail; then a longer one is read.
    if (tail.isWhole || (end.position > 0 && hasFirst)) return end;
  }
}

/** What goes before a line: the journal's name, or the end of a line that a crash cut off, lest it swallow this one. */
function beginning(file: number, size: number): string {
  if (size === 0) return `${JSON.stringify({ journal: randomUUID() })}\n`;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] === 0x0a ? '' : '\n';
}

/** Where a line that was just written ends: other processes may have appended theirs before and behind it. */
function endOf(line: string, file: number, sizeBefore: number): number {
  const written = Buffer.alloc(fstatSync(file).size - sizeBefore);
  readSync(file, written, 0, written.length, sizeBefore);
  const at = written.lastIndexOf(line);
  if (at < 0) throw new Error('a line of the journal is not where it was written');
  return sizeBefore + at + Buffer.byteLength(line);
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
