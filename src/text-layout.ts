/** How text is laid out on a terminal: documents as tables and as lists of their members. */
import { grouped } from './counted.ts';
import { printableLine } from './printable.ts';

/** @param none what is printed if there are no documents @param names as of {@link documentTable} */
export function listText<Row extends object>(none: string, names?: readonly (keyof Row & string)[]) {
  return (documents: readonly Row[]): string =>
    documents.length === 0 ? none : documentTable(documents, names);
}

/**
 * Documents in aligned columns below their titles; null and what is absent are shown as `-`.
 * @param names of the columns, by default every member: `created_at` is CREATED AT
 */
export function documentTable<Document extends object>(
  documents: readonly Document[],
  names?: readonly (keyof Document & string)[],
): string {
  const shown: readonly string[] = names ?? Object.keys(documents[0] ?? {});
  const columns = shown.map((name) => {
    const values = documents.map((document): unknown => Reflect.get(document, name));
    const isRight = values.some((value) => typeof value === 'number');
    const cells = values.map((value) => printableLine(worded(name, value) ?? '-'));
    const texts = [titleOf(name).toUpperCase(), ...cells];
    const width = texts.reduce((widest, text) => Math.max(widest, length(text)), 0);
    return texts.map((text) => {
      const space = ' '.repeat(width - length(text));
      return isRight ? space + text : text + space;
    });
  });
  const lines = Array.from({ length: documents.length + 1 }, (_, at) => columns.map((column) => column[at]));
  return lines.map((line) => line.join('  ').trimEnd()).join('\n');
}

/** A document, a line for each member. */
export const documentText = (document: object): string =>
  details(Object.entries(document).map(([name, value]) => [titleOf(name), worded(name, value)]));

/** Labels and their values in two aligned columns; null is shown as `-`, and what follows them is left out. */
export function details(lines: readonly (readonly [string, string | null, ...unknown[]])[]): string {
  const width = Math.max(...lines.map(([label]) => label.length));
  return lines.map(([label, value]) => `${label.padEnd(width)}  ${value ?? '-'}`).join('\n');
}

/** The parts of a text, without those that are null or false. */
export const joined = (separator: string, parts: readonly (string | null | false)[]): string =>
  parts.filter((part) => part !== null && part !== false).join(separator);

const titleOf = (name: string) => name.replaceAll('_', ' ');

/** Members whose numbers are names: they have no separators. */
const NUMBERED = ['id', 'number', 'file'];

function worded(name: string, value: unknown): string | null {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return null;
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value === 'number') return NUMBERED.includes(name) ? `${value}` : grouped(value);
  if (Array.isArray(value)) return value.map((item) => worded(name, item)).join(',');
  if (typeof value !== 'object') return `${value}`;
  // A subscription of a key, as its option is written.
  const parts = Object.entries(value).map(([own, part]) => worded(own, part));
  return joined(':', parts);
}

/** Characters, not UTF-16 units: close enough to columns for names. */
const length = (text: string): number => [...text].length;
