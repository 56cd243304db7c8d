/** Scripts with which shells complete the command line, generated from the command line itself. Pure. */

/** A place on the command line, and what may come next there. */
export interface Place {
  /** The words that lead to it: `wirewatch key`. */
  readonly at: string;
  /** Commands, options and values, each with what it means. */
  readonly words: readonly (readonly [word: string, meaning: string])[];
}

export interface CommandLine {
  readonly places: readonly Place[];
  /** Options that take a value: a path, or one that cannot be completed. */
  readonly valued: readonly string[];
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export function completionScript(shell: Shell, line: CommandLine): string {
  const script = { bash, zsh, fish }[shell];
  return script(line);
}

function bash({ places, valued }: CommandLine): string {
  return `# bash completion of wirewatch
_wirewatch() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" at=wirewatch words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${commands(places)}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
    ${valued.join('|')}) COMPREPLY=(); return ;;
  esac
  case "$at" in
${places.map(({ at, words }) => `    ${quoted(at)}) words=${quoted(words.map(([word]) => word).join(' '))} ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _wirewatch wirewatch
`;
}

function zsh({ places, valued }: CommandLine): string {
  const candidates = ({ at, words }: Place) =>
    `    ${quoted(at)}) candidates=(${words.map(([word, meaning]) => quoted(`${word}:${meaning}`)).join(' ')}) ;;`;
  return `#compdef wirewatch
_wirewatch() {
  local at=wirewatch
  local -a candidates
  integer i
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      ${commands(places)}) at="$at \${words[i]}" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
    ${valued.join('|')}) _files; return ;;
  esac
  case "$at" in
${places.map(candidates).join('\n')}
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
  const known = places.slice(1).map(({ at }) => quoted(at));
  const isValued = new Set(valued);
  const lines = places.flatMap(({ at, words }) =>
    words.map(([word, meaning]) => {
      const condition = `-n ${quoted(`__wirewatch_is ${at}`)}`;
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${quoted(word)}`;
      const value = isValued.has(word) ? ' -r' : '';
      return `complete -c wirewatch ${condition} ${what}${value} -d ${quoted(meaning)}`;
    }),
  );
  return `# fish completion of wirewatch
function __wirewatch_is
    set -l at wirewatch
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word" ${known.join(' ')}
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
${lines.join('\n')}
`;
}

/** The patterns of \`case\` for every command below the program. */
function commands(places: readonly Place[]): string {
  return places
    .slice(1)
    .map(({ at }) => quoted(at))
    .join('|');
}

/** Single-quoted for all three shells: within single quotes only the quote itself is special. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '').replaceAll("'", '’')}'`;
}
