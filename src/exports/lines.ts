/** Splits bytes into blocks of complete lines, of bounded length and valid UTF-8; what is read from them. */
import { isUtf8 } from 'node:buffer';
import { grouped } from '../counted.ts';
import type { RawRow, RowError } from './check-row.ts';
import type { Origin } from './mapping.ts';

export const LINE_BYTES_MAX = 1024 * 1024;

export const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Whole lines, or one that cannot be read: with replacement characters for invalid bytes, or its beginning. */
type Lines =
  | { readonly kind: 'lines'; readonly first_line: number; readonly block: Buffer }
  | { readonly kind: 'bad'; readonly line: number; readonly expected: string; readonly text: string };

const BEGINNING_BYTES = 200;

export type RawEntry =
  /** `origin`: the row as the file has it, under a mapping. */
  | { readonly kind: 'row'; readonly line: number; readonly raw: RawRow; readonly origin: Origin | null }
  /** One row cannot be read; the rest of the file can. */
  | { readonly kind: 'bad row'; readonly line: number; readonly error: RowError; readonly text: string }
  /** The optional last line of an NDJSON file. */
  | { readonly kind: 'trailer'; readonly line: number; readonly rows: number }
  /** The rest of the file cannot be read. */
  | { readonly kind: 'bad file'; readonly line: number; readonly error: RowError };

/** @param value its beginning is kept. @param more the column that the error names, and what to do */
export function badFile(
  line: number,
  expected: string,
  value: string | null,
  more: Partial<Pick<RowError, 'column' | 'what_to_do'>> = {},
): RawEntry {
  const error = { column: null, value: value?.slice(0, 200) ?? null, expected, ...more };
  return { kind: 'bad file', line, error };
}

export function badRow(line: number, expected: string, text: string): RawEntry {
  return { kind: 'bad row', line, error: { column: null, value: text, expected }, text };
}

/** Chunks in another encoding, by its label, as UTF-8. Bytes that it does not know end as bytes that are not UTF-8. */
export async function* decodedChunks(chunks: AsyncIterable<Buffer>, encoding: string) {
  const decoder = new TextDecoder(encoding);
  const encoded = (text: string) =>
    text.includes(REPLACEMENT)
      ? Buffer.from(Buffer.from(text).toString('latin1').replaceAll(REPLACEMENT_BYTES, '\u00ff'), 'latin1')
      : Buffer.from(text);
  for await (const chunk of chunks) yield encoded(decoder.decode(chunk, { stream: true }));
  yield encoded(decoder.decode());
}

const REPLACEMENT = '\ufffd';
const REPLACEMENT_BYTES = Buffer.from(REPLACEMENT).toString('latin1');

/** Lines are counted from 1. Each block ends with a newline, except perhaps a file's last. @param text expected in errors */
export async function* wholeLines(chunks: AsyncIterable<Buffer>, text = 'UTF-8 text'): AsyncGenerator<Lines> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  let line = 1;
  let isStart = true;
  let isTooLong = false;
  for await (const read of chunks) {
    let chunk = read;
    const firstEnd = chunk.indexOf(NEWLINE);
    if (!isTooLong && restBytes + (firstEnd < 0 ? chunk.length : firstEnd) > LINE_BYTES_MAX) {
      const expected = `a line of at most ${grouped(LINE_BYTES_MAX)} bytes`;
      const beginning = Buffer.concat([...rest, chunk].map((one) => one.subarray(0, BEGINNING_BYTES)));
      yield { kind: 'bad', line, expected, text: beginning.toString('utf8', 0, BEGINNING_BYTES) };
      [rest, restBytes, isStart, isTooLong] = [[], 0, false, true];
    }
    if (isTooLong) {
      if (firstEnd < 0) continue;
      chunk = chunk.subarray(firstEnd + 1);
      line += 1;
      isTooLong = false;
    }
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end === 0) {
      rest.push(chunk);
      restBytes += chunk.length;
      continue;
    }
    let block = restBytes === 0 ? chunk.subarray(0, end) : Buffer.concat([...rest, chunk.subarray(0, end)]);
    if (isStart) block = withoutMark(block);
    isStart = false;
    line = yield* decoded(block, line, text);
    rest = end === chunk.length ? [] : [chunk.subarray(end)];
    restBytes = chunk.length - end;
  }
  if (restBytes > 0) {
    const block = Buffer.concat(rest);
    yield* decoded(isStart ? withoutMark(block) : block, line, text);
  }
}

/** @returns the number of the line after the block */
function* decoded(block: Buffer, firstLine: number, expected: string): Generator<Lines, number> {
  if (isUtf8(block)) {
    yield { kind: 'lines', first_line: firstLine, block };
    return firstLine + countNewlines(block);
  }
  let line = firstLine;
  for (let at = 0; at < block.length; line += 1) {
    const newline = block.indexOf(NEWLINE, at);
    const end = newline < 0 ? block.length : newline + 1;
    const bytes = block.subarray(at, end);
    yield isUtf8(bytes)
      ? { kind: 'lines', first_line: line, block: bytes }
      : { kind: 'bad', line, expected, text: bytes.toString('utf8') };
    at = end;
  }
  return line;
}

const withoutMark = (block: Buffer): Buffer =>
  block.subarray(0, 3).equals(BYTE_ORDER_MARK) ? block.subarray(3) : block;

function countNewlines(block: Buffer): number {
  let count = 0;
  for (let at = block.indexOf(NEWLINE); at >= 0; at = block.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}
