/** Reads the record of preload.c: changes of files below a folder, in order, between responses and printed output. */
import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';

/** One record. Paths are absolute; inodes are those of the file system. */
export type IoEvent =
  | { readonly kind: 'write'; readonly path: string; readonly inode: number; readonly change: Written }
  | { readonly kind: 'truncate'; readonly path: string; readonly inode: number; readonly change: Truncated }
  | {
      readonly kind:
        | 'create'
        | 'sync'
        | 'unlink'
        | `${'make' | 'sync' | 'remove'} folder`
        | 'rename'
        | 'link';
      readonly path: string;
      /** The new name of a rename or link; otherwise empty. */
      readonly other: string;
      readonly inode: number;
    }
  /** A file that the test dropped: durable immediately, since its writer is not part of the test. */
  | { readonly kind: 'put'; readonly path: string; readonly inode: number; readonly content: Buffer }
  /** The start of a response; the start of a command's output; a note of the test. */
  | { readonly kind: 'answer' | 'print' | 'note'; readonly text: string };

export interface Written {
  readonly at: number;
  readonly data: Buffer;
}

export interface Truncated {
  readonly size: number;
}

const HEADER_BYTES = 40;
const KINDS: Readonly<Record<string, IoEvent['kind']>> = {
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
  P: 'put',
  A: 'answer',
  O: 'print',
  N: 'note',
};

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
  const inode = Number(line.readBigUInt64LE(8));
  const at = Number(line.readBigInt64LE(16));
  const pathEnd = HEADER_BYTES + line.readUInt32LE(24);
  const otherEnd = pathEnd + line.readUInt32LE(28);
  const path = line.toString('utf8', HEADER_BYTES, pathEnd);
  const other = line.toString('utf8', pathEnd, otherEnd);
  const data = line.subarray(otherEnd);
  const kind = KINDS[mark];
  switch (kind) {
    case 'write':
      return { kind, path, inode, change: { at, data } };
    case 'truncate':
      return { kind, path, inode, change: { size: at } };
    case 'put':
      return { kind, path, inode, content: data };
    case 'answer':
    case 'print':
    case 'note':
      return { kind, text: data.toString() };
    case undefined:
      throw new Error(`the record has a line of an unknown kind: ${mark} ${path}`);
    default:
      return { kind, path, other, inode };
  }
}

/** Adds a note of the test between the program's records. */
export function note(record: string, text: string): void {
  appendLine(record, 'N', { data: Buffer.from(text) });
}

/** Drops a file as a careful writer does, and records it before the program can see it. */
export function dropRecorded(
  record: string,
  { draft, path, content }: { draft: string; path: string; content: Buffer },
): void {
  writeFileSync(draft, content);
  appendLine(record, 'P', { path, inode: statSync(draft).ino, data: content });
  renameSync(draft, path);
}

function appendLine(
  record: string,
  kind: string,
  { path = '', inode = 0, data }: { path?: string; inode?: number; data: Buffer },
): void {
  const name = Buffer.from(path);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(HEADER_BYTES + name.length + data.length, 0);
  header.writeUInt32LE(kind.charCodeAt(0), 4);
  header.writeBigUInt64LE(BigInt(inode), 8);
  header.writeUInt32LE(name.length, 24);
  header.writeUInt32LE(data.length, 32);
  appendFileSync(record, Buffer.concat([header, name, data]));
}
