/** Finds the test files: one folder per folder of src, with unique names. */
import { globSync } from 'node:fs';
import path from 'node:path';
import { words } from './words.ts';

const LONG = `long${path.sep}`;

/**
 * Tests that lie in the room of what they test, but take long: real browsers, clients that wait for seconds, kills at
 * many moments, processes beside each other, damage of every kind, commands that start the program again and again. Each
 * rule that they show of the whole program has a short test besides.
 */
const LONG_IN_ROOMS = new Set(
  words(`
  archive check clients compact-online console-actions console-demo console-views crash data-folder demo
  emergency followers heal healthcheck keep key-store-errors lab-faults lab-feed lab-start log
  log-on-terminal manual-operating manual-operations photo-sending preseed pull pull-compare pull-files
  pull-retry pull-subscriptions removal-request restore restore-crash resumed-backfills s3-place sample
  service-setup several-processes slow-clients testing-your-client tls verify-data your-exports`),
);

/**
 * The test files of a project, in the order of their names.
 *
 * @param tests the folder of all tests
 * @param which `long`: those in `test/long` and of {@link LONG_IN_ROOMS}, which take minutes; `short`: the others
 */
export function testFiles(tests: string, which: 'long' | 'short'): string[] {
  return globSync('**/*.test.ts', { cwd: tests })
    .filter((file) => {
      const isLong = file.startsWith(LONG) || LONG_IN_ROOMS.has(path.basename(file, '.test.ts'));
      return isLong === (which === 'long');
    })
    .sort()
    .map((file) => path.join(tests, file));
}

/** The path of each test file by its name without `.test.ts`. */
export function testsByName(tests: string): Map<string, string> {
  const files = [...testFiles(tests, 'short'), ...testFiles(tests, 'long')];
  return new Map(files.map((file) => [path.basename(file, '.test.ts'), file]));
}
