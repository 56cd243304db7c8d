/** How text is laid out on a terminal: tables, and labels with values. */
import { printable } from './printable.ts';

type Cell = string | number | null | undefined;

export type Column<Row> = {
  title: string;
  value: (row: Row) => Cell;
  align?: 'right';
};

/** Rows in aligned columns below their titles; null and undefined are shown as `-`. */
export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const lines = [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map((column) => cell(column.value(row)))),
  ];
  const widths = columns.map((_, at) =>
    lines.reduce((widest, line) => Math.max(widest, length(line[at])), 0),
  );
  const padded = (text: string, at: number) => {
    const space = ' '.repeat((widths[at] ?? 0) - length(text));
    return columns[at]?.align === 'right' ? space + text : text + space;
  };
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n');
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

function cell(value: Cell): string {
  return value === null || value === undefined
    ? '-'
    : printable(String(value)).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** Characters, not UTF-16 units: close enough to columns for names. */
function length(text: string | undefined): number {
  return text === undefined ? 0 : [...text].length;
}

/** @param none what is printed if there are no entries */
export function listText<Entry>(columns: readonly Column<Entry>[], none: string) {
  return (entries: readonly Entry[]): string => (entries.length === 0 ? none : table(entries, columns));
}

/** One entry, its columns below one another. */
export function entryText<Entry>(columns: readonly Column<Entry>[]) {
  return (entry: Entry): string =>
    details(columns.map(({ title, value }) => [title.toLowerCase(), value(entry)]));
}
