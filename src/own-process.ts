/**
 * Work that takes long, a backup or a verification: the commands that an operator would run, as separate processes, which
 * lower their own priority. So a disk that does not respond delays nothing else, and a stop need not wait for it.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { devNull } from 'node:os';
import { ownCommand } from './packed.ts';
import { failed } from './refused.ts';

/** What a command prints with --json. */
export type Printed = Readonly<Record<string, unknown>>;

export type OwnProcess = Readonly<ReturnType<typeof runCommand>>;

/** The program's own variables that are not settings. */
const NO_SETTINGS = ['WIREWATCH_ADDON_DIR', 'WIREWATCH_DEBUG', 'WIREWATCH_HASTE'];
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** The exit code of `verify` if it has findings. */
const FOUND = 1;

/**
 * It runs with the settings that the appliance was started with, and ignores the configuration file and the variables,
 * which may have changed since.
 * @param args a command that prints a document with --json
 * @param settings that no argument gives, as variables
 */
export function runCommand(args: readonly string[], settings: Readonly<Record<string, string>> = {}) {
  const [program, ...before] = ownCommand();
  const isKept = (name: string) => !name.startsWith('WIREWATCH_') || NO_SETTINGS.includes(name);
  const inherited = Object.entries(process.env).filter(([name]) => isKept(name));
  const printed = Promise.withResolvers<Printed>();
  const child = execFile(
    program,
    [...before, ...args, '--config', devNull, '--json'],
    { maxBuffer: OUTPUT_BYTES_MAX, env: { ...Object.fromEntries(inherited), ...settings } },
    (error, stdout, stderr) => {
      if (stdout !== '' && (error === null || error.code === FOUND)) printed.resolve(JSON.parse(stdout));
      else printed.reject(failed(stderr.trim().replace(/^wirewatch: /, '') || String(error?.message)));
    },
  );
  return {
    /** Rejects with a Refused `failed` that has the command's reason. */
    printed: printed.promise,
    /** Kills the process, and settles when it is gone. */
    async giveUp(): Promise<void> {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      if (child.kill('SIGKILL')) await gone;
    },
  };
}
