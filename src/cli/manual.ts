/** `wirewatch manual`: the manual, bundled so that it is available offline and matches the version. */
import { spawnSync } from 'node:child_process';
import type { Command, Option } from 'commander';
import type { CommandSummary, OptionSummary } from '../manual/commands.ts';
import { TOPICS } from '../manual/topics.ts';
import { Refused } from '../refused.ts';
import { addExamples, commonOptions } from './options.ts';
import { print, table } from './output.ts';

export function register(command: Command, wholeProgram: () => Promise<Command>): void {
  command
    .argument('[topic]', TOPICS.map(({ name }) => name).join(', '))
    .action(async (topic: string | undefined, _options: unknown, self: Command) => {
      const { json } = commonOptions(self);
      if (topic === undefined) print(contents(), { json, text: contentsText });
      else printTopic(topic, await wholeProgram(), json);
    });
  addExamples(command, ['manual', 'manual export-format | less']);
}

function printTopic(name: string, program: Command, json: boolean): void {
  const topic = TOPICS.find((known) => known.name === name);
  if (topic === undefined) {
    throw new Refused(
      'usage',
      `the manual has no topic ${JSON.stringify(name)}. Topics: ${TOPICS.map((known) => known.name).join(', ')}`,
    );
  }
  const text = topic.text(commandSummaries(program));
  if (json || !process.stdout.isTTY || !paged(text)) print({ topic: topic.name, text }, { json, text });
}

/**
 * Shows a text in the user's pager: `PAGER`, else less, which exits by itself if the text fits on one screen.
 *
 * @returns false if there is no pager, or none is wanted (`PAGER=` or `PAGER=cat`)
 */
function paged(text: string): boolean {
  const { PAGER } = process.env;
  if (PAGER === '' || PAGER === 'cat') return false;
  const { status } = spawnSync(PAGER ?? 'less', {
    input: text,
    stdio: ['pipe', 'inherit', 'inherit'],
    // It may be a command line.
    shell: PAGER !== undefined,
    env: { LESS: 'FRX', ...process.env },
  });
  return status !== null && ![126, 127].includes(status);
}

function contents(): { topic: string; title: string }[] {
  return TOPICS.map(({ name, title }) => ({ topic: name, title }));
}

function contentsText(): string {
  const rows = table(contents(), [
    { title: 'TOPIC', value: ({ topic }) => topic },
    { title: 'TITLE', value: ({ title }) => title },
  ]);
  return `${rows}\n\nTo read one: wirewatch manual TOPIC`;
}

/** Every command that is not just a group of others, the program itself first. */
export function commandSummaries(program: Command): CommandSummary[] {
  const summarize = (command: Command, name: string): CommandSummary[] => {
    const below = command.commands.flatMap((child) => summarize(child, `${name} ${child.name()}`));
    const isGroup = command.commands.length > 0 && command.parent !== null;
    return isGroup ? below : [summaryOf(command, name), ...below];
  };
  return summarize(program, program.name());
}

function summaryOf(command: Command, name: string): CommandSummary {
  const usage = [
    name,
    ...command.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`)),
  ];
  return {
    usage: usage.join(' '),
    description: command.description(),
    options: command.options.map(optionOf),
  };
}

function optionOf(option: Option): OptionSummary {
  const { flags, description, argChoices, defaultValue, defaultValueDescription, mandatory } = option;
  const given: unknown = defaultValueDescription ?? defaultValue;
  const facts = [
    ...(argChoices === undefined ? [] : [`one of ${argChoices.join(', ')}`]),
    ...(given === undefined ? [] : [`default: ${given}`]),
    ...(mandatory ? ['required'] : []),
  ];
  return { flags, description: facts.length === 0 ? description : `${description} (${facts.join('; ')})` };
}
