/** Runs other processes without the program's settings, and short scripts as modules. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const root = path.join(import.meta.dirname, '..', '..');

/** The environment of this process without settings of the program. */
export function cleanEnv(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('WIREWATCH_'));
  return { ...Object.fromEntries(own), ...env };
}

/** The quoted URL of a source file, to import it in a script. */
export const source = (file: string): string =>
  JSON.stringify(pathToFileURL(path.join(root, 'src', file)).href);

export function runScript(code: string, env: Readonly<Record<string, string>> = {}) {
  const args = ['--input-type=module', '--eval', code];
  return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', env: cleanEnv(env) });
}
