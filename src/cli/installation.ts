/** The installation that a command works on: its configuration and data folder. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { type Config, loadConfig } from '../config/load.ts';
import type { SettingFlags } from '../config/schema.ts';
import { pasted } from '../setup/shell.ts';
import { type DataFolder, dataFolder, noInstallation, refuseFile } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';
import { refuseUnreadable } from '../store/owner.ts';
import { commonOptions, resolveDataFolder } from './options.ts';

export function configOf(command: Command, kind: InstallationKind = 'appliance'): Config {
  const common = commonOptions(command);
  const folder = resolveDataFolder(common, { kind });
  const isElsewhere = Boolean(common.config || process.env.WIREWATCH_CONFIG);
  if (!isElsewhere) refuseUnreadable({ root: folder });
  return loadConfig({
    // They are as typed; the settings' schema checks them.
    flags: command.opts<SettingFlags>(),
    env: process.env,
    file: common.config,
    dataFolder: folder,
  });
}

export function folderOf(config: Pick<Config, 'dataFolder'>): DataFolder {
  return dataFolder(config.dataFolder);
}

/** The data folder of a command that needs no configuration. */
export function commandFolder(command: Command): DataFolder {
  return dataFolder(resolveDataFolder(commonOptions(command)));
}

/** The options with which a command finds the same installation, quoted: empty, or with a leading space. */
export function installationOptions(command: Command, config: Config): string {
  const common = commonOptions(command);
  const isDefault = resolveDataFolder({ data: undefined }) === config.dataFolder;
  return [
    isDefault ? '' : ` --data ${pasted(config.dataFolder)}`,
    common.config === undefined || config.configFile === null ? '' : ` --config ${pasted(config.configFile)}`,
  ].join('');
}

/** @throws Refused `configuration` if the data folder contains no installation */
export function requireInstallation(config: Pick<Config, 'dataFolder'>): void {
  const { root, access, spare } = folderOf(config);
  if (existsSync(access) || existsSync(spare)) return;
  refuseFile(root);
  throw noInstallation(root);
}
