/**
 * The manual's text as a page. The text is laid out for a terminal by `manual/text.ts`, and that layout is regular
 * enough to be read back: headings, paragraphs, points, terms with what is said of them, code. Pure.
 */
import { WIDTH } from '../manual/text.ts';
import { escaped, type Html, html } from './html.ts';

const FENCE = '```';
const HEADING_CHARACTERS_MAX = 70;

/** @param topics names of all topics: where one is named, it becomes a link */
export function manualHtml(text: string, topics: readonly string[]): Html[] {
  return blocksOf(text).map((lines, index) => block(lines, index === 0, topics));
}

/** The text's blocks, which are parted by empty lines; code keeps its own. */
function blocksOf(text: string): string[][] {
  const blocks: string[][] = [];
  let block: string[] = [];
  let isCode = false;
  for (const line of text.trimEnd().split('\n')) {
    if (line.startsWith(FENCE)) isCode = !isCode;
    if (line === '' && !isCode) {
      if (block.length > 0) blocks.push(block);
      block = [];
    } else block.push(line);
  }
  return block.length > 0 ? [...blocks, block] : blocks;
}

function block(lines: readonly string[], isFirst: boolean, topics: readonly string[]): Html {
  const [first = ''] = lines;
  if (first.startsWith(FENCE)) return html`<pre><code>${lines.slice(1, -1).join('\n')}</code></pre>\n`;
  if (isFirst && lines.length === 1) return html`<h1>${title(first)}</h1>\n`;
  if (first.startsWith('- ')) return points(lines, topics);
  if (lines.some((line) => line.startsWith('    '))) return terms(lines, topics);
  // Columns set by hand, as names of files beside what they are.
  if (lines.every((line) => / {3,}/.test(line))) return html`<pre>${lines.join('\n')}</pre>\n`;
  if (lines.length === 1 && first.length <= HEADING_CHARACTERS_MAX && !/[.:;]$/.test(first))
    return html`<h2>${inline(first, topics)}</h2>\n`;
  return html`<p>${inline(lines.join(' '), topics)}</p>\n`;
}

function points(lines: readonly string[], topics: readonly string[]): Html {
  const texts: string[] = [];
  for (const line of lines) {
    if (line.startsWith('- ')) texts.push(line.slice(2));
    else texts.push(`${texts.pop() ?? ''} ${line.trim()}`);
  }
  return html`<ul>\n${texts.map((text) => html`<li>${inline(text, topics)}</li>\n`)}</ul>\n`;
}

/** A term on lines of its own, and indented below it what is said of it. */
function terms(lines: readonly string[], topics: readonly string[]): Html {
  const parts = unwrapped(lines).map(({ indent, text }) => {
    if (indent === 0) return html`<dt>${inline(text, topics)}</dt>\n`;
    return indent > 4
      ? html`<dd class="deep">${inline(text, topics)}</dd>\n`
      : html`<dd>${inline(text, topics)}</dd>\n`;
  });
  return html`<dl>\n${parts}</dl>\n`;
}

/** A line was broken where its next word would not have fitted; any other line break is meant. */
function unwrapped(lines: readonly string[]): { indent: number; text: string }[] {
  const texts: { indent: number; text: string }[] = [];
  let before = '';
  for (const line of lines) {
    const text = line.trimStart();
    const indent = line.length - text.length;
    const last = texts.at(-1);
    const [word = ''] = text.split(' ');
    if (last?.indent === indent && before.length + 1 + word.length > WIDTH) last.text += ` ${text}`;
    else texts.push({ indent, text });
    before = line;
  }
  return texts;
}

/** Commands in quotes become code, and topics links. */
function inline(text: string, topics: readonly string[]): Html {
  const names = topics.join('|');
  const pattern = new RegExp(
    `&quot;(wirewatch manual (${names}))&quot;|&quot;(wirewatch (?:(?!&quot;).)+)&quot;|\\b(topic )(${names})\\b`,
    'g',
  );
  const markup = escaped(text).replace(
    pattern,
    (_, manual?: string, of?: string, command?: string, word?: string, topic?: string) => {
      if (manual !== undefined) return `<a href="/manual/${of}">${manual}</a>`;
      if (command !== undefined) return `<code>${command}</code>`;
      return `${word}<a href="/manual/${topic}">${topic}</a>`;
    },
  );
  return { markup };
}

function title(text: string): string {
  return text.charAt(0) + text.slice(1).toLowerCase();
}
