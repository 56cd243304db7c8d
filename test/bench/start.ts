/**
 * The run time of short commands, and the start time of `serve` (until it accepts connections) and `lab` (until it is
 * ready), for executable and bundle, against bare Node in the same run.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { words } from '../support/words.ts';
import { type Bench, median } from './common.ts';
import { BUNDLE } from './program.ts';

const ROUNDS = 11;
/** The allowed time in addition to bare Node's start and exit. */
const COMMAND_MS_MAX = 100;
const LISTENING_MS_MAX = 150;
/** The lab is ready once it has read its month of detections. */
const LAB_READY_MS_MAX = 450;
const BUILD = fileURLToPath(new URL('../../build/executable.mjs', import.meta.url));

const CREATE_KEY = words(
  'key create --account agency --name n --scopes detections:read --subscriptions 7001',
);

/** Commands that read or write a few rows, or none. */
const COMMANDS: readonly (readonly string[])[] = [
  ['version'],
  ['account', 'list'],
  ['account', 'set', 'agency', '--name', 'Agency'],
  ['subscription', 'list'],
  CREATE_KEY,
  ['key', 'list'],
  ['window', 'list'],
  ['ingest', 'status'],
  ['alert', 'list'],
  ['manual'],
];

interface Program {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
}

interface Start {
  readonly what: string;
  readonly maxMs: number;
  readonly measure: (program: Program) => number | Promise<number>;
}

/**
 * Returns a table with each command's median time beyond bare Node's. Every round runs all, so that noise affects all.
 */
export async function starts(bench: Bench): Promise<string> {
  const data = join(bench.folder, 'start');
  const bundle: Program = { name: 'bundle', file: process.execPath, args: [BUNDLE] };
  const programs = [bundle, makeExecutable(join(bench.folder, 'wirewatch'))];
  run(bundle, ['account', 'add', 'agency', '--name', 'Agency', '--data', data]);
  run(bundle, ['subscription', 'add', '7001', '--account', 'agency', '--data', data]);
  const measured: Start[] = COMMANDS.map((args) => ({
    what: args
      .filter((arg) => /^[a-z]/.test(arg))
      .slice(0, 2)
      .join(' '),
    maxMs: COMMAND_MS_MAX,
    measure: (program) => tookMs(program, [...args, '--data', data]),
  }));
  measured.push({
    what: 'key revoke',
    maxMs: COMMAND_MS_MAX,
    measure: (program) => {
      const { id } = JSON.parse(run(bundle, [...CREATE_KEY, '--json', '--data', data]));
      return tookMs(program, ['key', 'revoke', String(id), '--yes', '--data', data]);
    },
  });
  measured.push({
    what: 'serve, to listening',
    maxMs: LISTENING_MS_MAX,
    measure: (program) => startedMs(program, ['serve', '--data', data], '"msg":"listening"'),
  });
  measured.push({
    what: 'lab, to ready',
    maxMs: LAB_READY_MS_MAX,
    measure: (program) =>
      startedMs(program, ['lab', '--data', join(bench.folder, 'lab'), '--seed', '7'], 'The lab is running'),
  });

  const bareMs: number[] = [];
  const samples = measured.map(() => programs.map((): number[] => []));
  // The first round creates files and fills caches.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const bare = tookMs({ name: 'bare', file: process.execPath, args: [] }, ['-e', '0']);
    if (round > 0) bareMs.push(bare);
    for (const [at, { measure }] of measured.entries()) {
      for (const [which, program] of programs.entries()) {
        const ms = await measure(program);
        if (round > 0) samples[at]?.[which]?.push(ms);
      }
    }
  }
  return report(measured, programs, median(bareMs), samples);
}

function report(
  measured: readonly Start[],
  programs: readonly Program[],
  bareMs: number,
  samples: readonly (readonly (readonly number[])[])[],
): string {
  const lines = measured.map(({ what, maxMs }, at) => {
    const more = programs.map((_, which) => median(samples[at]?.[which] ?? []) - bareMs);
    const verdict = more.every((ms) => ms <= maxMs) ? 'reached' : 'NOT REACHED';
    return `| ${what} | ${more.map((ms) => `+${ms.toFixed(0)}`).join(' | ')} | ${maxMs} | ${verdict} |`;
  });
  return [
    `milliseconds more than bare Node, which takes ${bareMs.toFixed(0)} to start and end; median of ${ROUNDS}:`,
    `| command | ${programs.map(({ name }) => name).join(' | ')} | at most | |`,
    '|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}

function makeExecutable(output: string): Program {
  const build = `const { makeExecutable } = await import(${JSON.stringify(BUILD)});
    await makeExecutable({ output: ${JSON.stringify(output)} });`;
  execFileSync(process.execPath, ['--input-type=module', '-e', build], { stdio: 'inherit' });
  return { name: 'executable', file: output, args: [] };
}

/** @returns what it prints */
function run({ file, args }: Program, more: readonly string[]): string {
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
async function startedMs({ file, args }: Program, more: readonly string[], marker: string): Promise<number> {
  const beganMs = performance.now();
  const child = spawn(file, [...args, ...more, '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const tookMs = await new Promise<number>((resolve, reject) => {
    let output = '';
    const onText = (text: Buffer) => {
      output += text.toString();
      if (output.includes(marker)) resolve(performance.now() - beganMs);
    };
    child.stdout.on('data', onText);
    child.stderr.on('data', onText);
    child.once('exit', () => reject(new Error(`the appliance ended: ${output}`)));
  });
  child.kill('SIGTERM');
  await ended;
  return tookMs;
}
