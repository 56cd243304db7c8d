/**
 * Runs test files for `npm test` and similar commands, each in its own process, several at a time.
 *
 * Usage: node test/run.ts [--long] [--executable] [--grep PATTERN] [TEST...]. A test is a file, or its name without
 * .test.ts; --grep runs only those whose title matches. By default, runs all tests except those that take minutes; with
 * --long, only those. With --executable, then also runs tests for which it matters (OF_EXECUTABLE) on dist/wirewatch
 * instead of the bundle, with an empty environment and in an empty folder (test/support/command.ts). WIREWATCH_PROGRAM
 * names another executable.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build, type OutputFile } from 'esbuild';
import { nearest } from '../src/nearest.ts';
import { TYPEBOX } from './support/quick-typebox.ts';
import { testFiles, testsByName } from './support/test-files.ts';
import { isWritable } from './support/test-folder.ts';
import { words } from './support/words.ts';

const TESTS = import.meta.dirname;
const DIST = path.join(TESTS, '..', 'dist');

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { long: { type: 'boolean' }, executable: { type: 'boolean' }, grep: { type: 'string' } },
    allowPositionals: true,
  });
  const byName = testsByName(TESTS);
  const filesOf = (names: readonly string[]) =>
    names.map(
      (name) =>
        byName.get(name) ?? (existsSync(name) ? path.resolve(name) : noSuchTest(name, [...byName.keys()])),
    );
  const named = filesOf(positionals);
  // Shared by the test processes: types are stripped from each source once.
  process.env.NODE_COMPILE_CACHE ??= path.join(DIST, 'compiled');
  process.env.WIREWATCH_HASTE ??= '20';
  process.env.WIREWATCH_TEST_BUNDLES ??= await bundleForTests();
  // It is set if a test runs this script, and would change the reporter's output.
  delete process.env.NODE_TEST_CONTEXT;
  const { grep } = values;
  if (values.long === true) await runFiles(named.length > 0 ? named : inOrder('long'), grep);
  if (values.executable === true) {
    process.env.WIREWATCH_PROGRAM ??= path.join(DIST, 'wirewatch');
    await runFiles(named.length > 0 ? named : filesOf(OF_EXECUTABLE), grep);
  }
  if (values.long !== true && values.executable !== true) {
    if (named.length === 0 && grep === undefined) writeToMemory();
    await runFiles(named.length > 0 ? named : inOrder('short'), grep);
  }
}

/**
 * Bundles TypeBox (support/quick-typebox.ts), and the process that runs commands (support/warm-commands.ts): each test
 * process that needs it starts it. @returns the folder
 */
async function bundleForTests(): Promise<string> {
  const outdir = path.join(DIST, 'tests');
  const commands = path.join(TESTS, 'support', 'command-process.ts');
  const { outputFiles } = await build({
    entryPoints: Object.fromEntries([...TYPEBOX.map((name) => [name, name]), ['command-process', commands]]),
    ...{ outdir, bundle: true, splitting: true, platform: 'node', format: 'esm', write: false },
    outExtension: { '.js': '.mjs' },
    external: ['better-sqlite3'],
    // Other packages are inside, some of them CommonJS.
    banner: {
      js: "import * as nodeModule from 'module'; const require = nodeModule.createRequire(import.meta.url);",
    },
    // Only src/packed.ts reads it.
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(path.join(TESTS, '..', 'src', 'packed.ts'))) },
  });
  const isThere = ({ path: file, contents }: OutputFile) =>
    existsSync(file) && readFileSync(file).equals(contents);
  // Another run may be loading the same ones.
  if (outputFiles.every(isThere)) return outdir;
  rmSync(outdir, { recursive: true, force: true });
  for (const { path: file, contents } of outputFiles) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, contents);
  }
  return outdir;
}

const MEMORY = '/dev/shm';
/** Much more than tests keep at the same time. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3;

/** Has tests write to memory where it has room, unless TMPDIR names another place: they sync thousands of times. */
function writeToMemory(): void {
  if (process.env.TMPDIR !== undefined || !isWritable(MEMORY)) return;
  const { bavail, bsize } = statfsSync(MEMORY);
  const folder = mkdtempSync(path.join(MEMORY, 'wirewatch-'));
  // Like /tmp: some tests act as another user.
  chmodSync(folder, 0o1777);
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  process.once('SIGINT', () => process.exit(130));
  // Some tests run what they write.
  const script = path.join(folder, 'script');
  writeFileSync(script, '#!/bin/sh\n', { mode: 0o755 });
  if (bavail * bsize >= MEMORY_BYTES_MIN && spawnSync(script).status === 0) process.env.TMPDIR = folder;
}

const IMPORTS = [
  '--disable-warning=ExperimentalWarning',
  ...['--import', path.join(TESTS, 'support', 'quick-typebox.ts')],
];

/** Files that take longest. They start first, in this order: otherwise the run would wait only for them at the end. */
const FIRST = words(`
  torture-faults torture-kill exam-clients several-processes tls pull console-views torture-soak
  manual-operations three-ways disk-full recovery`);

function inOrder(which: 'long' | 'short'): string[] {
  const nameOf = (file: string) => path.basename(file, '.test.ts');
  // Of the long ones, these run on the executable.
  const files = testFiles(TESTS, which).filter(
    (file) => which === 'short' || !OF_EXECUTABLE.includes(nameOf(file)),
  );
  const first = FIRST.flatMap((name) => files.filter((file) => nameOf(file) === name));
  return [...first, ...files.filter((file) => !first.includes(file))];
}

/**
 * What packing can break: assets, threads, the addon, child processes, the terminal and the environment each have a
 * test here, beside those of test/long/executable that are about the file itself.
 */
const OF_EXECUTABLE = words(`
  administration-port check command-line completion demo generate-command healthcheck lab-start
  log-on-terminal s3-tls sample service-setup start-and-stop verify-data`);

/** A test that hangs fails after so many minutes, and the others go on: far longer than any takes beside load. */
const TEST_MINUTES_MAX = { short: 10, long: 40 };

/** More test files at once than processors: they also wait for threads, timers and the disk. */
const WAITING = 3;

/** So few files that failed are run again, alone: a machine may stop a process for seconds. More of them are no chance. */
const RETRIED_MAX = 3;

async function runFiles(files: string[], grep?: string): Promise<void> {
  const failed = await failedFiles(files, availableParallelism() + WAITING, grep);
  if (failed.length === 0) return;
  const isRetried = files.length > 1 && failed.length <= RETRIED_MAX;
  const again = isRetried ? await failedFiles(failed, 1, grep) : failed;
  if (again.length > 0) process.exitCode = 1;
  else
    process.stdout.write(
      `\nFailed beside other tests and passed alone, which is a defect all the same:\n  ${failed.join('\n  ')}\n`,
    );
}

/** The first folder of a test file below `test`. */
function roomOf(file: string): string {
  const [room = ''] = path.relative(TESTS, path.dirname(file)).split(path.sep);
  return room === '' ? 'test' : room;
}

/** Runs test files, and prints how they went. @returns those that failed */
async function failedFiles(files: string[], concurrency: number, grep?: string): Promise<string[]> {
  const long = testFiles(TESTS, 'long');
  const minutes = TEST_MINUTES_MAX[files.some((file) => long.includes(file)) ? 'long' : 'short'];
  const execArgv = [...IMPORTS, `--test-timeout=${minutes * 60_000}`, '--test-force-exit'];
  const patterns = grep === undefined ? {} : { testNamePatterns: [grep] };
  const tests = run({ files, concurrency, execArgv, ...patterns });
  const ofFiles = new Map<string, number>();
  const ofRooms = new Map<string, number>();
  const failed: string[] = [];
  // Of a file as a whole: a test itself may be of another one, which defines tests for several.
  tests.on('test:complete', ({ name, file = '', details }) => {
    if (path.resolve(name) !== file) return;
    const room = roomOf(file);
    ofFiles.set(path.relative(TESTS, file), details.duration_ms);
    ofRooms.set(room, (ofRooms.get(room) ?? 0) + details.duration_ms);
    if (details.passed === false) failed.push(file);
  });
  for await (const text of tests.compose(spec)) process.stdout.write(text);
  if (files.length > 1)
    process.stdout.write(`\nSlowest files:\n${timesText(ofFiles, 10)}Rooms:\n${timesText(ofRooms)}`);
  return failed;
}

/** The longest times, in milliseconds, by what they are of. Rooms run at the same time. */
function timesText(times: ReadonlyMap<string, number>, count?: number): string {
  return [...times]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, count)
    .map(([what, ms]) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${what}\n`)
    .join('');
}

function noSuchTest(name: string, known: readonly string[]): never {
  const near = nearest(name, known, Number.POSITIVE_INFINITY);
  process.stderr.write(
    `There is no test ${name}. Did you mean ${near}? A test is a file, or its name without .test.ts.\n`,
  );
  process.exit(2);
}

await main();
