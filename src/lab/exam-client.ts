/** The two commands of a client in the exam: one that runs it, and one that prints its copy. */
import { type ChildProcess, exec, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { Refused, reasonOf } from '../refused.ts';
import type { Versions } from './exam-grades.ts';

const OUTPUT_BYTES_MAX = 1024 * 1024 * 1024;

export interface ClientProcess {
  readonly isRunning: boolean;
  start(): void;
  /** Exit code if it ended by itself since the last call, null for a signal; undefined: it did not end. */
  takeEnd(): number | null | undefined;
  /** Kills it with all its processes; resolves when it is gone. */
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
      // A process group of its own, so that kill ends what the shell started. Its output is for the user.
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
        // It has just ended.
      }
      await gone;
    },
  };
}

/**
 * Runs the command that prints the copy: a line of JSON for each detection, with id and version. If a detection has
 * several lines, the highest version counts.
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
