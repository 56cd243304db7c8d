/**
 * The options that every command takes, those of several commands, and how their values are read.
 *
 * The common options belong to the program itself, so commander accepts them before and after the command's name.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { isBaseUrl, normalBaseUrl, wholeNumber } from '../config/format.ts';
import { listItems, type Reading, readSwitch } from '../config/option-values.ts';
import { grouped } from '../counted.ts';
import { parseInstant, parseWindowStart, WINDOW_MS } from '../time.ts';

export type CommonOptions = {
  data: string | undefined;
  config: string | undefined;
  json: boolean;
};

/** Adds the common options to the program; its commands inherit them. */
export function addCommonOptions(program: Command): void {
  program
    .option('--data <dir>', 'data folder (default: $WIREWATCH_DATA, else ./wirewatch-data)', pathValue)
    .option(
      '--config <file>',
      'configuration file (default: $WIREWATCH_CONFIG, else wirewatch.toml in the data folder)',
      pathValue,
    )
    .option('--json', 'print the result as JSON');
}

export interface OwnHelp {
  /** The default of --data. */
  readonly data?: string;
  /** The default of --config. */
  readonly config?: string;
  /** What --json does; null if it does nothing, so that the help omits it. */
  readonly json?: string | null;
}

/** Changes what the help of a command says about the common options. */
export function stateOwn(command: Command, { json, ...defaults }: OwnHelp): void {
  const restated = (option: Option): Option => {
    const { flags, description } = option;
    if (option.attributeName() === 'json') return new Option(flags, json ?? description);
    const text = defaults[option.attributeName() as keyof typeof defaults];
    if (text === undefined) return option;
    return new Option(flags, description.replace(/\(default: .*\)$/, `(default: ${text})`));
  };
  command.configureHelp({
    // Of the program alone: a group that is a command itself has options that its subcommands do not take.
    visibleGlobalOptions: (of) =>
      programOf(of)
        .options.filter((option) => json !== null || option.attributeName() !== 'json')
        .map(restated),
  });
}

function programOf(command: Command): Command {
  return command.parent === null ? command : programOf(command.parent);
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
export function addExamples(command: Command, lines: readonly string[]): Command {
  const shown = lines.map((line) => `\n  wirewatch ${line}`).join('');
  return command.addHelpText('after', `\nExamples:${shown}`);
}

/** Option value: an instant with `Z` or an offset; epoch milliseconds. */
export function instantValue(value: string): number {
  const ms = parseInstant(value);
  if (ms === null)
    throw new InvalidArgumentError('Expected a time with Z or an offset, such as 2026-11-21T10:00:00Z.');
  return ms;
}

/** Argument or option value: the start of a window, as in file names or as a time; epoch milliseconds. */
export function windowStartValue(value: string): number {
  const ms = parseWindowStart(value) ?? parseInstant(value);
  if (ms === null || ms % WINDOW_MS !== 0) {
    throw new InvalidArgumentError(
      'Expected the start of a ten-minute window, such as 20261121T1010Z or 2026-11-21T10:10:00Z.',
    );
  }
  return ms;
}

/** Option value: a whole number from `min` to `max`, in plain digits. */
export function integerValue(min: number, max: number = Number.MAX_SAFE_INTEGER): (value: string) => number {
  return (value) => {
    const number = wholeNumber(value, min, max);
    if (number === null) {
      const range =
        max === Number.MAX_SAFE_INTEGER
          ? `of at least ${grouped(min)}`
          : `from ${grouped(min)} to ${grouped(max)}`;
      throw new InvalidArgumentError(`Expected a whole number ${range}.`);
    }
    return number;
  };
}

/** Option value: `on` or `off`. */
export function switchValue(value: string): boolean {
  return optionValue(readSwitch(value));
}

/** The value of an option that follows the rules of a setting. */
export function optionValue<Value>(reading: Reading<Value>): Value {
  if (reading.kind === 'read') return reading.value;
  throw new InvalidArgumentError(`Expected ${reading.expected}.`);
}

/** Option value: a comma-separated list without empty items; duplicates collapse. */
export function listValue(value: string): string[] {
  const items = listItems(value);
  if (items === null) throw new InvalidArgumentError('Expected a comma-separated list without empty items.');
  return items;
}

/** Option value: an absolute http(s) address to which a path can be appended, without a slash at its end. */
export function urlValue(value: string): string {
  if (isBaseUrl(value)) return normalBaseUrl(value);
  throw new InvalidArgumentError('Expected an http or https address such as https://detections.example.org.');
}

/** Option value: a path. An empty one, from an unset variable in a script, would silently mean this folder. */
export function pathValue(value: string): string {
  if (value === '') throw new InvalidArgumentError('Expected a path, but the value is empty.');
  return value;
}
