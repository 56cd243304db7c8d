/** New folders for tests, which are removed when the test process ends, and what is in a folder. */
import {
  accessSync,
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

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
