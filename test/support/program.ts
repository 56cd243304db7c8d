/** Runs the program with any arguments: its output, log and exit code. */
import assert from 'node:assert/strict';
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { unlessError } from '../../src/refused.ts';
import { checkResponsesOf } from './checked-fetch.ts';
import { programCommand } from './command.ts';
import { pauseMs } from './until.ts';

/** Much longer than any step takes: only a failing test waits this long. */
const TIMEOUT_MS = 120_000;

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

type Settings = Readonly<Record<string, string>>;

export type RunningProgram = ReturnType<typeof watchProgram>;

export interface RunOptions {
  /** Wraps the command line in another one. */
  readonly through?: (program: string, args: readonly string[]) => [string, readonly string[]];
  /** A file descriptor instead of a pipe. */
  readonly stderr?: number;
  /** The caller ends the program; {@link inFolder} does not. */
  readonly isKept?: boolean;
}

/** Starts `wirewatch` with these arguments; its environment has only these settings. */
export function runProgram(
  args: readonly string[],
  settings: Settings = {},
  { through = (program, own) => [program, own], stderr, isKept = false }: RunOptions = {},
): RunningProgram {
  const start = programCommand(args, settings);
  const [program, all] = through(start.command, start.args);
  const stdio: StdioOptions = ['ignore', 'pipe', stderr ?? 'pipe'];
  const child = spawn(program, all, { ...start.options, stdio });
  if (!isKept) running.add(child);
  return watchProgram(child, args);
}

/** Starts `serve` on a data folder; resolves when it listens. */
export async function serve(data: string, more: readonly string[] = [], settings: Settings = {}) {
  const run = runProgram(['serve', '--data', data, '--port', '0', ...more], settings);
  return { ...run, url: await run.url() };
}

function watchProgram(child: ChildProcess, args: readonly string[]) {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const lines: LogLine[] = [];
  let unfinished = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => stdout.push(text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr.push(text);
    const whole = (unfinished + text).split('\n');
    unfinished = whole.pop() ?? '';
    lines.push(...whole.map(parseLine));
  });
  let exitCode: number | null | undefined;
  /** The exit code; null when a signal ended it. */
  const ended: Promise<number | null> = once(child, 'close').then(([code]) => {
    running.delete(child);
    exitCode = typeof code === 'number' ? code : null;
    return exitCode;
  });
  /** Resolves when the condition holds; rejects if the program ends first. */
  async function until<Value>(what: string, check: () => Value | undefined): Promise<Value> {
    for (const startMs = performance.now(); ; await sleep(pauseMs(startMs))) {
      const wasOver = exitCode !== undefined;
      const found = check();
      if (found !== undefined) return found;
      if (wasOver || performance.now() > startMs + TIMEOUT_MS) {
        const why = wasOver ? 'it ended' : `not within ${TIMEOUT_MS} ms`;
        const output = `stdout:\n${stdout.join('')}\nstderr:\n${stderr.join('')}`;
        throw new Error(`wirewatch ${args.join(' ')}: waited for ${what}: ${why}. ${output}`);
      }
    }
  }
  /** Waits for the first matching log line. */
  const logged = (what: string, condition: (line: LogLine) => boolean): Promise<LogLine> =>
    until(what, () => lines.find(condition));
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => {
    child.kill(signal);
    return ended;
  };
  return {
    ended,
    /** Undefined while it runs. */
    exitCode: () => exitCode,
    until,
    stdout: () => stdout.join(''),
    /** Its stderr so far: log lines, or an error message. */
    stderr: () => stderr.join(''),
    /** Grows while the program runs. */
    log: (): readonly LogLine[] => lines,
    /** Removes the lines from memory: a run of hours would have millions. */
    takeLog(): LogLine[] {
      stderr.length = 0;
      return lines.splice(0);
    },
    /** Its URL, once it listens. */
    async url(): Promise<string> {
      const line = await logged('its address', ({ msg }) => msg === 'listening');
      checkResponsesOf(String(line.url));
      return String(line.url);
    },
    logged,
    kill,
    /** @returns the exit code */
    stop: () => kill('SIGTERM'),
    /** `await using` stops it, which must succeed, unless it has ended. */
    async [Symbol.asyncDispose](): Promise<void> {
      if (exitCode === undefined) assert.equal(await kill('SIGTERM'), 0, stderr.join(''));
    },
  };
}

/** A failed test may leave a program running, which would keep the test process alive. */
const running = new Set<ChildProcess>();

/** Runs a test in a temporary folder; then ends the programs that it started, and removes the folder. */
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
  const otherwise: LogLine = { level: 'not a log line', msg: text };
  return unlessError<LogLine, LogLine>(otherwise, () => JSON.parse(text));
}
