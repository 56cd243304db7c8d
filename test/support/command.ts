/**
 * How tests start the program: `dist/main.cjs`, as `node build/bundle.mjs` writes it, or with WIREWATCH_PROGRAM that
 * executable. It gets settings and nothing else of ours; an executable also nothing of this process's environment and
 * an empty folder to run in, since it has to do without both.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '..', '..', 'dist', 'main.cjs');

export interface ProgramCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly options: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string };
}

/** @param settings all of the environment whose names start with WIREWATCH_ */
export function programCommand(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): ProgramCommand {
  const executable = process.env.WIREWATCH_PROGRAM;
  if (executable) {
    const { cwd, addon } = executableFolders();
    return { command: executable, args, options: { env: { WIREWATCH_ADDON_DIR: addon, ...settings }, cwd } };
  }
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('WIREWATCH_'));
  const env = { ...Object.fromEntries(inherited), ...settings };
  return { command: process.execPath, args: [MAIN, ...args], options: { env } };
}

let folders: { cwd: string; addon: string } | undefined;

/** For all starts of one test process: the home is not to be filled, nor the addon to be written for each. */
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
