/** `wirewatch completion`: prints the script with which a shell completes commands, options and topics. */
import type { Command } from 'commander';
import { TOPICS } from '../manual/topics.ts';
import { Refused } from '../refused.ts';
import { SAMPLES } from '../samples/samples.ts';
import { type CommandLine, completionScript, type Place, SHELLS, type Shell } from './completion-scripts.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

export function register(command: Command, wholeProgram: () => Promise<Command>): void {
  command
    .argument('<shell>', SHELLS.join(', '))
    .action(async (shell: string, _options: unknown, self: Command) => {
      if (!isShell(shell))
        throw new Refused(
          'usage',
          `there is no completion script for ${JSON.stringify(shell)}: expected bash, zsh or fish`,
        );
      const script = completionScript(shell, commandLine(await wholeProgram()));
      print({ shell, script }, { json: commonOptions(self).json, text: script });
    });
  addExamples(command, [
    'completion bash > /etc/bash_completion.d/wirewatch',
    'completion zsh > /usr/local/share/zsh/site-functions/_wirewatch',
    'completion fish > ~/.config/fish/completions/wirewatch.fish',
  ]);
}

function isShell(text: string): text is Shell {
  return SHELLS.some((shell) => shell === text);
}

/** Every place on the command line, the program itself first. */
export function commandLine(program: Command): CommandLine {
  const places: Place[] = [];
  const valued = new Set<string>();
  const visit = (command: Command, at: string): void => {
    const options = [...command.options, ...(command === program ? [] : program.options)];
    for (const option of options)
      if ((option.required || option.optional) && option.long) valued.add(option.long);
    places.push({
      at,
      words: [
        ...command.commands.map((child) => [child.name(), child.description()] as const),
        ...values(command),
        ...options.map(({ long, description }) => [long ?? '', description] as const),
        ['--help', 'show this help'],
      ],
    });
    for (const child of command.commands) visit(child, `${at} ${child.name()}`);
  };
  visit(program, program.name());
  return { places, valued: [...valued] };
}

/** The values of an argument, where they are fixed. */
function values(command: Command): readonly (readonly [string, string])[] {
  if (command.parent?.parent) return [];
  if (command.name() === 'manual') return TOPICS.map(({ name, title }) => [name, title]);
  if (command.name() === 'sample') return SAMPLES.map(({ name, title }) => [name, title]);
  return command.name() === 'completion' ? SHELLS.map((shell) => [shell, `completion of ${shell}`]) : [];
}
