/**
 * Mutation tests: plants small faults in the source, one at a time. Each must make a test fail; otherwise a test is
 * missing.
 *
 * A fault is planted in a copy of the project, where only its test file runs. That file must first pass without the
 * fault. That each fault matches the source is a test of its own, test/structure.test.ts.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { copyProject } from '../support/project-copy.ts';
import { seededPrng, shuffled } from '../support/seeded-prng.ts';
import { testsByName } from '../support/test-files.ts';
import { inEach, type Part, type PartOptions } from './part.ts';
import { PLANTED_FAULTS, type PlantedFault } from './planted/faults.ts';

/** Much longer than any of these tests takes. */
const TEST_MS = 10 * 60_000;

export const planted: Part = {
  name: 'planted',
  about: 'plants small faults in the source, each of which must make a test fail',
  run,
};

async function run({ seed, share, folder, tally, onProgress }: PartOptions): Promise<void> {
  const { failures } = tally;
  const count = Math.ceil(PLANTED_FAULTS.length * share);
  const faults = shuffled(seededPrng(seed, 'planted'), PLANTED_FAULTS).slice(0, count);
  const tests = [...new Set(faults.map(({ test }) => test))];
  const copies = Array.from({ length: Math.min(2, availableParallelism()) }, (_, index) =>
    copyProject(join(folder, `copy-${index}`)),
  );
  await inEach(copies, tests, async (copy, test) => {
    bundle(copy);
    const { passed, failed } = await runTest(copy, test);
    if (passed === 0 || failed > 0) failures.push(`${test} fails without a fault`);
    onProgress(`${test}: ${passed} tests pass without a fault`);
  });
  tally.count('faults in the list', PLANTED_FAULTS.length);
  tally.count('planted', faults.length);
  tally.count('test files', tests.length);
  await inEach(copies, faults, async (copy, fault) => {
    const missed = await plant(copy, fault);
    if (missed === null) tally.count('caught');
    else
      failures.push(`${fault.file}: ${fault.find.trim().replace(/\s+/g, ' ')}: ${missed} (${fault.breaks})`);
    onProgress(`${fault.file}, ${fault.breaks}: ${missed ?? `caught by ${fault.test}`}`);
  });
  for (const copy of copies) rmSync(copy, { recursive: true });
}

/** @returns why the fault was not caught; null if it was */
async function plant(copy: string, { file, find, replace, test }: PlantedFault): Promise<string | null> {
  const path = join(copy, 'src', file);
  const sound = readFileSync(path, 'utf8');
  const faulty = sound.replace(find, () => replace);
  try {
    writeFileSync(path, faulty);
    bundle(copy);
    const { passed, failed, isOver } = await runTest(copy, test);
    if (!isOver) return `${test} does not end`;
    if (passed + failed === 0) return `${test} cannot be run`;
    return failed > 0 ? null : `no test of ${test} fails`;
  } finally {
    writeFileSync(path, sound);
  }
}

/** @throws Error if the source is no TypeScript */
function bundle(copy: string): void {
  const bundler = join(copy, 'build', 'bundle.mjs');
  execFileSync(process.execPath, [bundler], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** @returns how many tests passed and failed */
async function runTest(copy: string, test: string) {
  const file = testsByName(join(copy, 'test')).get(test);
  if (file === undefined) throw new Error(`no test is called ${test}`);
  const { NODE_TEST_CONTEXT: _, WIREWATCH_PROGRAM: __, ...inherited } = process.env;
  const own = { WIREWATCH_HASTE: '20', NODE_COMPILE_CACHE: join(copy, 'dist', 'compiled') };
  // The bundles of the run around it have no planted fault.
  const env = { ...inherited, ...own, WIREWATCH_TEST_BUNDLES: undefined };
  const args = ['--disable-warning=ExperimentalWarning', '--test-reporter=tap', '--test-force-exit', file];
  const child = spawn(process.execPath, args, {
    ...{ cwd: copy, env, stdio: ['ignore', 'pipe', 'ignore'], detached: true },
    ...{ timeout: TEST_MS, killSignal: 'SIGKILL' },
  });
  const output = text(child.stdout);
  const [code] = await once(child, 'exit');
  try {
    // A failed test may leave a program running.
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // All of the group have ended.
  }
  const said = await output;
  const count = (result: RegExp) => said.match(result)?.length ?? 0;
  return { passed: count(/^ *ok \d+ - /gm), failed: count(/^ *not ok \d+ - /gm), isOver: code !== null };
}
