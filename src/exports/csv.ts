/**
 * CSV (RFC 4180): a header line with column names, then one record per row. An empty field is null; numbers and booleans
 * are written as in JSON. A mapping can say that delimiter, quote, encoding, header and values are others.
 */
import { pipeline } from 'node:stream';
import { CsvError, type Info, parse } from 'csv-parse';
import { counted } from '../counted.ts';
import type { ExportName } from '../detection/content-type.ts';
import { nearest } from '../nearest.ts';
import { IGNORED_COLUMNS_MAX, isChecked, type RawRow } from './check-row.ts';
import { EXPORT_COLUMNS, exportColumn } from './columns.ts';
import { badFile, badRow, decodedChunks, LINE_BYTES_MAX, type RawEntry, wholeLines } from './lines.ts';
import { type ColumnReader, columnReader, type Mapping, originOf, type Reader } from './mapping.ts';

/** Both bound the memory of a group: a row may have a mebibyte. */
const GROUP_ROWS = 500;
const GROUP_BYTES = 256 * 1024;
const INTEGER = /^-?(0|[1-9]\d*)$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Edit distance up to which an unknown name is suggested as a misspelling. */
const MISSPELT_MAX = 4;
const DELIMITERS = [';', '\t', '|', ','];

type ParsedRecord = { readonly info: Info; readonly record: string[] };

export async function* csvEntries(
  chunks: AsyncIterable<Buffer>,
  exportName: ExportName,
  mapping: Mapping | null,
): AsyncGenerator<RawEntry[]> {
  const unreadable: RawEntry[] = [];
  const { delimiter = ',', quote = '"', encoding = 'utf-8', header: names = null } = mapping?.csv ?? {};
  const isUtf8 = new TextDecoder(encoding).encoding === 'utf-8';
  const expectedText = isUtf8 ? 'UTF-8 text' : `${encoding} text`;
  const lines = wholeLines(isUtf8 ? chunks : decodedChunks(chunks, encoding), expectedText);
  const blocks = async function* () {
    for await (const some of lines) {
      if (some.kind === 'lines') yield some.block;
      // Records can span lines, so after an unreadable line it is unknown where the next record begins.
      else {
        const { line, expected, text } = some;
        const what_to_do = `If the file has another encoding, such as windows-1252, set csv = { encoding = "windows-1252" } in [exports.${exportName}].`;
        const more = isUtf8 && expected === expectedText ? { what_to_do } : {};
        return void unreadable.push(badFile(line, expected, text, more));
      }
    }
  };
  const parser = parse({
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: LINE_BYTES_MAX,
    delimiter,
    quote: quote === '' ? null : quote,
    escape: quote === '' ? null : quote,
  });
  // Every error ends the parser, which is read below.
  pipeline(blocks, parser, () => {});
  const counter = new LineCounter();
  const reader = mapping === null ? null : columnReader(mapping);
  let read: ((record: readonly string[], line: number) => RawEntry) | null = null;
  let group: RawEntry[] = [];
  let groupStart = 0;
  try {
    for await (const parsed of parser as AsyncIterable<ParsedRecord>) {
      const line = counter.lineOf(parsed);
      if (read === null) {
        const header = names ?? parsed.record;
        const bad = checkHeader(header, exportName, { reader, delimiter, isGiven: names !== null });
        if (bad) return yield [bad];
        read = recordReader(header, reader);
        if (names === null) continue;
      }
      group.push(read(parsed.record, line));
      const { bytes } = parsed.info;
      if (group.length < GROUP_ROWS && bytes - groupStart < GROUP_BYTES) continue;
      yield group;
      group = [];
      groupStart = bytes;
    }
  } catch (error) {
    // Syntax errors come as an error of the parser, with the line.
    unreadable.push(parseProblem(error, counter, quote));
  } finally {
    parser.destroy();
  }
  yield [...group, ...unreadable.slice(0, 1)];
}

/** Checks the names of the columns. @param isGiven whether the names are those of the setting `csv.header`, and not a line of the file */
function checkHeader(
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

/** Made once for a file, so that a field costs no search. */
function recordReader(header: readonly string[], reader: ColumnReader | null) {
  const isInFile = (name: string) => header.includes(name);
  let ignored = 0;
  const targets = header.flatMap((theirs, index) =>
    (reader?.namesOf(theirs, isInFile) ?? [theirs]).flatMap((name) => {
      // There may be a hundred thousand of them, in every row.
      if (!isChecked(name) && ++ignored > IGNORED_COLUMNS_MAX) return [];
      const plain = fieldReader(name);
      return { name, index, read: reader?.reader(name, plain) ?? plain };
    }),
  );
  const constants = (reader?.constants ?? []).filter(([name]) => !targets.some((own) => own.name === name));
  const places = new Map(header.map((name, index) => [name, index]));
  return (record: readonly string[], line: number): RawEntry => {
    if (record.length !== header.length)
      return badRow(line, `${counted(header.length, 'field')}, as in the header`, record.join(','));
    const raw: Record<string, unknown> = Object.create(null);
    for (const { name, index, read } of targets) raw[name] = read(record[index]);
    for (const [name, value] of constants) raw[name] = value;
    const origin = reader === null ? null : originOf(reader, (name) => record[places.get(name) ?? -1]);
    return { kind: 'row', line, raw: raw as RawRow, origin };
  };
}

/** By the type of the column. A text that is not of the type stays one, so that the row check reports it. */
const READERS: Partial<Record<string, (text: string) => unknown>> = {
  boolean: (text) => (text === 'true' || text === 'false' ? text === 'true' : text),
  integer: (text) => (INTEGER.test(text) ? Number(text) : text),
  score: (text) => (NUMBER.test(text) ? Number(text) : text),
};

/** An empty field has no value. */
function fieldReader(name: string): Reader {
  const read = READERS[exportColumn(name)?.kind.type ?? ''] ?? ((text) => text);
  return (text) => {
    if (typeof text !== 'string') return text;
    return text === '' ? null : read(text);
  };
}

function parseProblem(error: unknown, lines: LineCounter, quote: string): RawEntry {
  if (!(error instanceof CsvError)) throw error;
  const line = typeof error.lines === 'number' ? error.lines - lines.returns : 0;
  const reason = error.message.replace(/ at line \d+/, '').slice(0, 200);
  const quoted = quote === '"' ? '' : `, with the quote ${quote}`;
  return badFile(line, `CSV as in RFC 4180${quoted} (${reason})`, null);
}

/** Finds the line on which a record begins: the parser gives its last line, and counts a carriage return as a line. */
class LineCounter {
  /** Carriage returns in records so far. */
  returns = 0;
  #counted = 0;

  lineOf({ info, record }: ParsedRecord): number {
    const isPlain = info.lines === this.#counted + 1;
    this.#counted = info.lines;
    const text = isPlain ? '' : record.join();
    this.returns += text.split('\r').length - 1;
    return info.lines - this.returns - (text.split('\n').length - 1);
  }
}
