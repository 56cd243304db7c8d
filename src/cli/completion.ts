/** `wirewatch completion`: a script with which a shell completes command lines. It asks this command what may come next. */
import type { Command } from 'commander';
import { read } from '../config/option-values.ts';
import { TOPICS } from '../manual/topics.ts';
import { choice, list, required } from '../operations/member.ts';
import { defineCommand } from './command.ts';
import { SAMPLES } from './sample.ts';

const SCRIPTS = {
  bash: `# bash completion of wirewatch
_wirewatch() {
  local IFS=$'\\n'
  COMPREPLY=($(wirewatch completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _wirewatch wirewatch
`,
  zsh: `#compdef wirewatch
_wirewatch() {
  local -a candidates
  candidates=(\${(f)"$(wirewatch completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  (( $#candidates )) && compadd -a candidates || _files
}
if [[ "\${funcstack[1]}" = _wirewatch ]]; then
  _wirewatch "$@"
else
  compdef _wirewatch wirewatch
fi
`,
  fish: `# fish completion of wirewatch
function __wirewatch_offers
    set -l words (commandline -opc) (commandline -ct)
    wirewatch completion fish -- $words[2..-1] 2>/dev/null
end
complete -c wirewatch -a '(__wirewatch_offers)'
`,
} as const;

export const SHELLS = ['bash', 'zsh', 'fish'] as const satisfies (keyof typeof SCRIPTS)[];

/** The values of an argument, where they are fixed. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  manual: TOPICS.map(({ name }) => name),
  sample: SAMPLES.map(({ file }) => file),
  completion: SHELLS,
};

export const register = defineCommand({
  members: {
    shell: required(choice(SHELLS, { placeholder: 'shell' })),
    word: list(read, {
      hint: 'for the script: print what completes the last of these words instead',
      several: 'repeated',
    }),
  },
  operands: ['shell', 'word'],
  examples: [
    'completion bash > /etc/bash_completion.d/wirewatch',
    'completion zsh > /usr/local/share/zsh/site-functions/_wirewatch',
    'completion fish > ~/.config/fish/completions/wirewatch.fish',
  ],
  run({ shell, word: words = [] }, self) {
    if (words.length === 0) return { value: { shell, script: SCRIPTS[shell] }, text: SCRIPTS[shell] };
    const offers = offered(self.parent ?? self, words);
    return offers.length === 0 ? null : { value: offers, text: offers.join('\n') };
  },
});

/** @returns what completes the last word; nothing where a file name may come: the shell completes those */
function offered(program: Command, words: readonly string[]): readonly string[] {
  const [last = '', previous, ...before] = words.toReversed();
  const command = [...before.toReversed(), previous].reduce<Command>(
    (at, word) => at.commands.find((child) => child.name() === word) ?? at,
    program,
  );
  const options = [...new Set([...command.options, ...program.options])];
  if (options.some(({ long, required, optional }) => long === previous && (required || optional))) return [];
  return [
    ...command.commands.map((child) => child.name()),
    ...(command.parent === program ? (VALUES[command.name()] ?? []) : []),
    ...options.map(({ long }) => long ?? ''),
    '--help',
  ].filter((word) => word.startsWith(last));
}
