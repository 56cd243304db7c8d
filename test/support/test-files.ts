/** Finds the test files: one folder per folder of src, with unique names. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const LONG = `long${path.sep}`;

/**
 * The test files of a project, in the order of their names.
 *
 * @param tests the folder of all tests
 * @param which `long`: those in `test/long`, which take minutes; `short`: the others
 */
export function testFiles(tests: string, which: 'long' | 'short'): string[] {
  return globSync('**/*.test.ts', { cwd: tests })
    .filter((file) => file.startsWith(LONG) === (which === 'long'))
    .sort()
    .map((file) => path.join(tests, file));
}

/** The path of each test file by its name without `.test.ts`. */
export function testsByName(tests: string): Map<string, string> {
  const files = [...testFiles(tests, 'short'), ...testFiles(tests, 'long')];
  return new Map(files.map((file) => [path.basename(file, '.test.ts'), file]));
}

/**
 * Whether a test file starts the program, directly or through its imports.
 *
 * @param tests the folder of all tests
 */
export function startsProgram(file: string, tests: string, seen = new Set<string>()): boolean {
  if (file === path.join(tests, 'support', 'command.ts')) return true;
  if (seen.has(file) || !file.startsWith(tests)) return false;
  seen.add(file);
  const imports = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)(?! type)[^;]*? from '(\..*?\.ts)'/gm,
  );
  return [...imports].some(([, name = '']) =>
    startsProgram(path.resolve(path.dirname(file), name), tests, seen),
  );
}
