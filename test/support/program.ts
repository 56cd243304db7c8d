/** The program as an operator runs it, with arguments of one's own: what it prints and logs, and how it ends. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogLine } from './appliance.ts';
import { checkAnswersOf } from './checked-fetch.ts';
import { programCommand } from './command.ts';

/** Far longer than anything here takes: only a test that must fail waits so long. */
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 10;

export interface RunningProgram {
  /** So far, on stdout. */
  printed(): string;
  /** So far, on stderr: lines of the log, or what a command that is refused says. */
  told(): string;
  log(): LogLine[];
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
}

/** Starts `wirewatch` with these arguments, and without settings of the environment but those given. */
export function runProgram(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  { through = (program, own) => [program, own], stderr }: RunOptions = {},
): RunningProgram {
  const start = programCommand(args, settings);
  const [program, all] = through(start.command, start.args);
  const stdio: StdioOptions = ['ignore', 'pipe', stderr ?? 'pipe'];
  return followProgram(spawn(program, all, { ...start.options, stdio }), args);
}

function followProgram(child: ChildProcess, args: readonly string[]): RunningProgram {
  const printed = collect(child, 'stdout');
  const told = collect(child, 'stderr');
  let hasEnded = false;
  running.add(child);
  const ended = once(child, 'close').then(([code]) => {
    hasEnded = true;
    running.delete(child);
    return typeof code === 'number' ? code : null;
  });
  const run: RunningProgram = {
    printed,
    told,
    log: () => told().split('\n').slice(0, -1).map(parseLine),
    async until(what, look) {
      const untilMs = performance.now() + PATIENCE_MS;
      for (;;) {
        const wasOver = hasEnded;
        const found = look();
        if (found !== undefined) return found;
        if (wasOver || performance.now() > untilMs) {
          const told = `It printed:\n${printed()}\nand told:\n${run.told()}`;
          throw new Error(`wirewatch ${args.join(' ')}: waited for ${what} in vain. ${told}`);
        }
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    },
    async url() {
      const line = await run.until('its address', () => run.log().find(({ msg }) => msg === 'listening'));
      checkAnswersOf(String(line.url));
      return String(line.url);
    },
    kill: (signal) => child.kill(signal),
    ended,
  };
  return run;
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

function collect(child: ChildProcess, stream: 'stdout' | 'stderr'): () => string {
  const chunks: string[] = [];
  child[stream]?.setEncoding('utf8').on('data', (text: string) => chunks.push(text));
  return () => chunks.join('');
}

function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text);
  } catch {
    return { level: 'not a log line', msg: text };
  }
}
