/** Finds the test files: one folder per folder of src, with unique names. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { words } from './words.ts';

const LONG = `long${path.sep}`;

/**
 * Tests that lie in the room of what they test, but take long: real browsers, clients that wait for seconds, kills at
 * many moments, processes beside each other, damage of every kind. Each rule that they show of the whole program has a
 * short test besides.
 */
const LONG_IN_ROOMS = new Set(
  words(`
  archive compact-online console-actions console-demo console-tls console-views crash data-folder demo followers heal
  keep key-store-errors lab-clock lab-control lab-faults lab-start log log-on-terminal manual-operating photo-sending
  preseed pull pull-compare pull-retry removal-request restore restore-crash resumed-backfills s3-place
  several-processes slow-clients testing-your-client tls verify-data your-exports`),
);

/**
 * The test files of a project, in the order of their names.
 *
 * @param tests the folder of all tests
 * @param which `long`: those in `test/long` and of {@link LONG_IN_ROOMS}, which take minutes; `short`: the others
 */
export function testFiles(tests: string, which: 'long' | 'short'): string[] {
  return globSync('**/*.test.ts', { cwd: tests })
    .filter((file) => isLong(file) === (which === 'long'))
    .sort()
    .map((file) => path.join(tests, file));
}

function isLong(file: string): boolean {
  return file.startsWith(LONG) || LONG_IN_ROOMS.has(path.basename(file, '.test.ts'));
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
export function startsProgram(file: string, tests: string): boolean {
  return importsOf(file, tests).has(path.join(tests, 'support', 'command.ts'));
}

/** Hooks of all tests of a process; those within a suite, and what ends with the process, are of no others. */
const HOOK = /^(before|beforeEach|afterEach)\(/m;
const HOOK_IN_SUPPORT = /^\s*(before|beforeEach|afterEach)\([^)]/m;
const CHANGED_PROCESS = /process\.(env\.\w+ \S*=|argv|chdir|umask|seteuid)|delete process\.env|\bmock\./;

/** Whether a test file can run in one process with others: it starts no program, and changes nothing that they see. */
export function sharesProcess(file: string, tests: string): boolean {
  if (startsProgram(file, tests)) return false;
  return [...importsOf(file, tests)].every((one) => {
    const text = readFileSync(one, 'utf8');
    return !(one === file ? HOOK : HOOK_IN_SUPPORT).test(text) && !CHANGED_PROCESS.test(text);
  });
}

/** The file, and what it imports of the tests, at any depth, without types. */
function importsOf(file: string, tests: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(file) || !file.startsWith(tests)) return seen;
  seen.add(file);
  const imports = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)(?! type)[^;]*? from '(\..*?\.ts)'/gm,
  );
  for (const [, name = ''] of imports) importsOf(path.resolve(path.dirname(file), name), tests, seen);
  return seen;
}
