/** NDJSON: one JSON object per line, and optionally a last line with the number of rows. */
import { isObject } from '../is-object.ts';
import { reasonOf } from '../refused.ts';
import { badFile, badRow, NEWLINE, type RawEntry, wholeLines } from './lines.ts';
import { type ColumnReader, columnReader, type Mapping, originOf } from './mapping.ts';

/** Entries come in groups: an asynchronous step for each row would cost more than the row. */
export async function* ndjsonEntries(chunks: AsyncIterable<Buffer>, mapping: Mapping | null) {
  const reader = mapping === null ? null : columnReader(mapping);
  for await (const lines of wholeLines(chunks))
    yield lines.kind === 'lines'
      ? entriesOf(lines.block, lines.first_line, reader)
      : [badRow(lines.line, lines.expected, lines.text)];
}

/**
 * Each line is decoded by itself: most then need one byte per character; a block as one string needs two. Rows are parsed
 * lazily, so that each dies young: rows of a complete block survived garbage collections, which took a quarter of the time.
 */
function* entriesOf(block: Buffer, firstLine: number, reader: ColumnReader | null): Generator<RawEntry> {
  let line = firstLine;
  for (let at = 0; at < block.length; line += 1) {
    const newline = block.indexOf(NEWLINE, at);
    const end = newline < 0 ? block.length : newline;
    const content = block.toString('utf8', at, end);
    if (content.trim() !== '') yield entryOf(content, line, reader);
    at = end + 1;
  }
}

function entryOf(content: string, line: number, reader: ColumnReader | null): RawEntry {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    return badRow(line, `a JSON object (${placeOf(reasonOf(error))})`, content);
  }
  if (!isObject(value)) return badRow(line, 'a JSON object', content);
  if (!Object.hasOwn(value, 'end_of_export')) {
    if (reader === null) return { kind: 'row', line, raw: value, origin: null };
    const origin = originOf(reader, (name) => (Object.hasOwn(value, name) ? value[name] : undefined));
    return { kind: 'row', line, raw: reader.row(value), origin };
  }
  const { end_of_export: end, rows } = value;
  const expected = '{"end_of_export":true,"rows":N}, or a row without the member end_of_export';
  if (end !== true || typeof rows !== 'number' || !Number.isInteger(rows) || rows < 0)
    return badFile(line, expected, content);
  return { kind: 'trailer', line, rows };
}

function placeOf(reason: string): string {
  const [, position] = / at position (\d+)/.exec(reason) ?? [];
  if (position !== undefined) return `not valid JSON at character ${Number(position) + 1}`;
  const [, found] = /^Unexpected token '([\s\S]+?)', /.exec(reason) ?? [];
  return `not valid JSON: ${found === undefined ? 'it ends too early' : `unexpected ${JSON.stringify(found)}`}`;
}
