/** Has clients take the lab's exam, each in a folder of its own; several exams share a lab, one after the other. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { RULES } from '../../src/tools/lab/exam-grades.ts';
import { type Lab, startLab } from './lab.ts';
import { runProgram } from './program.ts';
import { sample } from './samples.ts';
import { testFolder } from './test-folder.ts';

export interface Result {
  readonly code: number | null;
  readonly passed: boolean;
  readonly outcomes: Readonly<Record<string, string>>;
  readonly findings: readonly {
    readonly rule: string;
    readonly outcome: string;
    readonly detail: string;
    readonly documentation: string;
    readonly requests: readonly number[];
  }[];
}

export async function exam(lab: Lab, args: readonly string[]): Promise<Result> {
  const run = runProgram(['lab', 'exam', '--json', '--data', lab.data, ...args]);
  const code = await run.ended;
  assert.ok(run.stdout().startsWith('{'), `exit code ${code}: ${run.stderr()}`);
  const { passed, findings } = JSON.parse(run.stdout());
  const outcomes = findings.map(({ rule, outcome }: { rule: string; outcome: string }) => [rule, outcome]);
  return { code, passed, findings, outcomes: Object.fromEntries(outcomes) };
}

export const failed = ({ findings }: Result) => findings.filter(({ outcome }) => outcome === 'failed');

/** @param otherwise the rules that did not pass, with their outcomes */
export function assertPassed(result: Result, otherwise: Readonly<Record<string, string>>): void {
  assert.deepEqual(failed(result), []);
  const passed = Object.fromEntries(Object.keys(RULES).map((rule) => [rule, 'passed']));
  assert.deepEqual(result.outcomes, { ...passed, ...otherwise });
  assert.deepEqual([result.passed, result.code], [true, 0]);
}

/** A shell command that runs in a folder, with the PATH of the tests, since the program may have none. */
export function line(folder: string, program: string, ...args: string[]): string {
  const quoted = [program, ...args].map((word) => `'${word}'`).join(' ');
  return `export PATH='${process.env.PATH}'; cd '${folder}'; exec ${quoted}`;
}

const PRINT_COPY = `
const { DatabaseSync } = require('node:sqlite');
const [file, table] = process.argv.slice(2);
for (const { id, version } of new DatabaseSync(file, { timeout: 10_000 }).prepare('SELECT id, version FROM ' + table).iterate())
  console.log(JSON.stringify({ id, version }));
`;

export function printCopy(folder: string, file = 'detections.sqlite', table = 'detection'): string {
  writeFileSync(path.join(folder, 'print-copy.cjs'), PRINT_COPY);
  return line(folder, process.execPath, 'print-copy.cjs', file, table);
}

/** A sample client whose first wait is a quarter of a second, so that its exam is short. */
export function hastySample(name: 'client-ts' | 'client-py'): string {
  const text = sample(name);
  const hasty = text.replace('FIRST_WAIT = SECOND', 'FIRST_WAIT = SECOND / 4').replace('= 1, 5', '= 0.25, 5');
  assert.notEqual(hasty, text);
  return hasty;
}

const free: Lab[] = [];

/**
 * Gives a test a lab that no other test uses meanwhile, and a folder for its client.
 * @param isNew a lab without the restore of an earlier exam
 */
export async function withExam(
  use: (lab: Lab, folder: string) => Promise<void>,
  isNew = false,
): Promise<void> {
  const folder = testFolder();
  const own = path.join(folder, 'client');
  mkdirSync(own);
  const lab = (isNew ? undefined : free.pop()) ?? (await startLab(folder, ['--seed', '7']));
  try {
    await use(lab, own);
  } finally {
    free.push(lab);
  }
}

/** Ends the labs; for `after`. */
export async function endLabs(): Promise<void> {
  for (const lab of free.splice(0)) await lab.stop();
}
