/** Runs an appliance and reads its log line by line. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { TEST_SETTINGS } from './appliance.ts';
import { type LogLine, type RunningProgram, runProgram } from './program.ts';

/** Starts `serve` in a folder, optionally with `[log] file`. */
export function serve(folder: string, file = ''): RunningProgram {
  const ofLog = file === '' ? {} : { WIREWATCH_LOG_FILE: file };
  return runProgram(serving(folder), { ...TEST_SETTINGS, ...ofLog });
}

export const serving = (folder: string): string[] => [
  'serve',
  '--data',
  path.join(folder, 'data'),
  '--port',
  '0',
];

export function linesOf(file: string): LogLine[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  assert.equal(lines.pop(), '', `${file} ends in the middle of a line`);
  return lines.map((line) => JSON.parse(line));
}
