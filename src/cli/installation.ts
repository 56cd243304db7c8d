/** The installation that a command works on: its configuration and data folder. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { type Config, loadConfig } from '../config/load.ts';
import type { SettingFlags } from '../config/schema.ts';
import { pasted } from '../setup/shell.ts';
import { type DataFolder, noInstallation, refuseFile } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';
import { refuseUnreadable } from '../store/owner.ts';
import { commandFolder, commonOptions } from './options.ts';

export function configOf(command: Command, kind: InstallationKind = 'appliance'): Config {
  const { config: file } = commonOptions(command);
  const folder = commandFolder(command, kind);
  if (!file && !process.env.WIREWATCH_CONFIG) refuseUnreadable(folder);
  // The flags are as typed; the settings' schema checks them.
  const flags = command.opts<SettingFlags>();
  return loadConfig({ flags, env: process.env, file, dataFolder: folder.root });
}

/** The options with which a command finds the same installation, quoted: empty, or with a leading space. */
export function installationOptions(command: Command, { dataFolder, configFile }: Config): string {
  const { data, config } = commonOptions(command);
  return [
    data === undefined ? '' : ` --data ${pasted(dataFolder)}`,
    config === undefined || configFile === null ? '' : ` --config ${pasted(configFile)}`,
  ].join('');
}

/** @throws Refused `configuration` if the data folder contains no installation */
export function requireInstallation({ root, access, spare }: DataFolder): void {
  if (existsSync(access) || existsSync(spare)) return;
  refuseFile(root);
  throw noInstallation(root);
}
