/**
 * The run time of short commands, and the start time of `serve` (until it accepts connections) and `lab` (until it is
 * ready), of executable and bundle: milliseconds more than bare Node takes in the same round.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { words } from '../support/words.ts';
import { type Bench, cost, type Figure, inTurn, median } from './common.ts';
import { BUNDLE, stop } from './program.ts';

const ROUNDS = 11;
const BUILD = fileURLToPath(new URL('../../build/executable.mjs', import.meta.url));
const CREATE_KEY = 'key create --account agency --name n --scopes detections:read --subscriptions 7001';

/** Commands that read or write a few rows, or none: 100 ms or less. */
const COMMANDS = [
  ...['--version', 'account list', 'account set agency --name Agency', 'subscription list', CREATE_KEY],
  ...['key list', 'window list', 'ingest status', 'alert list', 'manual'],
];

type Program = readonly [file: string, ...args: string[]];
type Measure = (program: Program) => number | Promise<number>;

export async function starts({ folder }: Bench): Promise<Figure[]> {
  const data = ['--data', join(folder, 'data')];
  const bundle: Program = [process.execPath, BUNDLE];
  const output = join(folder, 'wirewatch');
  const build = `const { makeExecutable } = await import(${JSON.stringify(BUILD)});
    await makeExecutable({ output: ${JSON.stringify(output)} });`;
  execFileSync(process.execPath, ['--input-type=module', '-e', build], { stdio: 'inherit' });
  const programs: Readonly<Record<string, Program>> = { bundle, executable: [output] };
  run(bundle, ['account', 'add', 'agency', '--name', 'Agency', ...data]);
  run(bundle, ['subscription', 'add', '7001', '--account', 'agency', ...data]);
  const measures: Record<string, Measure> = {
    'key revoke': (program) => {
      const { id } = JSON.parse(run(bundle, [...words(CREATE_KEY), '--json', ...data]));
      return tookMs(program, ['key', 'revoke', String(id), '--yes', ...data]);
    },
    'serve, to listening': (program) => startedMs(program, ['serve', ...data], '"msg":"listening"'),
    // It is ready once it has read its month of detections.
    'lab, to ready': (program) =>
      startedMs(program, ['lab', '--data', join(folder, 'lab'), '--seed', '7'], 'The lab is running'),
  };
  for (const line of COMMANDS)
    measures[words(line).slice(0, 2).join(' ')] = (program) => tookMs(program, [...words(line), ...data]);

  const bare = { what: 'bare Node', measure: () => tookMs([process.execPath], ['-e', '0']) };
  const sides = Object.entries(measures).flatMap(([what, measure]) =>
    Object.entries(programs).map(([name, program]) => {
      return { what: `${what}, ${name}`, measure: () => measure(program) };
    }),
  );
  // The first round, which does not count, creates files and fills caches.
  const rounds = { rounds: ROUNDS };
  const [bareMs = [], ...lists] = await inTurn([bare, ...sides], rounds, async ({ measure }) => measure());
  return sides.map(({ what }, at) => {
    const more = (lists[at] ?? []).map((ms, round) => ms - (bareMs[round] ?? 0));
    return cost(what, 'ms more', median(more));
  });
}

/** @returns what it prints */
function run([file, ...args]: Program, more: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(file, [...args, ...more], { encoding: 'utf8' });
  // "alert list" exits with 1 if no appliance runs.
  if (status !== 0 && status !== 1) throw new Error(`${more.join(' ')} ended with ${status}: ${stderr}`);
  return stdout;
}

function tookMs(program: Program, args: readonly string[]): number {
  const startedMs = performance.now();
  run(program, args);
  return performance.now() - startedMs;
}

/** @param marker the text that the program prints once started */
async function startedMs([file, ...args]: Program, more: readonly string[], marker: string): Promise<number> {
  const beganMs = performance.now();
  const child = spawn(file, [...args, ...more, '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
  while (!output.includes(marker)) {
    if (child.exitCode !== null) throw new Error(`the appliance ended: ${output}`);
    await Promise.race(
      [child.stdout, child.stderr, child].map((one) => once(one, one === child ? 'exit' : 'data')),
    );
  }
  const ms = performance.now() - beganMs;
  await stop(child, 'SIGTERM');
  return ms;
}
