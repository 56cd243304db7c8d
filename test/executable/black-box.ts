/**
 * `npm run test:executable`: every test that runs the program from outside, on dist/wirewatch in place of the bundle,
 * each time with an empty environment and in an empty folder (test/support/command.ts).
 *
 * Arguments: test files, for less than all of them. WIREWATCH_PROGRAM names another executable.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const TESTS = path.join(import.meta.dirname, '..');
const PROGRAM = path.join(TESTS, '..', 'dist', 'wirewatch');

/** The test files that start the program by way of what they import. */
export function blackBoxTests(): string[] {
  const names = readdirSync(TESTS).filter((name) => name.endsWith('.test.ts'));
  return names.map((name) => path.join(TESTS, name)).filter((file) => startsProgram(file, new Set()));
}

function startsProgram(file: string, seen: Set<string>): boolean {
  if (file === path.join(TESTS, 'support', 'command.ts')) return true;
  if (seen.has(file) || !file.startsWith(TESTS)) return false;
  seen.add(file);
  const imports = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)(?! type)[^;]*? from '(\..*?\.ts)'/gm,
  );
  return [...imports].some(([, name = '']) => startsProgram(path.resolve(path.dirname(file), name), seen));
}

if (process.argv[1] === import.meta.filename) {
  const named = process.argv.slice(2);
  const files = named.length > 0 ? named : blackBoxTests();
  const env: NodeJS.ProcessEnv = { WIREWATCH_PROGRAM: PROGRAM, ...process.env };
  // Set within a test; the tests in here would then report to that one in its own form.
  delete env.NODE_TEST_CONTEXT;
  const options = ['--test', '--test-reporter=spec', '--test-concurrency=2'];
  const { status } = spawnSync(process.execPath, [...options, ...files], { env, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}
