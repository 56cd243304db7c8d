/**
 * `revocations` in the data folder: keys that were revoked and accounts that were suspended while access.db could not be
 * written. The file has its full size from the start, so a full disk does not prevent it (unless its file system copies on
 * write). Every start refuses what it names; what changes access.db applies it first, and empties it.
 *
 * A line is the CRC-32 of its document in hexadecimal digits, a space, and the document: a damaged line hides no other.
 */
import { closeSync, fdatasyncSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { isErrorCode, unlessCode } from '../refused.ts';
import { type DataFolder, openFile, writeWhole } from './folder.ts';

export interface Ended {
  readonly kind: 'key' | 'account';
  readonly id: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Some seven hundred lines. */
const FILE_BYTES = 64 * 1024;
const LINE = /([0-9a-f]{8}) ({[^{}]*})/g;

function pathOf({ root }: DataFolder): string {
  return join(root, 'revocations');
}

/** Creates the file where it is missing. @throws the file system's error */
export function prepareRevocations(folder: DataFolder): void {
  try {
    closeSync(openSync(pathOf(folder), 'r'));
  } catch (error) {
    if (!isErrorCode(error, 'ENOENT')) throw error;
    writeWhole(pathOf(folder), ' '.repeat(FILE_BYTES));
  }
}

/** Durable when it returns. @throws the file system's error; Error if the file has no room left */
export function noteEnded(folder: DataFolder, ended: Ended): void {
  using file = openFile(pathOf(folder), 'r+');
  const bytes = Buffer.alloc(FILE_BYTES);
  readSync(file.fd, bytes);
  const at = linesOf(bytes).at(-1)?.end ?? 0;
  const document = JSON.stringify(ended);
  const line = `${checksum(document)} ${document}\n`;
  if (at + line.length > FILE_BYTES) throw new Error(`${pathOf(folder)} is full`);
  writeSync(file.fd, line, at);
  fdatasyncSync(file.fd);
}

/** In the order in which they were noted. @throws the file system's error */
export function readEnded(folder: DataFolder): Ended[] {
  return unlessCode([], () => linesOf(readFileSync(pathOf(folder))).map(({ ended }) => ended), 'ENOENT');
}

/**
 * Once access.db has them. What cannot be emptied is removed: an account that is resumed would be suspended again by it.
 * @throws the file system's error
 */
export function emptyRevocations(folder: DataFolder): void {
  try {
    using file = openFile(pathOf(folder), 'r+');
    writeSync(file.fd, ' '.repeat(FILE_BYTES), 0);
    fdatasyncSync(file.fd);
  } catch {
    rmSync(pathOf(folder), { force: true });
  }
}

/** The lines whose checksum is right. `end`: the place in the file behind it. */
function linesOf(bytes: Buffer): { readonly ended: Ended; readonly end: number }[] {
  // One character a byte, so that places in the text are places in the file.
  return [...bytes.toString('latin1').matchAll(LINE)].flatMap(({ 0: { length }, 1: sum, 2: text, index }) =>
    text !== undefined && checksum(text) === sum
      ? [{ ended: JSON.parse(text), end: index + length + 1 }]
      : [],
  );
}

function checksum(document: string): string {
  return crc32(document).toString(16).padStart(8, '0');
}
