/** What commands print: one JSON document or text on stdout, and progress on a terminal's stderr. */
import { styleText } from 'node:util';
import { grouped } from '../counted.ts';
import { printable } from '../printable.ts';

/** A terminal that reports fewer columns gets the default width. */
const WIDTH_MIN = 40;
export const WIDTH_DEFAULT = 80;

/** Columns of the terminal; null if stdout is not a terminal, so that lines may have any length. */
export function terminalWidth(): number | null {
  if (!process.stdout.isTTY) return null;
  const { columns } = process.stdout;
  return columns >= WIDTH_MIN ? columns : WIDTH_DEFAULT;
}

/**
 * Prints the result: the value as one document with `--json`, else the text.
 *
 * @param colours by word: a line of the text that begins with the word shows it in this colour on a terminal
 */
export function print(
  value: unknown,
  {
    json,
    text,
    colours = {},
  }: { json: boolean; text: string | (() => string); colours?: Readonly<Record<string, Colour>> },
): void {
  const written = json ? JSON.stringify(value, null, 2) : typeof text === 'string' ? text : text();
  const shown = json ? printable(written) : painted(printable(written), colours);
  process.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
}

export type Colour = 'red' | 'yellow' | 'green';

/** Must follow {@link printable}: text from outside must not bring its own colours. */
function painted(text: string, colours: Readonly<Record<string, Colour>>): string {
  return Object.entries(colours).reduce(
    (done, [word, colour]) =>
      done.replace(new RegExp(`^${word}(?=\\s)`, 'gm'), (found) =>
        // Obeys NO_COLOR, and does not colour a pipe.
        styleText(colour, found, { stream: process.stdout }),
      ),
    text,
  );
}

type Cell = string | number | null | undefined;

export type Column<Row> = {
  title: string;
  value: (row: Row) => Cell;
  align?: 'right';
};

/**
 * Rows in aligned columns below their titles; null and undefined are shown as `-`. Columns that exceed the width are
 * printed below each row, with their titles.
 *
 * @param width maximum width of a line; null: no maximum
 */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number | null = terminalWidth(),
): string {
  const cells = rows.map((row) => columns.map((column) => cell(column.value(row))));
  const titles = columns.map((column) => column.title);
  const widths = columns.map((_, at) =>
    [titles, ...cells].reduce((widest, line) => Math.max(widest, length(line[at])), 0),
  );
  const shown = columnsWithin(widths, width);
  const line = (texts: readonly string[]) =>
    texts
      .slice(0, shown)
      .map((text, at) => {
        const space = ' '.repeat((widths[at] ?? 0) - length(text));
        return columns[at]?.align === 'right' ? space + text : text + space;
      })
      .join('  ')
      .trimEnd();
  const below = (texts: readonly string[]) =>
    titles.flatMap((title, at) =>
      at < shown || texts[at] === '-'
        ? []
        : wrapped(`${title.toLowerCase()}: ${texts[at]}`, width ?? WIDTH_DEFAULT),
    );
  return [line(titles), ...cells.flatMap((texts) => [line(texts), ...below(texts)])].join('\n');
}

/** How many of the first columns fit; at least one. */
function columnsWithin(widths: readonly number[], width: number | null): number {
  if (width === null) return widths.length;
  let used = -2;
  const overflowing = widths.findIndex((own) => {
    used += own + 2;
    return used > width;
  });
  return overflowing < 0 ? widths.length : Math.max(1, overflowing);
}

/** Labels and their values in two aligned columns; null is shown as `-`. */
export function details(lines: readonly (readonly [label: string, value: Cell])[]): string {
  const width = Math.max(...lines.map(([label]) => label.length));
  return lines.map(([label, value]) => `${label.padEnd(width)}  ${value ?? '-'}`).join('\n');
}

/** The parts of a text, without those that are null or false. */
export function joined(separator: string, parts: readonly (string | null | false)[]): string {
  return parts.filter((part) => part !== null && part !== false).join(separator);
}

const BELOW_INDENT = '    ';

/**
 * Lines of at most `width` columns where the words allow it. A command at the end stays on one line, so that it can be
 * copied.
 *
 * @param first what the first line begins with; the others are indented by `indent`
 */
export function wrapped(text: string, width: number, indent = BELOW_INDENT, first = indent): string[] {
  const [command] = /(?<=: )wirewatch .*$/.exec(text) ?? [];
  const prose = command === undefined ? text : text.slice(0, -command.length - 1);
  const lines: string[] = [];
  let line = first;
  let isFirst = true;
  for (const word of [...prose.split(' '), ...(command === undefined ? [] : [command])]) {
    if (!isFirst && length(line) + 1 + length(word) > width) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = isFirst ? `${line}${word}` : `${line} ${word}`;
    isFirst = false;
  }
  return [...lines, line];
}

function cell(value: Cell): string {
  return value === null || value === undefined
    ? '-'
    : printable(String(value)).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** Characters, not UTF-16 units: close enough to columns for names. */
function length(text: string | undefined): number {
  return text === undefined ? 0 : [...text].length;
}

/** A `using` declaration ends it. */
export interface Progress extends Disposable {
  /**
   * @param label another one begins a new line, which replaces the previous one
   * @param total of `done`, if known
   */
  update(label: string, done?: number, total?: number): void;
  /** Removes the line until the next update. */
  clear(): void;
  end(): void;
}

export type ProgressStream = { isTTY?: boolean; columns?: number; write(text: string): unknown };

const REDRAW_MS = 100;
const CLEAR_LINE = '\r\x1b[2K';

/**
 * One line on stderr that is redrawn: `label  12,000  40%  3,000/s`. Prints nothing if stderr is not a terminal.
 *
 * @param now epoch milliseconds
 */
export function createProgress({
  stream = process.stderr,
  now = Date.now,
}: {
  stream?: ProgressStream;
  now?: () => number;
} = {}): Progress {
  if (stream.isTTY !== true) return { update() {}, clear() {}, end() {}, [Symbol.dispose]() {} };
  let shown: { readonly label: string; readonly startMs: number } | null = null;
  let drawnMs = Number.NEGATIVE_INFINITY;
  const clear = () => {
    if (drawnMs !== Number.NEGATIVE_INFINITY) stream.write(CLEAR_LINE);
  };
  const end = () => {
    clear();
    shown = null;
    drawnMs = Number.NEGATIVE_INFINITY;
  };
  return {
    clear,
    end,
    [Symbol.dispose]: end,
    update(label, done, total) {
      const atMs = now();
      if (shown?.label !== label) {
        end();
        shown = { label, startMs: atMs };
      }
      if (atMs - drawnMs < REDRAW_MS) return;
      drawnMs = atMs;
      const line = progressLine(label, done, total, atMs - shown.startMs);
      stream.write(`${CLEAR_LINE}${[...line].slice(0, Math.max(1, (stream.columns ?? 80) - 1)).join('')}`);
    },
  };
}

function progressLine(
  label: string,
  done: number | undefined,
  total: number | undefined,
  elapsedMs: number,
): string {
  if (done === undefined) return printable(label);
  const parts = [printable(label), grouped(Math.round(done))];
  if (total !== undefined && total > 0) parts.push(`${Math.min(100, Math.floor((done / total) * 100))}%`);
  if (elapsedMs >= 1000) parts.push(`${grouped(Math.round((done / elapsedMs) * 1000))}/s`);
  return parts.join('  ');
}
