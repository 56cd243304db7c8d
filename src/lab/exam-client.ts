/** The client that takes the exam: a command that is started, killed and started again, and one that prints its copy. */
import { type ChildProcess, exec, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { Refused, reasonOf } from '../refused.ts';
import type { Versions } from './exam-grades.ts';

const OUTPUT_BYTES_MAX = 1024 * 1024 * 1024;

export interface ClientProcess {
  readonly isRunning: boolean;
  start(): void;
  /** Exit code of a client that ended by itself since it was last asked for, null for a signal; undefined: it did not. */
  takeEnd(): number | null | undefined;
  /** Ends it at once, with all that it started; settles when it is gone. */
  kill(): Promise<void>;
}

/** @param command a line for the shell */
export function clientProcess(command: string, env: NodeJS.ProcessEnv): ClientProcess {
  let child: ChildProcess | null = null;
  let ended: number | null | undefined;
  let gone: Promise<void> = Promise.resolve();
  return {
    get isRunning() {
      return child !== null;
    },
    start() {
      // A group of its own, so that what the shell starts ends with it. What it prints belongs to the user.
      const started = spawn(command, {
        env,
        shell: true,
        detached: process.platform !== 'win32',
        stdio: ['ignore', 2, 2],
      });
      child = started;
      gone = new Promise((resolve) => {
        const end = (code: number | null) => {
          if (child === started) {
            child = null;
            ended = code;
          }
          resolve();
        };
        started.once('error', () => end(null));
        started.once('exit', end);
      });
    },
    takeEnd() {
      const code = ended;
      ended = undefined;
      return code;
    },
    async kill() {
      const running = child;
      child = null;
      if (running?.pid === undefined) return;
      try {
        if (process.platform === 'win32') running.kill('SIGKILL');
        else process.kill(-running.pid, 'SIGKILL');
      } catch {
        // It ended in between.
      }
      await gone;
    },
  };
}

/**
 * Runs the command that prints the copy: a line of JSON a detection, with id and version. Of several lines of one
 * detection the highest version counts.
 *
 * @throws Refused `failed` if it fails or prints anything else
 */
export async function readCopy(command: string, env: NodeJS.ProcessEnv): Promise<Versions> {
  const { stdout } = await promisify(exec)(command, { env, maxBuffer: OUTPUT_BYTES_MAX }).catch(
    (error: unknown) => {
      throw new Refused('failed', `--copy: the command failed: ${reasonOf(error)}`);
    },
  );
  const versions = new Map<string, number>();
  for (const [index, line] of stdout.split('\n').entries()) {
    if (line.trim() === '') continue;
    const { id, version } = parsed(line);
    if (typeof id !== 'string' || !Number.isSafeInteger(version))
      throw new Refused(
        'failed',
        `--copy: line ${index + 1}: expected one detection a line, such as {"id": "t.7001.1.2", "version": 3}`,
      );
    versions.set(id, Math.max(Number(version), versions.get(id) ?? 0));
  }
  return versions;
}

function parsed(line: string): { id?: unknown; version?: unknown } {
  try {
    return Object(JSON.parse(line));
  } catch {
    return {};
  }
}
