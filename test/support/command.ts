/**
 * How tests start the program: `dist/main.cjs`, or the executable that WIREWATCH_PROGRAM names. Its environment has
 * only the test's settings and PATH, so that variables of the machine (for terminal colours, say) have no effect. An
 * executable does not even get PATH, and runs in an empty folder: it must need neither.
 */
import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { testFolder } from './test-folder.ts';
import { canBeWarm, runWarm } from './warm-commands.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'dist', 'main.cjs');

/** Much longer than any command takes: only a failing test waits this long. */
const TIMEOUT_MS = 120_000;

/** Makes the program check and retry faster (src/pace.ts). */
const HASTE = '20';

/** The reason to skip a test that preloads code with NODE_OPTIONS; false if the program is a bundle. */
export const NO_PRELOAD =
  process.env.WIREWATCH_PROGRAM !== undefined && 'an executable loads no code from outside';

/** Shared by all runs of a test process, so that the addon is written only once, and not to the home folder. */
let folders: { cwd: string; addon: string } | undefined;

/** @param settings environment variables, besides PATH */
export function programCommand(args: readonly string[], settings: Readonly<Record<string, string>> = {}) {
  const executable = process.env.WIREWATCH_PROGRAM;
  if (executable) {
    folders ??= { cwd: testFolder(), addon: testFolder() };
    const { cwd, addon } = folders;
    const env = { WIREWATCH_HASTE: HASTE, WIREWATCH_ADDON_DIR: addon, ...settings };
    return { command: executable, args, options: { env, cwd } };
  }
  const env = { WIREWATCH_HASTE: HASTE, PATH: process.env.PATH, ...settings };
  return { command: process.execPath, args: [MAIN, ...args], options: { env } };
}

/** Puts `wirewatch` into a folder, for shells. @returns a PATH that begins with the folder */
export function onPath(bin: string): string {
  const { command, args } = programCommand([]);
  const own = [command, ...args].map((word) => `'${word}'`).join(' ');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'wirewatch'), `#!/bin/sh\nexec ${own} "$@"\n`, { mode: 0o755 });
  return `${bin}${delimiter}${process.env.PATH}`;
}

export type EndedCommand = Readonly<{ status: number | null; stdout: string; stderr: string }>;

/** A command must have failed with this exit code, and told why. */
export function assertFailed(ended: Pick<EndedCommand, 'status' | 'stderr'>, status: number, why: RegExp) {
  assert.equal(ended.status, status, ended.stderr);
  assert.match(ended.stderr, why);
}

/** Runs a command to its end, in the process that stays if it can (warm-commands.ts). @param cwd its working directory */
export function runToEnd(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  cwd?: string,
): EndedCommand {
  if (!canBeWarm(args, settings)) return runAlone(args, settings, cwd);
  const { options } = programCommand(args, settings);
  return runWarm({ args, script: MAIN, environment: options.env, cwd: cwd ?? null });
}

/** Starts the program for one command; other things happen meanwhile, such as responses of a server in the test itself. */
export async function runBeside(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<EndedCommand> {
  const { command, args: all, options } = programCommand(args, settings);
  const child = spawn(command, all, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { status, stdout, stderr };
}

/** As {@link runToEnd}, for a command that must succeed. */
export const succeed = (...command: Parameters<typeof runToEnd>): EndedCommand =>
  succeeded(command[0], runToEnd(...command));

/** As {@link runBeside}, for a command that must succeed. */
export const succeedBeside = async (...command: Parameters<typeof runBeside>): Promise<EndedCommand> =>
  succeeded(command[0], await runBeside(...command));

function succeeded(args: readonly string[], ended: EndedCommand): EndedCommand {
  assert.equal(ended.status, 0, `${args.join(' ')}: ${ended.stdout}${ended.stderr}`);
  return ended;
}

/** Starts the program for one command, and waits for its end. @param cwd its working directory */
export function runAlone(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  cwd?: string,
): SpawnSyncReturns<string> {
  const { command, args: all, options } = programCommand(args, settings);
  const place = cwd === undefined ? {} : { cwd };
  const ended = spawnSync(command, all, { ...options, ...place, encoding: 'utf8', timeout: TIMEOUT_MS });
  if (ended.error !== undefined) throw ended.error;
  return ended;
}
