/** NDJSON: one JSON object per line, and optionally a last line with the number of rows. */
import { grouped } from '../../counted.ts';
import { reasonOf } from '../../refused.ts';
import type { RawRow } from '../rules/check-row.ts';
import { LINE_BYTES_MAX, NEWLINE, wholeLines } from './lines.ts';
import { badFile, badRow, type RawEntry } from './raw-rows.ts';

/** Entries come in groups: an asynchronous step for each row would cost more than the row. */
export async function* ndjsonEntries(chunks: AsyncIterable<Buffer>): AsyncGenerator<Iterable<RawEntry>> {
  for await (const block of wholeLines(chunks)) {
    switch (block.kind) {
      case 'lines':
        yield entriesOf(block.block, block.first_line);
        break;
      case 'not utf-8':
        yield [badRow(block.line, 'UTF-8 text', block.text)];
        break;
      case 'too long':
        yield [badRow(block.line, `a line of at most ${grouped(LINE_BYTES_MAX)} bytes`, block.text)];
        break;
    }
  }
}

/**
 * Each line is decoded by itself: most then need one byte per character; a block as one string needs two. Rows are parsed
 * lazily, so that each dies young: rows of a complete block survived garbage collections, which took a quarter of the time.
 */
function* entriesOf(block: Buffer, firstLine: number): Generator<RawEntry> {
  let line = firstLine;
  for (let at = 0; at < block.length; line += 1) {
    const newline = block.indexOf(NEWLINE, at);
    const end = newline < 0 ? block.length : newline;
    const content = block.toString('utf8', at, end);
    if (content.trim() !== '') yield entryOf(content, line);
    at = end + 1;
  }
}

function entryOf(content: string, line: number): RawEntry {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    return badRow(line, `a JSON object (${placeOf(reasonOf(error))})`, content);
  }
  if (!isObject(value)) return badRow(line, 'a JSON object', content);
  if (!Object.hasOwn(value, 'end_of_export')) return { kind: 'row', line, raw: value };
  const { end_of_export: end, rows } = value;
  if (end !== true || typeof rows !== 'number' || !Number.isInteger(rows) || rows < 0) {
    return badFile(
      line,
      '{"end_of_export":true,"rows":N}, or a row without the member end_of_export',
      content.slice(0, 200),
    );
  }
  return { kind: 'trailer', line, rows };
}

/** The JSON parser's reason, with the position in the line. */
function placeOf(reason: string): string {
  const [, position] = / at position (\d+)/.exec(reason) ?? [];
  if (position !== undefined) return `not valid JSON at character ${Number(position) + 1}`;
  const [, found] = /^Unexpected token '([\s\S]+?)', /.exec(reason) ?? [];
  return `not valid JSON: ${found === undefined ? 'it ends too early' : `unexpected ${JSON.stringify(found)}`}`;
}

function isObject(value: unknown): value is RawRow {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
