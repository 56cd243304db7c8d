/**
 * How tests start the program: `dist/main.cjs`, or the executable that WIREWATCH_PROGRAM names. Its environment has
 * only the test's settings and PATH, so that variables of the machine (for terminal colours, say) have no effect. An
 * executable does not even get PATH, and runs in an empty folder: it must need neither.
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

/** The reason to skip a test that preloads code with NODE_OPTIONS; false if the program is a bundle. */
export const NO_PRELOAD =
  process.env.WIREWATCH_PROGRAM !== undefined && 'an executable loads no code from outside';

/** @param settings environment variables, besides PATH */
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

/** Runs the program until it exits. @param cwd its working directory */
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

/** Shared by all runs of a test process, so that the addon is written only once, and not to the home folder. */
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
