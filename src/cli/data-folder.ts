/**
 * Which data folder a command works on: the flag, then the environment, then a folder where it is run.
 */
import path from 'node:path';
import type { CommonOptions } from './options.ts';

const APPLIANCE_FOLDER = 'wirewatch-data';
const DEMO_FOLDER = 'wirewatch-demo';

/** @returns the absolute path; the store checks whether it exists and who owns it */
export function resolveDataFolder(
  options: Pick<CommonOptions, 'data'>,
  { demo = false, env = process.env }: { demo?: boolean; env?: Record<string, string | undefined> } = {},
): string {
  // An empty variable counts as none: it would otherwise mean the folder in which the command is run.
  return path.resolve(options.data || env.WIREWATCH_DATA || (demo ? DEMO_FOLDER : APPLIANCE_FOLDER));
}
