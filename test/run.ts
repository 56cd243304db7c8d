/**
 * `npm test` and its like: runs test files, each in a process of its own, several at a time.
 *
 * Usage: node test/run.ts [--long] [--executable] [TEST...]. A test is a file, or its name without
 * .test.ts. Without any: every test but those in
 * test/long; with --long those instead. With --executable, the tests that start the program follow, on
 * dist/wirewatch in place of the bundle, each time with an empty environment and in an empty folder
 * (test/support/command.ts); WIREWATCH_PROGRAM names another executable.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { startsProgram, testFiles, testsByName } from './support/test-files.ts';

const TESTS = import.meta.dirname;
const DIST = path.join(TESTS, '..', 'dist');

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { long: { type: 'boolean' }, executable: { type: 'boolean' } },
    allowPositionals: true,
  });
  const byName = testsByName(TESTS);
  const named = positionals.map((name) => byName.get(name) ?? path.resolve(name));
  const folder = mkdtempSync(path.join(tmpdir(), 'wirewatch-run-'));
  // For the processes of the files: types are stripped from each source once, and an installation is made once.
  process.env.NODE_COMPILE_CACHE ??= path.join(DIST, 'compiled');
  process.env.WIREWATCH_TEST_TEMPLATE = path.join(folder, 'installation');
  process.env.WIREWATCH_HASTE ??= '20';
  // Set within a test, which would then hear of these in its own form.
  delete process.env.NODE_TEST_CONTEXT;
  try {
    if (values.long === true) await runFiles(named.length > 0 ? named : testFiles(TESTS, 'long'));
    if (values.executable === true) {
      process.env.WIREWATCH_PROGRAM ??= path.join(DIST, 'wirewatch');
      await runFiles(named.length > 0 ? named : inOrder().filter((file) => startsProgram(file, TESTS)));
    }
    if (values.long !== true && values.executable !== true)
      await runFiles(named.length > 0 ? named : inOrder());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The manual's Markdown is imported as text; in the program the bundler has put it in. */
const TEXT_IMPORTS = ['--experimental-import-text', '--disable-warning=ExperimentalWarning'];

/** Files that wait long, for locks and timeouts of their own: begun last, they would be waited for alone. */
const FIRST = ['exam', 'several-processes', 'tls', 'pull', 'slow-clients'];

function inOrder(): string[] {
  const isFirst = (file: string) => FIRST.includes(path.basename(file, '.test.ts'));
  const files = testFiles(TESTS, 'short');
  return [...files.filter(isFirst), ...files.filter((file) => !isFirst(file))];
}

async function runFiles(files: string[]): Promise<void> {
  // One more than there are processors: tests also wait, for threads, timers and the disk.
  const tests = run({ files, concurrency: availableParallelism() + 1, execArgv: TEXT_IMPORTS });
  tests.on('test:fail', () => {
    process.exitCode = 1;
  });
  for await (const text of tests.compose(spec)) process.stdout.write(text);
}

await main();
