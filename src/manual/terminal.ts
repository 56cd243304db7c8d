/** Markdown as text for a terminal or a pager: wrapped at a width, tables in columns if they fit. Pure. */
import { stripVTControlCharacters, styleText } from 'node:util';
import { lexer, type Token, type Tokens } from 'marked';

export const COLUMNS_MIN = 40;
export const COLUMNS_MAX = 100;
const GAP = '  ';
const NO_BREAK = '\u00a0';
const HARD_BREAK = '\u2028';

export interface TerminalLayout {
  /** Columns of the terminal; code is never wrapped, so that it can be copied. */
  readonly columns: number;
  /** Whether to use bold, underlined and coloured text; otherwise code keeps its backticks and fences. */
  readonly styled: boolean;
}

type Format = 'bold' | 'underline' | 'italic' | 'cyan';

/** @returns the text, ending with a line break */
export function terminalText(markdown: string, layout: TerminalLayout): string {
  return `${blocks(lexer(markdown), layout).join('\n\n')}\n`;
}

function blocks(tokens: readonly Token[], layout: TerminalLayout): string[] {
  return tokens.map((token) => block(token as MarkedToken, layout)).filter((text) => text !== '');
}

type MarkedToken =
  | Tokens.Heading
  | Tokens.Paragraph
  | Tokens.Text
  | Tokens.List
  | Tokens.Table
  | Tokens.Code
  | Tokens.Blockquote
  | Tokens.Space
  | Tokens.HTML
  | Tokens.Hr;

function block(token: MarkedToken, layout: TerminalLayout): string {
  switch (token.type) {
    case 'heading':
      return heading(token, layout);
    case 'paragraph':
    case 'text':
      return wrapped(inline(token.tokens ?? [token], layout), layout.columns);
    case 'code':
      // At the margin: indented Python could not be copied.
      return layout.styled ? lines(['cyan'], token.text) : `\`\`\`\n${token.text}\n\`\`\``;
    case 'list':
      return list(token, layout);
    case 'table':
      return table(token, layout);
    case 'blockquote':
      return indented(blocks(token.tokens, narrower(layout, 4)).join('\n\n'), '    ');
    // Comments mark the generated parts.
    case 'html':
    case 'space':
    case 'hr':
      return '';
  }
}

function heading({ depth, tokens }: Tokens.Heading, layout: TerminalLayout): string {
  const text = inline(tokens, { ...layout, styled: false }).replaceAll('`', '');
  const shown = depth === 1 ? text.toUpperCase() : text;
  if (layout.styled) return style(depth === 2 ? ['bold', 'underline'] : ['bold'], shown);
  const mark = ['=', '-'][depth - 1] ?? '~';
  return `${shown}\n${mark.repeat(shown.length)}`;
}

function list({ items, ordered, start, loose }: Tokens.List, layout: TerminalLayout): string {
  const texts = items.map((item, index) => {
    const mark = ordered ? `${Number(start) + index}. ` : '- ';
    const inside = narrower(layout, mark.length);
    return (
      mark +
      indented(blocks(item.tokens, inside).join(loose ? '\n\n' : '\n'), ' '.repeat(mark.length)).trimStart()
    );
  });
  return texts.join(loose ? '\n\n' : '\n');
}

/**
 * In columns, the last one wrapped, if the others leave it at least half of the line. Otherwise each row is its first cell,
 * with the others indented below it.
 */
function table({ header, rows }: Tokens.Table, layout: TerminalLayout): string {
  const cells = (row: readonly Tokens.TableCell[], columns: number) =>
    row.map(({ tokens }) => inline(tokens, { ...layout, columns }));
  const half = Math.floor(layout.columns / 2);
  const head = cells(header, half);
  const body = rows.map((row) => cells(row, half));
  const widths = head.map((_, at) => Math.max(...[head, ...body].map((row) => width(row[at] ?? ''))));
  const before = widths.slice(0, -1).reduce((sum, one) => sum + one + GAP.length, 0);
  if (before > half)
    return rows.map((row) => record(head, cells(row, layout.columns - 4), layout)).join('\n\n');
  const line = (row: readonly string[]) => {
    const first = row
      .slice(0, -1)
      .map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - width(cell)) + GAP);
    const last = wrapped(row.at(-1) ?? '', layout.columns - before);
    return (first.join('') + indented(last, ' '.repeat(before)).trimStart())
      .trimEnd()
      .replaceAll(NO_BREAK, ' ');
  };
  const titles = head.some((title) => title !== '') ? [line(head.map((title) => title.toUpperCase()))] : [];
  return [...titles, ...body.map(line)].join('\n');
}

function record(head: readonly string[], row: readonly string[], layout: TerminalLayout): string {
  const [first = '', ...rest] = row;
  const lines = rest.map((cell, at) => {
    const title = rest.length > 1 ? `${head[at + 1]}: ` : '';
    return cell === '' ? '' : indented(wrapped(title + cell, layout.columns - 4), '    ');
  });
  const shown = layout.styled ? style(['bold'], first) : first;
  return [wrapped(shown, layout.columns), ...lines.filter((line) => line !== '')].join('\n');
}

function inline(tokens: readonly Token[], layout: TerminalLayout): string {
  let text = '';
  for (const token of tokens) {
    const isInParentheses = text.lastIndexOf('(') > text.lastIndexOf(')');
    text +=
      token.type === 'link'
        ? link(token as Tokens.Link, layout, isInParentheses)
        : span(token as InlineToken, layout);
  }
  return text;
}

type InlineToken =
  | Tokens.Text
  | Tokens.Escape
  | Tokens.Codespan
  | Tokens.Strong
  | Tokens.Em
  | Tokens.Image
  | Tokens.Br
  | Tokens.HTML;

function span(token: InlineToken, layout: TerminalLayout): string {
  switch (token.type) {
    case 'codespan':
      return layout.styled
        ? style(['cyan'], unbroken(token.text, layout))
        : `\`${unbroken(token.text, layout)}\``;
    case 'strong':
      return emphasis(['bold'], token, layout);
    case 'em':
      return emphasis(['italic'], token, layout);
    case 'image':
      return `[${token.text}]`;
    case 'br':
      return HARD_BREAK;
    case 'html':
      return '';
    case 'text':
    case 'escape':
      return token.text;
  }
}

function emphasis(
  formats: readonly Format[],
  { tokens }: Tokens.Strong | Tokens.Em,
  layout: TerminalLayout,
): string {
  const text = inline(tokens, layout);
  return layout.styled ? style(formats, text) : text;
}

/** A link to a topic becomes the command that shows it; a link to a heading, its title. */
function link({ href, tokens }: Tokens.Link, layout: TerminalLayout, isInParentheses: boolean): string {
  const text = inline(tokens, layout);
  const [, topic, heading] = /^([a-z-]+)\.md(?:#(.*))?$/.exec(href) ?? [];
  if (topic === undefined && (href.startsWith('#') || href === text)) return text;
  const where = topic === undefined ? href : span(code(`wirewatch manual ${topic}`), layout);
  if (heading !== undefined && heading === headingId(text)) return `"${text}" in ${where}`;
  return isInParentheses ? `${text}, ${where}` : `${text} (${where})`;
}

/** As in the addresses of headings. */
function headingId(text: string): string {
  return stripVTControlCharacters(text)
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replace(/\s/g, '-');
}

function code(text: string): Tokens.Codespan {
  return { type: 'codespan', raw: text, text };
}

/** Keeps only the line breaks that Markdown marks (a `br`). */
function wrapped(text: string, columns: number): string {
  const lines = text.split(HARD_BREAK).map((line) => fill(line.trim(), columns));
  return lines.join('\n').replaceAll(NO_BREAK, ' ');
}

function fill(text: string, columns: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/[ \t\n]+/)) {
    if (line !== '' && width(line) + 1 + width(word) > columns) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines.join('\n');
}

/** Keeps a command that fits into a line, with its backticks and punctuation, on one line, so that it can be copied. */
function unbroken(text: string, { columns }: TerminalLayout): string {
  return text.length + 4 <= columns ? text.replaceAll(' ', NO_BREAK) : text;
}

function indented(text: string, indent: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? line : indent + line))
    .join('\n');
}

function narrower(layout: TerminalLayout, by: number): TerminalLayout {
  return { ...layout, columns: layout.columns - by };
}

/** Word by word: a pager does not continue a style on the next line. */
function style(formats: readonly Format[], text: string): string {
  const styled = (word: string) => styleText([...formats], word, { validateStream: false });
  return text.split(' ').map(styled).join(' ');
}

function lines(formats: readonly Format[], text: string): string {
  const styled = (line: string) =>
    line === '' ? '' : styleText([...formats], line, { validateStream: false });
  return text.split('\n').map(styled).join('\n');
}

function width(text: string): number {
  return stripVTControlCharacters(text).length;
}
