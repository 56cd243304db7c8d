/** How a command is described, and the one runner: it prints the result as text or, with --json, as one document. */
import { Argument, type Command, Option } from 'commander';
import { addExamples, commonOptions, type OwnHelp, stateOwn } from './options.ts';
import { type Colour, type Column, details, print, table } from './output.ts';

/**
 * Adds the command's arguments, options, subcommands and action.
 *
 * @param wholeProgram the command line with every command registered, for completion
 */
export type Register = (command: Command, wholeProgram: () => Promise<Command>) => void;

/** What a command prints, and whether it ends with exit code 1. */
export interface Result {
  /** Printed with --json. */
  readonly value: unknown;
  readonly text: string | (() => string);
  /** By word: a line of the text that begins with the word shows it in this colour on a terminal. */
  readonly colours?: Readonly<Record<string, Colour>>;
  readonly failed?: boolean;
}

export interface CommandSpec<Values> {
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  /** Shown below the options. */
  readonly help?: string;
  /** What its help says about common options. */
  readonly ownHelp?: OwnHelp;
  /** Without the program's name. */
  readonly examples: readonly string[];
  /**
   * @param values of arguments and options, by name; null for an option given as `none`
   * @returns null if there is nothing to print
   */
  readonly run: (values: Values, command: Command) => Result | null | Promise<Result | null>;
}

/** The value of an option given as `none`. The runner turns it into null, which commander would replace by `''`. */
export const NONE = Symbol('none');

export function defineCommand<Values extends object>(spec: CommandSpec<Values>): Register {
  return (command) => {
    for (const argument of spec.arguments ?? []) command.addArgument(argument);
    for (const option of spec.options ?? []) command.addOption(option);
    if (spec.help !== undefined) command.addHelpText('after', spec.help);
    if (spec.ownHelp !== undefined) stateOwn(command, spec.ownHelp);
    addExamples(command, spec.examples);
    command.action(async () => {
      const result = await spec.run(valuesOf<Values>(command), command);
      if (result === null) return;
      print(result.value, { ...result, json: commonOptions(command).json });
      if (result.failed === true) process.exitCode = 1;
    });
  };
}

export function subcommand<Values extends object>(
  name: string,
  description: string,
  spec: CommandSpec<Values>,
): Register {
  return (parent, wholeProgram) =>
    defineCommand(spec)(parent.command(name).description(description), wholeProgram);
}

export function commandGroup(...subcommands: readonly Register[]): Register {
  return (command, wholeProgram) => {
    for (const register of subcommands) register(command, wholeProgram);
  };
}

type ReadValue<Value> = (text: string, previous: Value) => Value;

/** @param read the value from its text; without it, the text */
export function argument<Value>(name: string, description: string, read?: ReadValue<Value>): Argument {
  const made = new Argument(name, description);
  return read === undefined ? made : made.argParser(read);
}

/** @param read as for {@link argument} */
export function option<Value>(flags: string, description: string, read?: ReadValue<Value>): Option {
  const made = new Option(flags, description);
  return read === undefined ? made : made.argParser(read);
}

export function requiredOption<Value>(flags: string, description: string, read?: ReadValue<Value>): Option {
  return option(flags, description, read).makeOptionMandatory();
}

/** The type is what the command says of its own arguments and options: commander knows them at run time only. */
function valuesOf<Values>(command: Command): Values {
  const operands = command.registeredArguments.map((one, at) => [one.name(), command.processedArgs[at]]);
  const values = Object.entries({ ...Object.fromEntries(operands), ...command.opts() })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, value === NONE ? null : value]);
  return Object.fromEntries(values) as Values;
}

/** @param none what is printed if there are no entries */
export function listResult<Entry>(
  entries: readonly Entry[],
  columns: readonly Column<Entry>[],
  none: string,
): Result {
  return { value: entries, text: () => (entries.length === 0 ? none : table(entries, columns)) };
}

/** One entry, its columns below one another, between what was done and what comes next. */
export function entryResult<Entry>(
  entry: Entry,
  columns: readonly Column<Entry>[],
  done: string | null = null,
  ...next: readonly string[]
): Result {
  const fields = () => details(columns.map(({ title, value }) => [title.toLowerCase(), value(entry)]));
  return {
    value: entry,
    text: () => [...(done === null ? [] : [done]), fields(), ...next].join('\n\n'),
  };
}
