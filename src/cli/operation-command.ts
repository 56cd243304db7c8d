/** Makes a command of an operation: arguments, options, help and examples, what is asked, and what is printed. */
import { Argument, type Command, Option } from 'commander';
import { wrong } from '../config/option-values.ts';
import type { Member } from '../operations/member.ts';
import type { Operation } from '../operations/operation.ts';
import { operationsOf } from '../operations/table.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { joined } from '../text-layout.ts';
import type { Register } from './command.ts';
import { confirm } from './confirm.ts';
import { operate, questionOf } from './operate.ts';
import { addExamples, commonOptions, DROP_OPTION, parsed } from './options.ts';
import { createProgress, print } from './output.ts';

/** The commands of a group, such as `key`. @param more those of the group that are no operations */
export function operationGroup(group: string, ...more: readonly Register[]): Register {
  return (command) => {
    for (const operation of operationsOf(group)) {
      const [, ...words] = operation.name.split(' ');
      const own = words.length === 0 ? command : command.command(words.join(' '));
      describe(own.description(operation.summary), operation);
    }
    for (const register of more) register(command);
  };
}

function describe(command: Command, operation: Operation): void {
  const { operands, members } = operation;
  for (const [at, name] of operands.entries()) {
    const member = memberOf(operation, name);
    const isLast = at === operands.length - 1;
    const dots = isLast && member.several === 'repeated' ? '...' : '';
    const shown = member.isRequired ? `<${name}${dots}>` : `[${name}${dots}]`;
    command.addArgument(new Argument(shown, member.hint).argParser(parserOf(member)));
  }
  for (const [name, member] of Object.entries(members))
    if (!operands.includes(name)) command.addOption(optionOf(name, member));
  if (operation.readsDrop) command.addOption(DROP_OPTION);
  if (operation.asks) command.addOption(new Option('--yes', 'do not ask for confirmation'));
  if (operation.help !== null) command.addHelpText('after', `\n${operation.help}`);
  addExamples(command, operation.examples);
  command.action(() => runOperation(command, operation));
}

function memberOf({ name, members }: Operation, member: string): Member {
  const found = members[member];
  if (found === undefined) throw new Error(`${name} has no member ${member}`);
  return found;
}

function optionOf(name: string, member: Member): Option {
  const flag = `--${name.replaceAll('_', '-')}`;
  const option = new Option(
    member.placeholder === null ? flag : `${flag} <${member.placeholder}>`,
    member.hint,
  );
  if (member.placeholder !== null) option.argParser(parserOf(member));
  return option.makeOptionMandatory(member.isRequired);
}

/** Checks a text as the operation will, so that a wrong one is named as it was typed; passes it on as it is. */
function parserOf(member: Member): (text: string, previous: unknown) => unknown {
  return parsed<unknown>((text, previous) => {
    const given = member.several === 'repeated' ? [...(Array.isArray(previous) ? previous : []), text] : text;
    const reading = member.read(given);
    if (reading.kind === 'read') return { kind: 'read', value: given };
    // Commander's message repeats the text.
    if (member.isSecret) throw new Refused('usage', `expected ${reading.expected}`);
    return wrong(reading.expected);
  });
}

export async function runOperation(command: Command, operation: Operation): Promise<void> {
  const given = givenOf(command, operation);
  const { yes = false } = command.opts<{ yes?: boolean }>();
  if (operation.asks && !yes) {
    const question = await questionOf(command, operation, given);
    if (question !== null) await confirm(question.text, question.word);
  }
  using progress = createProgress();
  const interrupted = sayWhatGoesOn(operation);
  const outcome = await operate(command, operation, given, (text) => progress.update(text)).finally(() =>
    process.off('SIGINT', interrupted),
  );
  progress.end();
  const { value, done, next, warning, failed } = outcome;
  if (warning !== null) process.stderr.write(`wirewatch: ${printable(warning)}\n`);
  const text = () => joined('\n\n', [done, operation.text?.(value) ?? null, ...next]);
  print(value, { json: commonOptions(command).json, text, colours: operation.colours });
  if (failed) process.exitCode = 1;
}

/** The members as they were typed. */
function givenOf(command: Command, { members, operands }: Operation): object {
  const options = command.opts<Record<string, unknown>>();
  const given: Record<string, unknown> = {};
  for (const name of Object.keys(members)) {
    const at = operands.indexOf(name);
    const typed = at >= 0 ? command.processedArgs[at] : options[camelCase(name)];
    if (typed !== undefined) given[name] = typed;
  }
  return given;
}

/** As commander names the value of an option. */
function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Whoever interrupts a command ends only its waiting. */
function sayWhatGoesOn(operation: Operation): () => void {
  const say = () => {
    const goesOn =
      operation.job === null ? '' : ` If Wirewatch is running, it goes on with ${operation.name}.`;
    process.stderr.write(`wirewatch: interrupted.${goesOn}\n`);
    process.exit(130);
  };
  process.once('SIGINT', say);
  return say;
}
