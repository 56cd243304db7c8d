/** How the manual's text is laid out: plain, as wide as the terminal, and for a pager or a file. */

const WIDTH_MAX = 100;
const WIDTH_LEAST = 40;

/** Of the terminal, where stdout is one that is narrower. */
export const WIDTH =
  process.stdout.isTTY && process.stdout.columns >= WIDTH_LEAST
    ? Math.min(WIDTH_MAX, process.stdout.columns)
    : WIDTH_MAX;
const FENCE = '```';

/** Code to copy; nothing stands before its lines, since indentation would break Python. */
export function fenced(language: 'sh' | 'python' | 'json' | 'toml' | 'yaml' | 'ini', code: string): string {
  return `${FENCE}${language}\n${code.trim()}\n${FENCE}`;
}

/** Text in lines of at most {@link WIDTH} columns, each behind `indent`; a word that is longer stands alone. */
export function wrapped(text: string, indent = ''): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(indent + line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  lines.push(indent + line);
  return lines.join('\n');
}

/** Paragraphs, lists and code with an empty line between them. */
export function page(...blocks: readonly string[]): string {
  return `${blocks.map((block) => block.trim()).join('\n\n')}\n`;
}

/** A paragraph, wrapped. */
export function paragraph(text: string): string {
  return wrapped(text.trim());
}

/** Points with a dash each, wrapped below their first word. */
export function points(...texts: readonly string[]): string {
  return texts.map((text) => `- ${wrapped(text.trim(), '  ').trimStart()}`).join('\n');
}
