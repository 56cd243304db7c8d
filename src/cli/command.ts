/** How a command is described, and the one runner: it prints the result as text or, with --json, as one document. */
import { Argument, type Command, Option } from 'commander';
import type { Reading } from '../config/option-values.ts';
import { type Column, details, joined, table } from '../text-layout.ts';
import { addExamples, commonOptions, type OwnHelp, parsed, stateOwn } from './options.ts';
import { type Colour, print } from './output.ts';

/** Adds the command's arguments, options, subcommands and action. */
export type Register = (command: Command) => void;

/** What a command prints, and whether it ends with exit code 1. */
export interface Result {
  /** Printed with --json. */
  readonly value: unknown;
  readonly text: string | (() => string);
  /** By word: a line of the text that begins with the word shows it in this colour on a terminal. */
  readonly colours?: Readonly<Record<string, Colour>>;
  readonly failed?: boolean;
}

declare const VALUES: unique symbol;

/** An argument or option with the member that it adds to the values: commander knows it at run time only. */
type Typed<Part, Member> = Part & { readonly [VALUES]?: Member };
export type TypedArgument<Member> = Typed<Argument, Member>;
type TypedOption<Member> = Typed<Option, Member>;

/** The values of arguments or options, by name; null for an option given as `none`. */
export type ValuesOf<Parts extends readonly object[]> = (
  Parts[number] extends infer Part
    ? Part extends { readonly [VALUES]?: infer Member }
      ? (members: Member) => void
      : never
    : never
) extends (members: infer Members) => void
  ? Readonly<Members>
  : never;

export interface CommandSpec<Arguments extends readonly Argument[], Options extends readonly Option[]> {
  readonly arguments?: Arguments;
  readonly options?: Options;
  /** Shown below the options. */
  readonly help?: string;
  /** What its help says about common options. */
  readonly ownHelp?: OwnHelp;
  /** Without the program's name. */
  readonly examples: readonly string[];
  /** @returns null if there is nothing to print */
  readonly run: (
    values: ValuesOf<[...Arguments, ...Options]>,
    command: Command,
  ) => Result | null | Promise<Result | null>;
}

/** In place of null for an option given as `none`: commander would replace null by `''`. */
const NONE = Symbol('none');

export function defineCommand<
  const Arguments extends readonly Argument[] = [],
  const Options extends readonly Option[] = [],
>(spec: CommandSpec<Arguments, Options>): Register {
  return (command) => {
    for (const argument of spec.arguments ?? []) command.addArgument(argument);
    for (const option of spec.options ?? []) command.addOption(option);
    if (spec.help !== undefined) command.addHelpText('after', spec.help);
    if (spec.ownHelp !== undefined) stateOwn(command, spec.ownHelp);
    addExamples(command, spec.examples);
    command.action(async () => {
      const result = await spec.run(valuesOf(command), command);
      if (result === null) return;
      print(result.value, { ...result, json: commonOptions(command).json });
      if (result.failed === true) process.exitCode = 1;
    });
  };
}

export function subcommand<
  const Arguments extends readonly Argument[] = [],
  const Options extends readonly Option[] = [],
>(name: string, description: string, spec: CommandSpec<Arguments, Options>): Register {
  return (parent) => defineCommand(spec)(parent.command(name).description(description));
}

export function commandGroup(...subcommands: readonly Register[]): Register {
  return (command) => {
    for (const register of subcommands) register(command);
  };
}

type ReadValue<Value> = (text: string, previous: Value) => Reading<Value>;
type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;
/** The member of an option, by commander's rule for names. */
type NameOf<Flags extends string> = Flags extends `--no-${infer Name}`
  ? CamelCase<Name>
  : Flags extends `--${infer Name} ${string}`
    ? CamelCase<Name>
    : Flags extends `--${infer Name}`
      ? CamelCase<Name>
      : never;
type PlainValue<Flags extends string> = Flags extends `${string}<${string}` ? string : boolean;
type ArgumentMember<Name extends string, Value> = Name extends `<${infer Required}>`
  ? Record<Required, Value>
  : Name extends `[${infer Optional}]`
    ? Partial<Record<Optional extends `${infer Several}...` ? Several : Optional, Value>>
    : never;

/** @param read the value from its text; without it, the text */
export function argument<const Name extends string, Value = string>(
  name: Name,
  description: string,
  read?: ReadValue<Value>,
): TypedArgument<ArgumentMember<Name, Value>> {
  const made = new Argument(name, description);
  return read === undefined ? made : made.argParser(parsed(read));
}

/** @param read the value from its text, or all the values it can have; without it, the text */
export function option<const Flags extends string, const Value = PlainValue<Flags>>(
  flags: Flags,
  description: string,
  read?: ReadValue<Value> | readonly Value[],
): TypedOption<Partial<Record<NameOf<Flags>, Value>>> {
  const made = new Option(flags, description);
  if (typeof read === 'function')
    return made.argParser<unknown>((text, previous) => parsed(read)(text, previous as Value) ?? NONE);
  return read === undefined ? made : made.choices(read.map(String));
}

export function requiredOption<const Flags extends string, Value = PlainValue<Flags>>(
  flags: Flags,
  description: string,
  read?: ReadValue<Value>,
): TypedOption<Record<NameOf<Flags>, Value>> {
  const made: Option = option(flags, description, read);
  return made.makeOptionMandatory();
}

/** @param shown the default in the help, if it is not the value itself */
export function withDefault<Member>(
  option: TypedOption<Member>,
  value: Member[keyof Member],
  shown?: string,
): TypedOption<Required<Member>> {
  const made: Option = option;
  return made.default(value, shown);
}

export const YES_OPTION = option('--yes', 'do not ask for confirmation');

/** Commander knows the values at run time only; their type follows from the arguments and options. */
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
  ...next: readonly (string | false)[]
): Result {
  const fields = () => details(columns.map(({ title, value }) => [title.toLowerCase(), value(entry)]));
  return {
    value: entry,
    text: () => joined('\n\n', [done, fields(), ...next]),
  };
}
