/** Copies the project, so that a test can change its source. */
import { cpSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

const PROJECT = join(import.meta.dirname, '..', '..');
/** Not copied; node_modules is linked. */
const NOT_COPIED = new Set(['node_modules', 'dist', '.git', 'wirewatch-data', 'wirewatch-demo']);

/** @returns the folder of the copy, without a bundle */
export function copyProject(copy: string): string {
  cpSync(PROJECT, copy, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
  symlinkSync(join(PROJECT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}
