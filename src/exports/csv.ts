/**
 * CSV (RFC 4180): a header line with column names, then one record per row. An empty field is null; numbers and booleans
 * are written as in JSON. A mapping can say that delimiter, quote, encoding, header and values are others.
 */
import { pipeline } from 'node:stream';
import { CsvError, type Info, parse } from 'csv-parse';
import { counted } from '../counted.ts';
import type { ExportName } from '../detection/content-type.ts';
import { IGNORED_COLUMNS_MAX, isChecked, type RawRow } from './check-row.ts';
import { exportColumn } from './columns.ts';
import { checkHeader } from './header.ts';
import {
  badFile,
  badRow,
  decodedChunks,
  expectedText,
  LINE_BYTES_MAX,
  type RawEntry,
  wholeLines,
} from './lines.ts';
import { type ColumnReader, columnReader, type Mapping, originOf, type Reader } from './mapping.ts';

/** Both bound the memory of a group: a row may have a mebibyte. */
const GROUP_ROWS = 500;
const GROUP_BYTES = 256 * 1024;
const INTEGER = /^-?(0|[1-9]\d*)$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

type ParsedRecord = { readonly info: Info; readonly record: string[] };

export async function* csvEntries(
  chunks: AsyncIterable<Buffer>,
  exportName: ExportName,
  mapping: Mapping | null,
): AsyncGenerator<RawEntry[]> {
  const unreadable: RawEntry[] = [];
  const { delimiter = ',', quote = '"', encoding = 'utf-8', header: names = null } = mapping?.csv ?? {};
  const isUtf8 = new TextDecoder(encoding).encoding === 'utf-8';
  const lines = wholeLines(isUtf8 ? chunks : decodedChunks(chunks, encoding), isUtf8 ? 'UTF-8' : encoding);
  const blocks = async function* () {
    for await (const some of lines) {
      if (some.kind === 'lines') yield some.block;
      // Records can span lines, so after an unreadable line it is unknown where the next record begins.
      else {
        const { line, expected, text } = some;
        const what_to_do = `If the file has another encoding, such as windows-1252, set csv = { encoding = "windows-1252" } in [exports.${exportName}].`;
        const more = expected === expectedText('UTF-8') ? { what_to_do } : {};
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
