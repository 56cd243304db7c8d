/** Manual, topic `commands`: made from the command line itself, so that it cannot say anything else. */
import { page, paragraph, wrapped } from './text.ts';

/** A command as the command line tells of it. */
export interface CommandSummary {
  /** `wirewatch window reset <export> <start>` */
  readonly usage: string;
  readonly description: string;
  readonly options: readonly OptionSummary[];
}

export interface OptionSummary {
  /** `--status <status>` */
  readonly flags: string;
  /** With its choices, its default, and whether it must be given. */
  readonly description: string;
}

/** @param commands the program itself first, with the options that every command takes */
export function commandsText(commands: readonly CommandSummary[]): string {
  const [program, ...rest] = commands;
  return page(
    'COMMANDS',
    paragraph(`
      "wirewatch COMMAND --help" shows examples besides. Commands work on the data folder of a running
      appliance without disturbing it, and take effect at once. Output goes to stdout, everything else to stderr.
      Exit codes: 0 good, 1 it failed, 2 wrong usage, 78 wrong configuration or data folder.`),
    `Every command takes:\n${(program?.options ?? []).map(option).join('\n')}`,
    ...rest.map(command),
  );
}

function command({ usage, description, options }: CommandSummary): string {
  return [usage, wrapped(description, '    '), ...options.map(option)].join('\n');
}

function option({ flags, description }: OptionSummary): string {
  return `    ${flags}\n${wrapped(description, '        ')}`;
}
