/**
 * The bundled program with smaller constants, so that a short scenario has closed segments, a backfill and a rebuild in
 * several transactions, and expired archive files.
 */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PROJECT = join(import.meta.dirname, '..', '..', '..');
const DIST = join(PROJECT, 'dist');

const SMALLER = [
  { constant: 'SEGMENT_BYTES=64*1024*1024', small: 'SEGMENT_BYTES=6*1024' },
  { constant: 'TRANSACTION_ROWS=2e4', small: 'TRANSACTION_ROWS=500' },
  { constant: 'TRANSACTION_LINES=5e3', small: 'TRANSACTION_LINES=100' },
  // A day of retention takes a millisecond.
  { constant: 'archiveDays*864e5', small: 'archiveDays' },
  { constant: 'PROVEN_AFTER_MS=paced(36e5)', small: 'PROVEN_AFTER_MS=0' },
];

/**
 * @param parent the program is written to a new folder below it
 * @returns the path of its entry file
 */
export function makeSmallProgram(parent: string): string {
  const folder = join(parent, 'program');
  mkdirSync(folder);
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  for (const name of ['main.cjs', 'licenses.json', 'console.json'])
    cpSync(join(DIST, name), join(folder, name));
  const sources = ['program.cjs', 'worker.cjs'].map((name) => {
    const source = readFileSync(join(DIST, name), 'utf8');
    return {
      name,
      source,
      small: SMALLER.reduce((text, { constant, small }) => text.replace(constant, small), source),
    };
  });
  for (const { constant } of SMALLER)
    if (!sources.some(({ source }) => source.includes(constant)))
      throw new Error(
        `the bundle does not contain "${constant}": update test/torture/scenario/small-program.ts`,
      );
  for (const { name, small } of sources) writeFileSync(join(folder, name), small);
  return join(folder, 'main.cjs');
}
