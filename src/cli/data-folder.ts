/** The data folder of a command: the flag, then the environment, then a folder in the working directory. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { misconfigured } from '../refused.ts';
import type { InstallationKind } from '../store/installation.ts';
import type { CommonOptions } from './options.ts';

const FOLDERS: Readonly<Record<InstallationKind, string>> = {
  appliance: 'wirewatch-data',
  demo: 'wirewatch-demo',
  lab: 'wirewatch-lab',
};
/** In the folder of a lab or demonstration only. */
export const LAB_FILE = 'wirewatch-lab.json';
/** In the folder of a lab: its API key, for the exam. */
export const LAB_KEY_FILE = 'key.txt';

/**
 * @returns the absolute path; the store checks whether it exists and who owns it
 * @throws Refused `configuration` for an appliance in the folder of a lab or demonstration
 */
export function resolveDataFolder(
  options: Pick<CommonOptions, 'data'>,
  { kind = 'appliance', env = process.env }: { kind?: InstallationKind; env?: NodeJS.ProcessEnv } = {},
): string {
  const root = dataFolderPath(options, kind, env);
  if (kind === 'appliance' && existsSync(path.join(root, LAB_FILE)))
    throw misconfigured(
      `${root} belongs to "wirewatch lab" or "wirewatch demo": only a running one does operations on it. Start it, or name another folder with --data.`,
    );
  return root;
}

/** The absolute path, whoever it belongs to. */
export function dataFolderPath(
  { data }: Pick<CommonOptions, 'data'>,
  kind: InstallationKind,
  env = process.env,
): string {
  // An empty variable counts as unset: otherwise it would mean the working directory.
  return path.resolve(data || env.WIREWATCH_DATA || FOLDERS[kind]);
}
