/**
 * One scheduled backup: the two commands that an operator gives, as processes of their own at the lowest priority. So
 * a stop need not wait for them, and what they need of memory goes with them.
 */
import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { constants, devNull, setPriority } from 'node:os';
import { ownCommand } from '../packed.ts';

export type Made =
  | {
      readonly kind: 'written';
      readonly bytes: number;
      readonly detections: number;
      /** What was found when it was opened again, in words; empty when all is well. */
      readonly findings: readonly string[];
    }
  /** Nothing was written, or it could not be opened. */
  | { readonly kind: 'failed'; readonly detail: string };

export interface Making {
  readonly made: Promise<Made>;
  /** Settles when its process is gone; what it left has to be removed. */
  giveUp(): Promise<void>;
}

export interface Folders {
  readonly data: string;
  readonly drop: string;
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What `wirewatch backup --json` prints, as far as it is told. */
interface Written {
  readonly bytes: number;
  readonly detections: number;
}

/** What `wirewatch verify --json` prints, as far as it is told. */
interface Verified {
  readonly findings: readonly { readonly check: string; readonly detail: string }[];
}

/** Of the program's own variables, those that are no settings. */
const NO_SETTINGS = ['WIREWATCH_ADDON_DIR', 'WIREWATCH_DEBUG'];
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** The exit code of `verify` when it found something. */
const FOUND = 1;

/**
 * Writes it, then opens it again and looks through what comes out. What the appliance was started with holds for it, and
 * no configuration that somebody may be changing meanwhile: neither the file nor half of it, in variables.
 */
export function makeAndOpen({ data, drop }: Folders, target: string): Making {
  const [program, ...before] = ownCommand();
  let child: ChildProcess | null = null;
  let isGivenUp = false;
  const run = (args: readonly string[]) =>
    new Promise<Ended>((resolve) => {
      child = execFile(
        program,
        [...before, ...args],
        { maxBuffer: OUTPUT_BYTES_MAX, env: withoutSettings(process.env) },
        (error, stdout, stderr) => {
          const code = typeof error?.code === 'number' ? error.code : -1;
          resolve({
            code: error === null ? 0 : code,
            stdout,
            stderr: stderr.trim() || (error?.message ?? ''),
          });
        },
      );
      giveWay(child);
    });
  const make = async (): Promise<Made> => {
    const given = ['--data', data, '--drop', drop, '--config', devNull];
    const backup = await run(['backup', target, ...given, '--json']);
    if (isGivenUp) return { kind: 'failed', detail: 'it was given up' };
    if (backup.code !== 0) return { kind: 'failed', detail: reasonIn(backup) };
    const { bytes, detections }: Written = JSON.parse(backup.stdout);
    const verify = await run(['verify', target, '--json']);
    if (verify.code !== 0 && (verify.code !== FOUND || verify.stdout === ''))
      return { kind: 'failed', detail: `${target} was written, but cannot be opened: ${reasonIn(verify)}` };
    const { findings }: Verified = JSON.parse(verify.stdout);
    return {
      kind: 'written',
      bytes,
      detections,
      findings: findings.map(({ check, detail }) => `${check}: ${detail}`),
    };
  };
  return {
    made: make().catch((error) => ({ kind: 'failed', detail: String(error) })),
    async giveUp() {
      isGivenUp = true;
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      if (child.kill('SIGKILL')) await gone;
    },
  };
}

function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const entries = Object.entries(environment);
  return Object.fromEntries(
    entries.filter(([name]) => !name.startsWith('WIREWATCH_') || NO_SETTINGS.includes(name)),
  );
}

/** What the command said, without its name before it. */
function reasonIn({ code, stderr }: Ended): string {
  const said = stderr.replace(/^wirewatch: /, '');
  return said === '' ? `it ended with exit code ${code}` : said;
}

function giveWay({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // Then it runs as it is.
  }
}
