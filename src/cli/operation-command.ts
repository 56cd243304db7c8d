/** Makes a command of an operation: arguments, options, help and examples, what is asked, and what is printed. */
import { createInterface } from 'node:readline';
import { type Command, Option } from 'commander';
import { readMembers } from '../operations/member.ts';
import type { Operation } from '../operations/operation.ts';
import { operationsOf } from '../operations/table.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { joined } from '../text-layout.ts';
import { describeMembers, givenOf, type Register } from './command.ts';
import { operate } from './operate.ts';
import { addExamples, commonOptions, DROP_OPTION } from './options.ts';
import { createProgress, print } from './output.ts';

/** The commands of a group, such as `key`. @param more those of the group that are no operations */
export function operationGroup(group: string, ...more: readonly Register[]): Register {
  return (command) => {
    for (const operation of operationsOf(group)) {
      const [, ...words] = operation.name.split(' ');
      const own = words.reduce(
        (parent, word) => parent.commands.find((command) => command.name() === word) ?? parent.command(word),
        command,
      );
      describe(own.description(operation.summary), operation);
    }
    for (const register of more) register(command);
  };
}

function describe(command: Command, operation: Operation): void {
  describeMembers(command, operation);
  if (operation.readsDrop) command.addOption(DROP_OPTION);
  if (operation.confirmedBy !== undefined)
    command.addOption(new Option('--yes', 'do not ask for confirmation'));
  if (operation.help !== undefined) command.addHelpText('after', `\n${operation.help}`);
  addExamples(command, operation.examples);
  command.action(() => runOperation(command, operation));
}

export async function runOperation(command: Command, operation: Operation): Promise<void> {
  const given = givenOf(command, operation);
  const { yes = false } = command.opts<{ yes?: boolean }>();
  const { name, form, members, confirmedBy } = operation;
  if (confirmedBy !== undefined && !yes) {
    const word = `${Object(readMembers(members, given))[confirmedBy]}`;
    await confirm(`${name} ${word}: ${form?.will}`, word);
  }
  using progress = createProgress();
  const interrupted = sayWhatGoesOn(operation);
  const outcome = await operate(command, operation, given, (text) => progress.update(text)).finally(() =>
    process.off('SIGINT', interrupted),
  );
  progress.end();
  const { value, done, next, warning, failed } = outcome;
  if (warning !== null) process.stderr.write(`wirewatch: ${printable(warning)}\n`);
  const text = () => joined('\n\n', [done, operation.text(value), ...next]);
  print(value, { json: commonOptions(command).json, text });
  if (failed) process.exitCode = 1;
}

/** Whoever interrupts a command ends only its waiting. */
function sayWhatGoesOn(operation: Operation): () => void {
  const say = () => {
    const goesOn =
      operation.job === undefined ? '' : ` If Wirewatch is running, it goes on with ${operation.name}.`;
    process.stderr.write(`wirewatch: interrupted.${goesOn}\n`);
    process.exit(130);
  };
  process.once('SIGINT', say);
  return say;
}

export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Returns when `word` was typed. The question goes to stderr: stdout is for the result of the command.
 * @param what will be done, in full sentences
 * @throws Refused `usage` without a terminal to ask on, `failed` if something else was typed
 */
export async function confirm(
  what: string,
  word: string,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (input.isTTY !== true || output.isTTY !== true)
    throw new Refused('usage', `${what} Not confirmed: add --yes.`);
  output.write(`${printable(what)}\nType ${printable(word)} to confirm: `);
  const lines = createInterface({ input, terminal: false });
  // Nothing, if it is closed without a line: Ctrl-D.
  const { value: typed = '' } = await lines[Symbol.asyncIterator]().next();
  lines.close();
  if (typed.trim() !== word) throw new Refused('failed', 'not confirmed; nothing was done.');
}
