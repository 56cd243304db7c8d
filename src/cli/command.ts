/** How a command is described, and the one runner: it prints the result as text or, with --json, as one document. */
import { Argument, type Command, Option } from 'commander';
import { type Member, type Members, readEach, type ValuesOf, value } from '../operations/member.ts';
import { listed } from '../refused.ts';
import { addExamples, readPath } from './options.ts';
import { print, type Result } from './output.ts';

/** Adds the command's arguments, options, subcommands and action. */
export type Register = (command: Command) => void;

export interface CommandSpec<Own extends Members> {
  /** What it is given, by name: options, or operands. */
  readonly members?: Own;
  /** The members that are operands, in the order of the members; the last may take several. */
  readonly operands?: readonly string[];
  /** Further options, which are settings. */
  readonly options?: readonly Option[];
  readonly help?: string;
  /** Without the program's name. */
  readonly examples: readonly string[];
  /** @param given the members as they were typed @returns null if there is nothing to print */
  readonly run: (
    values: ValuesOf<Own>,
    command: Command,
    given: object,
  ) => Result | null | Promise<Result | null>;
}

export function defineCommand<const Own extends Members = Record<never, never>>({
  // Without members, the type is that of an object without any.
  members = {} as Own,
  operands = [],
  options = [],
  help,
  examples,
  run,
}: CommandSpec<Own>): Register {
  return (command) => {
    for (const [name, member] of Object.entries(members))
      if (operands.includes(name)) command.addArgument(argumentOf(name, member));
      else command.addOption(optionOf(name, member));
    for (const option of options) command.addOption(option);
    if (help !== undefined) command.addHelpText('after', `\n${help}`);
    addExamples(command, examples);
    command.action(async () => {
      const given = givenOf(command, members, operands);
      const problems: string[] = [];
      const values = readEach(members, given, (name, problem) =>
        problems.push(`${operands.includes(name) ? name : flagOf(name)}: ${problem}`),
      );
      if (problems.length > 0) command.error(`error: ${listed(problems, 'values are wrong')}`);
      const result = await run(values, command, given);
      if (result === null) return;
      print(command, result);
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

export const pathMember = (hint: string, placeholder = 'file'): Member<string, false> =>
  value(readPath, { hint, placeholder });

function argumentOf(name: string, { isRequired, several, hint }: Member): Argument {
  const shown = `${name.replaceAll('_', '-')}${several === 'repeated' ? '...' : ''}`;
  return new Argument(isRequired ? `<${shown}>` : `[${shown}]`, hint);
}

function optionOf(name: string, { placeholder, hint, isRequired, several, mayBeBare = false }: Member) {
  const flag = flagOf(name);
  const taken = mayBeBare ? `[${placeholder}]` : `<${placeholder}>`;
  const option = new Option(placeholder === null ? flag : `${flag} ${taken}`, hint);
  if (several === 'repeated') option.argParser((text, texts: string[] = []) => [...texts, text]);
  return option.makeOptionMandatory(isRequired);
}

function givenOf(command: Command, members: Members, operands: readonly string[]): object {
  const options = command.opts<Record<string, unknown>>();
  const given: Record<string, unknown> = {};
  for (const [name, { mayBeBare }] of Object.entries(members)) {
    const at = operands.indexOf(name);
    const typed = at >= 0 ? command.processedArgs[at] : options[new Option(flagOf(name)).attributeName()];
    // True: the option without a value.
    if (typed !== undefined && !(typed === true && mayBeBare)) given[name] = typed;
  }
  return given;
}

const flagOf = (name: string): string => `--${name.replaceAll('_', '-')}`;
