/** How the manual's text is laid out: plain, for a terminal of a hundred columns, and for a pager or a file. */

export const WIDTH = 100;
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
