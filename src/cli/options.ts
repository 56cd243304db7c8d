/**
 * The options that every command takes, those of several commands, how their values are read, and the data folder: the
 * flag, then the environment, then a folder in the working directory.
 *
 * The common options belong to the program itself, so commander accepts them before and after the command's name.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { isBaseUrl, matching, normalBaseUrl, type Reading, read, wrong } from '../config/option-values.ts';
import { misconfigured } from '../refused.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import type { InstallationKind } from '../store/installation.ts';

export type CommonOptions = { data: string | undefined; config: string | undefined; json: boolean };

/** Adds the common options to the program; its commands inherit them. */
export function addCommonOptions(program: Command): void {
  program
    .option(
      '--data <dir>',
      'data folder (default: $WIREWATCH_DATA, else ./wirewatch-data; for demo and lab, ./wirewatch-demo and ./wirewatch-lab; for setup, /var/lib/wirewatch)',
      nonEmptyPath,
    )
    .option(
      '--config <file>',
      'configuration file (default: $WIREWATCH_CONFIG, else wirewatch.toml in the data folder; for setup, /etc/wirewatch/wirewatch.toml)',
      nonEmptyPath,
    )
    .option('--json', 'print the result as JSON');
}

/** Wherever they are on the command line. */
export function commonOptions(command: Command): CommonOptions {
  const { data, config, json = false } = command.optsWithGlobals<Partial<CommonOptions>>();
  return { data, config, json };
}

/** For commands that read the drop folder: Wirewatch may have been started with that option. */
export const DROP_OPTION = new Option('--drop <dir>', 'drop folder, if Wirewatch was started with --drop');

export const LISTENING_OPTIONS = [
  new Option('--host <address>', 'address to listen on (default: 127.0.0.1)'),
  new Option('--port <number>', 'port to listen on; 0 picks a free one (default: 8080)'),
  new Option('--base-url <url>', 'public address that clients use (default: the listening address)'),
];

/** The options that are settings, for the commands that serve. */
export const SETTING_OPTIONS = [
  new Option('--drop <dir>', 'folder that receives the export files (default: drop in the data folder)'),
  ...LISTENING_OPTIONS,
];

/** Example command lines, shown below a command's help, without the program's name. */
export function addExamples(command: Command, lines: readonly string[]): void {
  const shown = lines.map((line) => `\n  wirewatch ${line}`).join('');
  command.addHelpText('after', `\nExamples:${shown}`);
}

function nonEmptyPath(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected a path, but the value is empty.');
  return text;
}

/** An absolute http(s) address to which a path can be appended, without a slash at its end. */
export function readUrl(text: string): Reading<string> {
  return isBaseUrl(text)
    ? read(normalBaseUrl(text))
    : wrong('an http or https address such as https://detections.example.org');
}

/** A path. An empty one, from an unset variable in a script, would silently mean this folder. */
export const readPath = matching(/./s, 'a path, but the value is empty');

/** In the folder of a lab or demonstration only. */
export const LAB_FILE = 'wirewatch-lab.json';
/** In the folder of a lab: its API key, for the exam. */
export const LAB_KEY_FILE = 'key.txt';

/**
 * The data folder of a command; the store checks whether it exists and who owns it.
 * @throws Refused `configuration` for an appliance in the folder of a lab or demonstration
 */
export function commandFolder(command: Command, kind: InstallationKind = 'appliance'): DataFolder {
  const folder = anyFolder(command, kind);
  if (kind === 'appliance' && existsSync(path.join(folder.root, LAB_FILE)))
    throw misconfigured(
      `${folder.root} belongs to "wirewatch lab" or "wirewatch demo", where this does not work: name another folder with --data. What does, while it runs, is status, audit, console, and account, subscription, key, window, ingest and alert.`,
    );
  return folder;
}

/** The same, whoever it belongs to. */
export function anyFolder(command: Command, kind: InstallationKind = 'appliance'): DataFolder {
  const usual = `wirewatch-${kind === 'appliance' ? 'data' : kind}`;
  // An empty variable counts as unset: otherwise it would mean the working directory.
  return dataFolder(path.resolve(commonOptions(command).data || process.env.WIREWATCH_DATA || usual));
}
