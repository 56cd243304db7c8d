/**
 * `revocations` in the data folder: keys that were revoked and accounts that were suspended while access.db could not be
 * written. The file has its full size from the start, and lines are written over its spaces, so a full disk does not
 * prevent it, nor does anybody who takes what others free. (A file system that copies on write needs room even for
 * that.) Every start refuses what it names; what changes access.db applies it first, and empties it.
 */
import { closeSync, fdatasyncSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '../refused.ts';
import { type DataFolder, writeWhole } from './folder.ts';

export interface Ended {
  readonly kind: 'key' | 'account';
  readonly id: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Some three thousand lines. */
const FILE_BYTES = 256 * 1024;

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
  const file = openSync(pathOf(folder), 'r+');
  try {
    const bytes = Buffer.alloc(FILE_BYTES);
    readSync(file, bytes);
    // A torn line of an earlier crash has no line break; it is overwritten.
    const at = bytes.lastIndexOf('\n') + 1;
    const line = `${JSON.stringify(ended)}\n`;
    if (at + line.length > FILE_BYTES) throw new Error(`${pathOf(folder)} is full`);
    writeSync(file, line, at);
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** In the order in which they were noted. A line that a crash tore was never confirmed, and is left out. */
export function readEnded(folder: DataFolder): Ended[] {
  let text: string;
  try {
    text = readFileSync(pathOf(folder), 'utf8');
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return [];
    throw error;
  }
  return text.split('\n').slice(0, -1).flatMap(endedOf);
}

function endedOf(line: string): Ended[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

/** Once access.db has them. */
export function emptyRevocations(folder: DataFolder): void {
  const file = openSync(pathOf(folder), 'r+');
  try {
    writeSync(file, ' '.repeat(FILE_BYTES), 0);
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}
