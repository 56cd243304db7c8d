/** Reads the record of preload.c: changes of files below a folder, in order, between responses and printed output. */
import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** A record's kind, by its letter. */
const KINDS = {
  C: 'create',
  D: 'make folder',
  W: 'write',
  T: 'truncate',
  F: 'sync',
  G: 'sync folder',
  R: 'rename',
  L: 'link',
  U: 'unlink',
  X: 'remove folder',
  /** The test dropped a file: it is durable immediately, since its writer is not part of the test. */
  P: 'put',
  /** The start of a response; the start of a command's output; a note of the test. */
  A: 'answer',
  O: 'print',
  N: 'note',
} as const;

/** One record. Paths are absolute; inodes are those of the file system; what a kind does not have is empty. */
export interface IoEvent {
  readonly kind: (typeof KINDS)[keyof typeof KINDS];
  readonly path: string;
  /** The new name of a rename or link. */
  readonly other: string;
  readonly inode: number;
  /** Where a write begins, or the size that a file is truncated to. */
  readonly at: number;
  /** What was written, dropped or said. */
  readonly data: Buffer;
}

const HEADER_BYTES = 40;

/** @throws Error if the record is damaged */
export function readRecord(path: string): IoEvent[] {
  const record = readFileSync(path);
  const events: IoEvent[] = [];
  for (let begin = 0; begin < record.length; ) {
    const bytes = record.readUInt32LE(begin);
    events.push(parseLine(record.subarray(begin, begin + bytes)));
    begin += bytes;
  }
  return events;
}

function parseLine(line: Buffer): IoEvent {
  const mark = String.fromCharCode(line.readUInt32LE(4));
  const pathEnd = HEADER_BYTES + line.readUInt32LE(24);
  const otherEnd = pathEnd + line.readUInt32LE(28);
  const path = line.toString('utf8', HEADER_BYTES, pathEnd);
  const kind = KINDS[mark as keyof typeof KINDS];
  if (kind === undefined) throw new Error(`the record has a line of an unknown kind: ${mark} ${path}`);
  return {
    kind,
    path,
    other: line.toString('utf8', pathEnd, otherEnd),
    inode: Number(line.readBigUInt64LE(8)),
    at: Number(line.readBigInt64LE(16)),
    data: line.subarray(otherEnd),
  };
}

/** Adds a note of the test between the program's records. */
export function note(record: string, text: string): void {
  appendLine(record, 'N', { data: Buffer.from(text) });
}

/** Drops a file as a careful writer does, and records it before the program can see it. */
export function dropRecorded(record: string, path: string, content: Buffer): void {
  // Beside the drop folder.
  const draft = `${dirname(path)}-draft`;
  writeFileSync(draft, content);
  appendLine(record, 'P', { path, inode: statSync(draft).ino, data: content });
  renameSync(draft, path);
}

function appendLine(
  record: string,
  mark: keyof typeof KINDS,
  { path = '', inode = 0, data }: { path?: string; inode?: number; data: Buffer },
): void {
  const name = Buffer.from(path);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(HEADER_BYTES + name.length + data.length, 0);
  header.writeUInt32LE(mark.charCodeAt(0), 4);
  header.writeBigUInt64LE(BigInt(inode), 8);
  header.writeUInt32LE(name.length, 24);
  header.writeUInt32LE(data.length, 32);
  appendFileSync(record, Buffer.concat([header, name, data]));
}
