/** How a command is described, and the one runner: it prints the result as text or, with --json, as one document. */
import { Argument, type Command, Option } from 'commander';
import { wrong } from '../config/option-values.ts';
import { type Member, type Members, readMembers, type ValuesOf, value } from '../operations/member.ts';
import { misused } from '../refused.ts';
import { addExamples, commonOptions, parsed, readPath } from './options.ts';
import { print } from './output.ts';

/** Adds the command's arguments, options, subcommands and action. */
export type Register = (command: Command) => void;

/** What a command prints, and whether it ends with exit code 1. */
export interface Result {
  /** Printed with --json. */
  readonly value: unknown;
  readonly text: string | (() => string);
  readonly failed?: boolean;
}

/** What a command is given: members by name, as options, or as operands in this order. */
interface Accepted<Own extends Members = Members> {
  readonly members: Own;
  readonly operands?: readonly string[];
}

export interface CommandSpec<Own extends Members> extends Partial<Accepted<Own>> {
  /** Further options, which are settings. */
  readonly options?: readonly Option[];
  /** Members that exclude each other. */
  readonly conflicts?: readonly (readonly [keyof Own & string, keyof Own & string])[];
  readonly help?: string;
  /** Without the program's name. */
  readonly examples: readonly string[];
  /** @returns null if there is nothing to print */
  readonly run: (values: ValuesOf<Own>, command: Command) => Result | null | Promise<Result | null>;
}

export function defineCommand<const Own extends Members = Record<never, never>>(
  spec: CommandSpec<Own>,
): Register {
  // Without members, the type is that of an object without any.
  const { members = {} as Own, operands = [], options = [], conflicts = [], help, run } = spec;
  const accepted = { members, operands };
  return (command) => {
    describeMembers(command, accepted);
    for (const option of options) command.addOption(option);
    for (const [name, other] of conflicts)
      command.options.find(({ long }) => long === flagOf(name))?.conflicts(camelCase(other));
    if (help !== undefined) command.addHelpText('after', `\n${help}`);
    addExamples(command, spec.examples);
    command.action(async () => {
      const result = await run(readMembers(members, givenOf(command, accepted)), command);
      if (result === null) return;
      print(result.value, { ...result, json: commonOptions(command).json });
      if (result.failed === true) process.exitCode = 1;
    });
  };
}

export function subcommand<const Own extends Members = Record<never, never>>(
  name: string,
  description: string,
  spec: CommandSpec<Own>,
): Register {
  return (parent) => defineCommand(spec)(parent.command(name).description(description));
}

export function pathMember(hint: string, placeholder = 'file'): Member<string, false> {
  return value(readPath, { hint, placeholder });
}

function describeMembers(command: Command, { members, operands = [] }: Accepted): void {
  for (const [at, name] of operands.entries()) {
    const member = members[name];
    if (member === undefined) throw new Error(`${command.name()} has no member ${name}`);
    const dots = at === operands.length - 1 && member.several === 'repeated' ? '...' : '';
    const shown = `${name.replaceAll('_', '-')}${dots}`;
    const argument = new Argument(member.isRequired ? `<${shown}>` : `[${shown}]`, member.hint);
    command.addArgument(argument.argParser(parserOf(member)));
  }
  for (const [name, member] of Object.entries(members))
    if (!operands.includes(name)) command.addOption(optionOf(name, member));
}

/** The members as they were typed. */
export function givenOf(command: Command, { members, operands = [] }: Accepted): object {
  const options = command.opts<Record<string, unknown>>();
  const given: Record<string, unknown> = {};
  for (const name of Object.keys(members)) {
    const at = operands.indexOf(name);
    const typed = at >= 0 ? command.processedArgs[at] : options[camelCase(name)];
    // True: the option without a value.
    if (typed !== undefined && !(typed === true && members[name]?.mayBeBare)) given[name] = typed;
  }
  return given;
}

function optionOf(name: string, { placeholder, hint, isRequired, mayBeBare = false, ...member }: Member) {
  const flag = flagOf(name);
  const taken = mayBeBare ? `[${placeholder}]` : `<${placeholder}>`;
  const option = new Option(placeholder === null ? flag : `${flag} ${taken}`, hint);
  if (placeholder !== null) option.argParser(parserOf(member));
  return option.makeOptionMandatory(isRequired);
}

/** Checks a text as it will be read, so that a wrong one is named as it was typed; passes it on as it is. */
function parserOf({ several, isSecret, read }: Pick<Member, 'several' | 'isSecret' | 'read'>) {
  return parsed<unknown>((text, previous) => {
    const given = several === 'repeated' ? [...(Array.isArray(previous) ? previous : []), text] : text;
    const reading = read(given);
    if (reading.kind === 'read') return { kind: 'read', value: given };
    // Commander's message repeats the text.
    if (isSecret) throw misused(`expected ${reading.expected}`);
    return wrong(reading.expected);
  });
}

function flagOf(name: string): string {
  return `--${name.replaceAll('_', '-')}`;
}

/** The name that commander gives to the value of an option. */
function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
