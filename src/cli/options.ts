/**
 * Options that every command takes, and the readers of option values that several commands share.
 *
 * The common options belong to the program itself, so commander takes them before and after the command's
 * name; a command asks for them with {@link commonOptions}.
 */
import { type Command, Help, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../config/format.ts';
import type { SettingFlags } from '../config/load.ts';
import { listItems, type Reading, readSwitch } from '../config/terms.ts';
import { parseInstant } from '../time.ts';

export type CommonOptions = {
  data: string | undefined;
  config: string | undefined;
  json: boolean;
};

/** Adds the common options to the program; its commands inherit them. */
export function addCommonOptions(program: Command): void {
  program
    .option('--data <dir>', 'data folder (default: WIREWATCH_DATA, else ./wirewatch-data)', namedPath)
    .option(
      '--config <file>',
      'configuration file (default: WIREWATCH_CONFIG, else wirewatch.toml in the data folder)',
      namedPath,
    )
    .option('--json', 'print one JSON document');
}

/** Has the help of a command state its own defaults of common options. */
export function stateDefaults(command: Command, own: Partial<Record<'data' | 'config', string>>): void {
  const restated = (option: Option): Option => {
    const text = own[option.attributeName() as keyof typeof own];
    if (text === undefined) return option;
    return new Option(option.flags, option.description.replace(/\(default: .*\)$/, `(default: ${text})`));
  };
  command.configureHelp({
    visibleGlobalOptions: (of) => SHOWN.visibleGlobalOptions(of).map(restated),
  });
}

const SHOWN = Object.assign(new Help(), { showGlobalOptions: true });

/** The common options of the command that runs, wherever on the line they stood. */
export function commonOptions(command: Command): CommonOptions {
  const options = command.optsWithGlobals();
  return { data: text(options.data), config: text(options.config), json: options.json === true };
}

/** Adds the option for commands that look into the drop folder: the appliance may have been started with it. */
export function addDropOption(command: Command): Command {
  return command.option('--drop <dir>', 'the drop folder, where the appliance was started with --drop');
}

/** Adds the options that are settings, for the commands that serve. */
export function addSettingFlags(command: Command): Command {
  return command
    .option('--drop <dir>', 'folder into which exports are dropped (default: drop in the data folder)')
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option('--port <number>', 'port to listen on, 0 for any free one (default: 8080)')
    .option('--base-url <url>', 'address at which clients reach it (default: the listening address)');
}

/** The options that are settings, as typed; the settings' own schema judges them. */
export function settingFlags(command: Command): SettingFlags {
  const options = command.opts();
  return {
    drop: text(options.drop),
    host: text(options.host),
    port: text(options.port),
    baseUrl: text(options.baseUrl),
  };
}

/** Lines to paste, shown below a command's help; each starts behind the program's name. */
export function addExamples(command: Command, lines: readonly string[]): Command {
  const shown = lines.map((line) => `\n  wirewatch ${line}`).join('');
  return command.addHelpText('after', `\nExamples:${shown}`);
}

/** Option value: an instant with `Z` or an offset; epoch milliseconds. */
export function instantValue(value: string): number {
  const ms = parseInstant(value);
  if (ms === null) throw new InvalidArgumentError('Expected an instant such as 2026-11-21T10:00:00Z.');
  return ms;
}

/** Option value: a whole number from `min` to `max`, in plain digits. */
export function integerValue(min: number, max: number = Number.MAX_SAFE_INTEGER): (value: string) => number {
  return (value) => {
    const number = wholeNumber(value, min, max);
    if (number === null) {
      const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
      throw new InvalidArgumentError(`Expected a whole number ${range}.`);
    }
    return number;
  };
}

/** Option value: `on` or `off`. */
export function switchValue(value: string): boolean {
  return optionValue(readSwitch(value));
}

/** The value of an option that is judged by a rule of the configuration's. */
export function optionValue<Value>(reading: Reading<Value>): Value {
  if (reading.kind === 'read') return reading.value;
  throw new InvalidArgumentError(`Expected ${reading.expected}.`);
}

/** Option value: names with commas between them, none empty; doubles collapse. */
export function listValue(value: string): string[] {
  const items = listItems(value);
  if (items === null) throw new InvalidArgumentError('Expected names with commas between them, none empty.');
  return items;
}

/** Option value: a path. An empty one, from an unset variable in a script, would silently mean this folder. */
function namedPath(value: string): string {
  if (value === '') throw new InvalidArgumentError('Expected a path, found nothing.');
  return value;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
