/** Splits bytes into blocks of complete lines, of bounded length and valid UTF-8. */
import { isUtf8 } from 'node:buffer';

export const LINE_BYTES_MAX = 1024 * 1024;

export const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export type Lines =
  | { readonly kind: 'lines'; readonly first_line: number; readonly block: Buffer }
  /** A line that is not UTF-8; `text` has replacement characters for the invalid bytes. */
  | { readonly kind: 'not utf-8'; readonly line: number; readonly text: string }
  /** A line over the limit; `text` is its beginning. */
  | { readonly kind: 'too long'; readonly line: number; readonly text: string };

const BEGINNING_BYTES = 200;

/** Lines are counted from 1. Each block ends with a newline, except perhaps the last one of a file. */
export async function* wholeLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Lines> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  let line = 1;
  let isStart = true;
  let isTooLong = false;
  for await (const read of chunks) {
    let chunk = read;
    const firstEnd = chunk.indexOf(NEWLINE);
    if (!isTooLong && restBytes + (firstEnd < 0 ? chunk.length : firstEnd) > LINE_BYTES_MAX) {
      yield { kind: 'too long', line, text: beginningOf([...rest, chunk]) };
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
    line = yield* decoded(block, line);
    rest = end === chunk.length ? [] : [chunk.subarray(end)];
    restBytes = chunk.length - end;
  }
  if (restBytes > 0) {
    const block = Buffer.concat(rest);
    yield* decoded(isStart ? withoutMark(block) : block, line);
  }
}

/** @returns the number of the line after the block */
function* decoded(block: Buffer, firstLine: number): Generator<Lines, number> {
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
      : { kind: 'not utf-8', line, text: bytes.toString('utf8') };
    at = end;
  }
  return line;
}

function beginningOf(chunks: readonly Buffer[]): string {
  const bytes = Buffer.concat(chunks.map((chunk) => chunk.subarray(0, BEGINNING_BYTES)));
  return bytes.toString('utf8', 0, BEGINNING_BYTES);
}

function withoutMark(block: Buffer): Buffer {
  return block.subarray(0, 3).equals(BYTE_ORDER_MARK) ? block.subarray(3) : block;
}

function countNewlines(block: Buffer): number {
  let count = 0;
  for (let at = block.indexOf(NEWLINE); at >= 0; at = block.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}
