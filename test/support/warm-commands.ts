/**
 * Runs commands in a process that stays: most take a few milliseconds, but starting the program for each takes most of
 * a second. Each test process has one, which test/support/command-process.ts describes.
 *
 * It runs the sources, which test/run.ts bundles for it. What is about the process of a command, or about the program's own
 * bundle, starts the program itself: test/support/program.ts, and `runAlone` of test/support/command.ts.
 */
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { words } from './words.ts';

export interface WarmRequest {
  readonly args: readonly string[];
  /** The program's script, for commands that it prints or starts. */
  readonly script: string;
  /** All of it. */
  readonly environment: Readonly<NodeJS.ProcessEnv>;
  /** Null: that of the test. */
  readonly cwd: string | null;
}

export interface WarmResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether the process ends with this command. */
  readonly isLast: boolean;
}

/** The folder that test/run.ts has made. Without it, each command starts the program. */
const BUNDLES = process.env.WIREWATCH_TEST_BUNDLES;
/** Commands that run until a signal. */
const ENDLESS = words('serve demo lab');
/** What takes effect only where a process starts. */
const OF_START = /^(NODE_|LD_|TZ$|WIREWATCH_HASTE$)/;
const CHUNK_BYTES = 65_536;

/** Whether a command with these settings does the same in a process that runs others, too. */
export function canBeWarm(args: readonly string[], settings: Readonly<Record<string, string>>): boolean {
  return (
    process.platform === 'linux' &&
    BUNDLES !== undefined &&
    process.env.WIREWATCH_PROGRAM === undefined &&
    !args.some((arg) => ENDLESS.includes(arg)) &&
    !Object.keys(settings).some((name) => OF_START.test(name))
  );
}

let running: ReturnType<typeof startProcess> | undefined;

/** Waits for the command's end, and for nothing else. @throws Error if the process ends without a result */
export function runWarm(request: WarmRequest): WarmResult {
  running ??= startProcess();
  writeSync(running.requests, `${JSON.stringify(request)}\n`);
  const pieces: Buffer[] = [];
  // A result ends with the only line break, since JSON has none within a text.
  while (pieces.at(-1)?.at(-1) !== 0x0a) {
    const piece = Buffer.alloc(CHUNK_BYTES);
    const bytes = readSync(running.results, piece);
    if (bytes === 0) throw new Error(`wirewatch ${request.args.join(' ')} ended without a result`);
    pieces.push(piece.subarray(0, bytes));
  }
  const result: WarmResult = JSON.parse(Buffer.concat(pieces).toString());
  if (result.isLast) {
    closeSync(running.requests);
    closeSync(running.results);
    running = undefined;
  }
  return result;
}

/** @returns the ends of this process, as descriptors */
function startProcess() {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-commands-'));
  const [requests, results] = [join(folder, 'requests'), join(folder, 'results')];
  spawnSync('mkfifo', [requests, results]);
  // One open for both keeps the others from waiting for their opposite.
  const keepers = [requests, results].map((file) => openSync(file, constants.O_RDWR));
  const own = { requests: openSync(requests, 'w'), results: openSync(results, 'r') };
  const theirs = [openSync(requests, 'r'), openSync(results, 'w')];
  rmSync(folder, { recursive: true });
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...environment } = process.env;
  const child = spawn(process.execPath, [join(BUNDLES ?? '', 'command-process.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit', ...theirs],
    env: { ...environment, WIREWATCH_HASTE: '20' },
  });
  child.unref();
  for (const descriptor of [...keepers, ...theirs]) closeSync(descriptor);
  return own;
}
