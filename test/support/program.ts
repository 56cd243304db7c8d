/** Runs the program with any arguments: its output, log and exit code. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { checkAnswersOf } from './checked-fetch.ts';
import { programCommand } from './command.ts';

/** Much longer than anything here takes: only a failing test waits so long. */
const PATIENCE_MS = 120_000;
const CHECK_EVERY_MS = 10;

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface RunningProgram {
  /** Its stdout so far. */
  printed(): string;
  /** Its stderr so far: log lines, or an error message. */
  told(): string;
  /** Grows while the program runs. */
  log(): readonly LogLine[];
  /** Removes the lines from memory: a run of hours would have millions. */
  takeLog(): LogLine[];
  /** Resolves when the condition holds; rejects if the program ends first. */
  until<Value>(what: string, look: () => Value | undefined): Promise<Value>;
  /** Its URL, once it listens. */
  url(): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** The exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>;
}

export interface RunOptions {
  /** Wraps the command line in another one. */
  readonly through?: (program: string, args: readonly string[]) => [string, readonly string[]];
  /** A file descriptor instead of a pipe. */
  readonly stderr?: number;
  /** The caller ends it, even within {@link inFolder}. */
  readonly isKept?: boolean;
}

/** Starts `wirewatch` with these arguments, and only these settings in the environment. */
export function runProgram(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  { through = (program, own) => [program, own], stderr, isKept = false }: RunOptions = {},
): RunningProgram {
  const start = programCommand(args, settings);
  const [program, all] = through(start.command, start.args);
  const stdio: StdioOptions = ['ignore', 'pipe', stderr ?? 'pipe'];
  const child = spawn(program, all, { ...start.options, stdio });
  if (!isKept) running.add(child);
  return followProgram(child, args);
}

function followProgram(child: ChildProcess, args: readonly string[]): RunningProgram {
  const printed: string[] = [];
  const told: string[] = [];
  const log: LogLine[] = [];
  let unfinished = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => printed.push(text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    told.push(text);
    const lines = (unfinished + text).split('\n');
    unfinished = lines.pop() ?? '';
    log.push(...lines.map(parseLine));
  });
  let hasEnded = false;
  const ended = once(child, 'close').then(([code]) => {
    hasEnded = true;
    running.delete(child);
    return typeof code === 'number' ? code : null;
  });
  const run: RunningProgram = {
    printed: () => printed.join(''),
    told: () => told.join(''),
    log: () => log,
    takeLog() {
      told.length = 0;
      return log.splice(0);
    },
    async until(what, find) {
      const untilMs = performance.now() + PATIENCE_MS;
      for (;;) {
        const wasOver = hasEnded;
        const found = find();
        if (found !== undefined) return found;
        if (wasOver || performance.now() > untilMs) {
          const why = wasOver ? 'it ended' : `not within ${PATIENCE_MS} ms`;
          const output = `It printed:\n${run.printed()}\nand told:\n${run.told()}`;
          throw new Error(`wirewatch ${args.join(' ')}: waited for ${what}: ${why}. ${output}`);
        }
        await somethingNew(child);
      }
    },
    async url() {
      const line = await run.until('its address', () => log.find(({ msg }) => msg === 'listening'));
      checkAnswersOf(String(line.url));
      return String(line.url);
    },
    kill: (signal) => child.kill(signal),
    ended,
  };
  return run;
}

/** The condition may depend on a file, so check it without new output, too. */
async function somethingNew({ stdout, stderr }: ChildProcess): Promise<void> {
  const over = new AbortController();
  const output = [stdout, stderr].flatMap((stream) =>
    stream === null ? [] : [once(stream, 'data', { signal: over.signal })],
  );
  await Promise.race([wait(CHECK_EVERY_MS, null, { signal: over.signal }), ...output]).finally(() =>
    over.abort(),
  );
}

/** Running programs: a failed test may leave one, which would keep the test process alive. */
const running = new Set<ChildProcess>();

/** Runs a test in a temporary folder; afterwards ends the programs started meanwhile, and removes the folder. */
export async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  const others = new Set(running);
  try {
    await use(folder);
  } finally {
    for (const child of running) if (!others.has(child)) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text);
  } catch {
    return { level: 'not a log line', msg: text };
  }
}
