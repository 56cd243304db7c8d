/**
 * How tests start the program: `dist/main.cjs`, as `node build/bundle.mjs` writes it, or with WIREWATCH_PROGRAM that
 * executable. It gets settings and, of this process's environment, PATH alone, so that nothing set on a machine decides
 * what it does (the colours of a terminal, say); an executable not even that, and an empty folder to run in, since it
 * has to do without both.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '..', '..', 'dist', 'main.cjs');

/** Makes the program check and retry faster (src/pace.ts). */
const HASTE = '20';

export interface ProgramCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly options: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string };
}

/** Why a test that preloads code with NODE_OPTIONS is skipped. */
export const NO_PRELOAD =
  process.env.WIREWATCH_PROGRAM !== undefined && 'an executable loads nothing that it is not made of';

/** @param settings its environment, besides PATH */
export function programCommand(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): ProgramCommand {
  const executable = process.env.WIREWATCH_PROGRAM;
  if (executable) {
    const { cwd, addon } = executableFolders();
    return {
      command: executable,
      args,
      options: { env: { WIREWATCH_HASTE: HASTE, WIREWATCH_ADDON_DIR: addon, ...settings }, cwd },
    };
  }
  return {
    command: process.execPath,
    args: [MAIN, ...args],
    options: { env: { WIREWATCH_HASTE: HASTE, PATH: process.env.PATH, ...settings } },
  };
}

/** Runs the program to its end. @param cwd its working directory */
export function runToEnd(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  cwd?: string,
): SpawnSyncReturns<string> {
  const { command, args: all, options } = programCommand(args, settings);
  const place = cwd === undefined ? {} : { cwd };
  return spawnSync(command, all, { ...options, ...place, encoding: 'utf8' });
}

let folders: { cwd: string; addon: string } | undefined;

/** Shared by all starts of a test process, so that the addon is written once, and not to the home. */
function executableFolders(): { cwd: string; addon: string } {
  if (folders === undefined) {
    const cwd = mkdtempSync(join(tmpdir(), 'wirewatch-empty-'));
    const addon = mkdtempSync(join(tmpdir(), 'wirewatch-addon-'));
    folders = { cwd, addon };
    process.once('exit', () => {
      for (const folder of [cwd, addon]) rmSync(folder, { recursive: true, force: true });
    });
  }
  return folders;
}
