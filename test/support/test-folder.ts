/** New folders for tests, below the system's temporary folder; they are removed when the test process ends. */
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
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

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
