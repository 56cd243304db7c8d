/** New folders for tests, which are removed when the test process ends, and what is in a folder. */
import {
  accessSync,
  appendFileSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isErrorCode, unlessError } from '../../src/refused.ts';

const made: string[] = [];

export function testFolder(): string {
  if (made.length === 0)
    process.once('exit', () => {
      for (const folder of made) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    });
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  made.push(folder);
  return folder;
}

/** Copies a folder without sockets, which cannot be copied: a killed process leaves one. */
export function copyFolder(from: string, to: string): void {
  const filter = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true;
  cpSync(from, to, { recursive: true, preserveTimestamps: true, filter });
}

/** The paths of all files below a folder; none if it does not exist. */
export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

/** Takes every byte that is free on the disk of a file, which grows. */
export function fillDisk(path: string): void {
  for (const bytes of [1_000_000, 4096, 64])
    try {
      for (;;) appendFileSync(path, Buffer.alloc(bytes));
    } catch (error) {
      if (!isErrorCode(error, 'ENOSPC')) throw error;
    }
}

export const isWritable = (path: string): boolean =>
  unlessError(false, () => accessSync(path, constants.W_OK) === undefined);
