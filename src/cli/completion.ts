/** `wirewatch completion`: a script with which a shell completes commands, options and the values of arguments. */
import type { Command } from 'commander';
import { TOPICS } from '../manual/topics.ts';
import { anyText, required, value } from '../operations/member.ts';
import { Refused } from '../refused.ts';
import { SAMPLES } from '../samples/samples.ts';
import { defineCommand } from './command.ts';

/** A position on the command line, and what may come next there. */
export interface Place {
  /** The words that lead to it: `wirewatch key`. */
  readonly at: string;
  /** Commands, options and values, each with its meaning. */
  readonly words: readonly (readonly [word: string, meaning: string])[];
}

export interface CommandLine {
  readonly places: readonly Place[];
  /** Options that take a value, which is completed as a file name. */
  readonly valued: readonly string[];
}

const SCRIPTS = { bash, zsh, fish };
export const SHELLS = Object.keys(SCRIPTS);

/** The values of an argument, where they are fixed. */
const VALUES: Readonly<Record<string, Place['words']>> = {
  manual: TOPICS.map(({ name, title }) => [name, title]),
  sample: SAMPLES.map(({ name, title }) => [name, title]),
  completion: SHELLS.map((shell) => [shell, `completion of ${shell}`]),
};

export const register = defineCommand({
  members: { shell: required(value(anyText, { hint: SHELLS.join(', ') })) },
  operands: ['shell'],
  examples: [
    'completion bash > /etc/bash_completion.d/wirewatch',
    'completion zsh > /usr/local/share/zsh/site-functions/_wirewatch',
    'completion fish > ~/.config/fish/completions/wirewatch.fish',
  ],
  run({ shell }, self) {
    if (!isShell(shell))
      throw new Refused(
        'usage',
        `there is no completion script for ${JSON.stringify(shell)}: expected bash, zsh or fish`,
      );
    const script = SCRIPTS[shell](commandLine(self.parent ?? self));
    return { value: { shell, script }, text: script };
  },
});

function isShell(text: string): text is keyof typeof SCRIPTS {
  return Object.hasOwn(SCRIPTS, text);
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
        ...(command.parent === program ? (VALUES[command.name()] ?? []) : []),
        ...options.map(({ long, description }) => [long ?? '', description] as const),
        ['--help', 'show this help'],
      ],
    });
    for (const child of command.commands) visit(child, `${at} ${child.name()}`);
  };
  visit(program, program.name());
  return { places, valued: [...valued] };
}

function bash({ places, valued }: CommandLine): string {
  const words = places.map(
    (place) => `    ${quoted(place.at)}) words=${quoted(place.words.map(([word]) => word).join(' '))} ;;`,
  );
  return `# bash completion of wirewatch
_wirewatch() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" at=wirewatch words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${commands(places, '|')}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
    ${valued.join('|')}) COMPREPLY=(); return ;;
  esac
  case "$at" in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _wirewatch wirewatch
`;
}

function zsh({ places, valued }: CommandLine): string {
  const candidates = places.map(({ at, words }) => {
    const described = words.map(([word, meaning]) => quoted(`${word}:${meaning}`));
    return `    ${quoted(at)}) candidates=(${described.join(' ')}) ;;`;
  });
  return `#compdef wirewatch
_wirewatch() {
  local at=wirewatch
  local -a candidates
  integer i
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      ${commands(places, '|')}) at="$at \${words[i]}" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
    ${valued.join('|')}) _files; return ;;
  esac
  case "$at" in
${candidates.join('\n')}
  esac
  _describe wirewatch candidates || _files
}
if [[ "\${funcstack[1]}" = _wirewatch ]]; then
  _wirewatch "$@"
else
  compdef _wirewatch wirewatch
fi
`;
}

function fish({ places, valued }: CommandLine): string {
  const lines = places.flatMap(({ at, words }) =>
    words.map(([word, meaning]) => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${quoted(word)}`;
      const value = valued.includes(word) ? ' -r' : '';
      return `complete -c wirewatch -n ${quoted(`__wirewatch_is ${at}`)} ${what}${value} -d ${quoted(meaning)}`;
    }),
  );
  return `# fish completion of wirewatch
function __wirewatch_is
    set -l at wirewatch
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word" ${commands(places, ' ')}
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
${lines.join('\n')}
`;
}

/** Every command below the program, quoted. */
function commands(places: readonly Place[], separator: string): string {
  return places
    .slice(1)
    .map(({ at }) => quoted(at))
    .join(separator);
}

/** In single quotes, for all three shells: within them only the quote itself is special. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '').replaceAll("'", '’')}'`;
}
