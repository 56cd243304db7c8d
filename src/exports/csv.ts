/**
 * CSV (RFC 4180): a header line with column names, then one record per row. An empty field is null; numbers and booleans
 * are written as in JSON.
 */
import { pipeline } from 'node:stream';
import { CsvError, type Info, parse } from 'csv-parse';
import { counted } from '../counted.ts';
import type { ExportName } from '../detection/content-type.ts';
import { nearest } from '../nearest.ts';
import type { RawRow } from './check-row.ts';
import { EXPORT_COLUMNS, exportColumn } from './columns.ts';
import { badFile, badRow, LINE_BYTES_MAX, type RawEntry, wholeLines } from './lines.ts';

const GROUP_ROWS = 500;
/** Edit distance up to which an unknown header name is suggested as a misspelling. */
const MISSPELT_MAX = 4;
const INTEGER = /^-?(0|[1-9]\d*)$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

type ParsedRecord = { readonly info: Info; readonly record: string[] };

export async function* csvEntries(
  chunks: AsyncIterable<Buffer>,
  exportName: ExportName,
): AsyncGenerator<RawEntry[]> {
  const unreadable: RawEntry[] = [];
  const blocks = async function* () {
    for await (const lines of wholeLines(chunks)) {
      if (lines.kind === 'lines') yield lines.block;
      // Records can span lines, so after an unreadable line it is unknown where the next record begins.
      else return void unreadable.push(badFile(lines.line, lines.expected, lines.text));
    }
  };
  const parser = parse({
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: LINE_BYTES_MAX,
  });
  // Every error ends the parser, which is read below.
  pipeline(blocks, parser, () => {});
  const lines = new LineCounter();
  let header: string[] | null = null;
  let group: RawEntry[] = [];
  try {
    for await (const parsed of parser as AsyncIterable<ParsedRecord>) {
      const line = lines.lineOf(parsed);
      if (header === null) {
        header = parsed.record;
        const bad = checkHeader(header, exportName);
        if (bad) return yield [bad];
        continue;
      }
      group.push(entryOf(header, parsed.record, line));
      if (group.length < GROUP_ROWS) continue;
      yield group;
      group = [];
    }
  } catch (error) {
    // Syntax errors come as an error of the parser, with the line.
    unreadable.push(parseProblem(error, lines));
  } finally {
    parser.destroy();
  }
  yield [...group, ...unreadable.slice(0, 1)];
}

function checkHeader(header: readonly string[], exportName: ExportName): RawEntry | null {
  const names = new Set<string>();
  for (const name of header) {
    // If lines end with CR alone, all records are part of the header.
    if (/\r(?!\n)/.test(name)) return badFile(1, 'lines that end with LF or CRLF', header.join(','));
    if (names.has(name)) return badFile(1, 'every column only once', name, name);
    names.add(name);
    const column = exportColumn(name);
    if (column && !column.exports.includes(exportName))
      return badFile(1, `no column ${name} in ${exportName} files`, name, name);
  }
  const absent = EXPORT_COLUMNS.filter((column) => column.required && !names.has(column.name));
  if (absent.length === 0) return null;
  const unknown = header.filter((name) => exportColumn(name) === undefined);
  const wanted = absent.map(({ name }) => {
    const given = nearest(name, unknown, MISSPELT_MAX);
    return given === null ? name : `${name} (misspelled as "${given.slice(0, 100)}"?)`;
  });
  const columns = absent.length === 1 ? 'the column' : 'the columns';
  return badFile(1, `a header line with ${columns} ${wanted.join(', ')}`, header.join(','));
}

function entryOf(header: readonly string[], record: readonly string[], line: number): RawEntry {
  if (record.length !== header.length) {
    return badRow(line, `${counted(header.length, 'field')}, as in the header`, record.join(','));
  }
  const raw: Record<string, unknown> = Object.create(null);
  for (const [index, name] of header.entries()) raw[name] = fieldValue(name, record[index] ?? '');
  return { kind: 'row', line, raw: raw as RawRow };
}

/** A field that is not of its column's type stays a string, so that the row check reports it. */
function fieldValue(name: string, text: string): unknown {
  if (text === '') return null;
  const type = exportColumn(name)?.kind.type;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  const isNumber = (type === 'integer' && INTEGER.test(text)) || (type === 'score' && NUMBER.test(text));
  return isNumber ? Number(text) : text;
}

function parseProblem(error: unknown, lines: LineCounter): RawEntry {
  if (!(error instanceof CsvError)) throw error;
  const line = typeof error.lines === 'number' ? error.lines - lines.returns : 0;
  const reason = error.message.replace(/ at line \d+/, '').slice(0, 200);
  return badFile(line, `CSV as in RFC 4180 (${reason})`, null);
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
