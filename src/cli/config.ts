/** The configuration and the folders of a command. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { type Config, loadConfig } from '../config/load.ts';
import { type Database, openReader } from '../store/database.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import { resolveDataFolder } from './data-folder.ts';
import { commonOptions, settingFlags } from './options.ts';

export function configOf(command: Command): Config {
  const common = commonOptions(command);
  return loadConfig({
    flags: settingFlags(command),
    env: process.env,
    file: common.config,
    dataFolder: resolveDataFolder(common),
  });
}

export function folderOf(config: Config): DataFolder {
  return dataFolder(config.dataFolder);
}

/** Runs `work` on the detections as they are; `none` where nothing was ever ingested. */
export function withDetections<Result>(config: Config, none: Result, work: (db: Database) => Result): Result {
  const { detections } = folderOf(config);
  if (!existsSync(detections)) return none;
  const db = openReader(detections);
  try {
    return work(db);
  } finally {
    db.close();
  }
}
