/** The program as an operator runs it, with arguments of one's own: what it prints and logs, and how it ends. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { checkAnswersOf } from './checked-fetch.ts';
import { programCommand } from './command.ts';

/** Far longer than anything here takes: only a test that must fail waits so long. */
const PATIENCE_MS = 120_000;
const CHECK_EVERY_MS = 10;

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface RunningProgram {
  /** So far, on stdout. */
  printed(): string;
  /** So far, on stderr: lines of the log, or what a command that is refused says. */
  told(): string;
  /** Grows while the program runs. */
  log(): readonly LogLine[];
  /** Takes the lines out of the log, and out of what was told: a run of hours would hold millions. */
  takeLog(): LogLine[];
  /** Settles when it holds; rejects when the program ends before. */
  until<Value>(what: string, look: () => Value | undefined): Promise<Value>;
  /** Where it listens, once it does. */
  url(): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** The exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>;
}

export interface RunOptions {
  /** Makes the command line into another one that runs it. */
  readonly through?: (program: string, args: readonly string[]) => [string, readonly string[]];
  /** File descriptor in place of a pipe. */
  readonly stderr?: number;
  /** Whoever started it ends it, also if that was within {@link inFolder}. */
  readonly isKept?: boolean;
}

/** Starts `wirewatch` with these arguments, and without settings of the environment but those given. */
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

/** What is waited for may also be a file, so that silence is no reason not to check. */
async function somethingNew({ stdout, stderr }: ChildProcess): Promise<void> {
  const over = new AbortController();
  const output = [stdout, stderr].flatMap((stream) =>
    stream === null ? [] : [once(stream, 'data', { signal: over.signal })],
  );
  await Promise.race([wait(CHECK_EVERY_MS, null, { signal: over.signal }), ...output]).finally(() =>
    over.abort(),
  );
}

/** What runs; a test that failed may leave one, which would keep the process of the test, too. */
const running = new Set<ChildProcess>();

/** Use of a folder that is gone afterwards, with everything that was left in it and every program begun meanwhile. */
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
