/** Makes a command of an operation: arguments, options, help and examples, what is asked, and what is printed. */
import { createInterface } from 'node:readline';
import { Option } from 'commander';
import type { Members } from '../operations/member.ts';
import type { Operation } from '../operations/operation.ts';
import { operationsOf } from '../operations/table.ts';
import { printable } from '../printable.ts';
import { misused, Refused } from '../refused.ts';
import { joined } from '../text-layout.ts';
import { type CommandSpec, defineCommand, type Register } from './command.ts';
import { operate } from './operate.ts';
import { DROP_OPTION } from './options.ts';
import { note } from './output.ts';

/** The commands of a group, such as `key`. @param more those of the group that are no operations */
export function operationGroup(group: string, ...more: readonly Register[]): Register {
  return (command) => {
    for (const operation of operationsOf(group)) {
      const [, ...words] = operation.name.split(' ');
      const own = words.reduce(
        (parent, word) => parent.commands.find((command) => command.name() === word) ?? parent.command(word),
        command,
      );
      defineCommand(commandOf(operation))(own.description(operation.summary));
    }
    for (const register of more) register(command);
  };
}

export function commandOf(operation: Operation): CommandSpec<Members> {
  const { name, form, job, confirmedBy } = operation;
  const options = [
    operation.readsDrop && DROP_OPTION,
    confirmedBy !== undefined && new Option('--yes', 'do not ask for confirmation'),
  ];
  return {
    ...operation,
    options: options.filter((option) => option instanceof Option),
    async run(values: Readonly<Record<string, unknown>>, command, given) {
      const { yes = false } = command.opts<{ yes?: boolean }>();
      if (confirmedBy !== undefined && !yes) {
        const word = `${values[confirmedBy]}`;
        await confirm(`${name} ${word}: ${form?.will}`, word);
      }
      // Whoever interrupts a command ends only its waiting.
      const goesOn = job === undefined ? '' : ` If Wirewatch is running, it goes on with ${name}.`;
      const interrupted = () => {
        note(`interrupted.${goesOn}`);
        process.exit(130);
      };
      process.once('SIGINT', interrupted);
      const outcome = await operate(command, operation, given).finally(() =>
        process.off('SIGINT', interrupted),
      );
      const { value, done, next, warning, failed } = outcome;
      if (warning !== null) note(warning);
      return { value, text: joined('\n\n', [done, operation.text(value), ...next]), failed };
    },
  };
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
  if (input.isTTY !== true || output.isTTY !== true) throw misused(`${what} Not confirmed: add --yes.`);
  output.write(`${printable(what)}\nType ${printable(word)} to confirm: `);
  const lines = createInterface({ input, terminal: false });
  // Nothing, if it is closed without a line: Ctrl-D.
  const { value: typed = '' } = await lines[Symbol.asyncIterator]().next();
  lines.close();
  if (typed.trim() !== word) throw new Refused('failed', 'not confirmed; nothing was done.');
}
