/** Checks the names of the columns of a CSV file, and says what may be meant by those that are unknown. Pure. */
import type { ExportName } from '../detection/content-type.ts';
import { nearest } from '../nearest.ts';
import { EXPORT_COLUMNS, exportColumn } from './columns.ts';
import { badFile, type RawEntry } from './lines.ts';
import type { ColumnReader } from './mapping.ts';

/** Edit distance up to which an unknown name is suggested as a misspelling. */
const MISSPELT_MAX = 4;
const DELIMITERS = [';', '\t', '|', ','];

/** @param isGiven whether the names are those of the setting `csv.header`, and not a line of the file */
export function checkHeader(
  header: readonly string[],
  exportName: ExportName,
  { reader, delimiter, isGiven }: { reader: ColumnReader | null; delimiter: string; isGiven: boolean },
): RawEntry | null {
  const names = new Set<string>();
  const read = new Set<string>();
  let twice: RawEntry | null = null;
  for (const name of header) {
    // If lines end with CR alone, all records are part of the header.
    if (/\r(?!\n)/.test(name)) return badFile(1, 'lines that end with LF or CRLF', header.join(delimiter));
    if (names.has(name)) twice ??= badFile(1, 'every column only once', name, { column: name });
    names.add(name);
    for (const column of reader?.namesOf(name, (other) => header.includes(other)) ?? [name]) {
      read.add(column);
      if (exportColumn(column)?.exports.includes(exportName) === false)
        return badFile(1, `no column ${column} in ${exportName} files`, name, { column: name });
    }
  }
  for (const [name] of reader?.constants ?? []) read.add(name);
  const absent = EXPORT_COLUMNS.filter((column) => column.required && !read.has(column.name));
  if (absent.length === 0) return twice;
  const separator = separatorOf(header, delimiter);
  const found = separator === null ? header : (header[0] ?? '').split(separator);
  const isMeant = (name: string) => reader?.isNamed(name) === true || exportColumn(name) !== undefined;
  const unknown = found.filter((name) => !isMeant(name));
  const wanted = absent.map(({ name }) => {
    const theirs = reader?.nameOf(name) ?? name;
    const shown = theirs === name ? name : `${theirs} (${name})`;
    const given = found.includes(theirs) ? null : (lookalike(theirs, unknown) ?? lookalike(name, unknown));
    return given === null ? shown : `${shown} (misspelled as "${given.slice(0, 100)}"?)`;
  });
  const columns = absent.length === 1 ? 'the column' : 'the columns';
  const where = isGiven ? 'the setting csv.header' : 'a header line';
  const section = `[exports.${exportName}]`;
  const quoted = JSON.stringify(separator);
  const what_to_do =
    separator !== null
      ? `The whole line is one column: its separator seems to be ${quoted}. If so, set csv = { delimiter = ${quoted} } in ${section}.`
      : `If the file has other names, set columns in ${section}; if it has no header line, csv = { header = [...] }.`;
  return badFile(1, `${where} with ${columns} ${wanted.join(', ')}`, header.join(delimiter), { what_to_do });
}

/** What seems to separate the columns of a line that was read as one. */
function separatorOf(header: readonly string[], delimiter: string): string | null {
  const [line = ''] = header;
  if (header.length !== 1) return null;
  const others = DELIMITERS.filter((other) => other !== delimiter && line.includes(other));
  const counts = others.map((separator) => ({ separator, count: line.split(separator).length }));
  return counts.sort((a, b) => b.count - a.count)[0]?.separator ?? null;
}

/** The same letters count, whatever their case and what stands between them. */
function lookalike(name: string, given: readonly string[]): string | null {
  const letters = (text: string) => text.toLowerCase().replaceAll(/[\s_.-]+/g, '');
  const most = Math.min(MISSPELT_MAX, Math.floor(letters(name).length / 2));
  const found = nearest(letters(name), given.map(letters), most);
  return given.find((column) => letters(column) === found) ?? null;
}
