/**
 * A copy as NDJSON: each version that is read is appended as a line.
 *
 * A file beside it stores the position and the length of the copy at that position. What a crash left after that length
 * is cut off before pull continues, so no line is there twice.
 */
import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import type { Readable } from 'node:stream';
import { type Static, Type } from '@sinclair/typebox';
import { counted, grouped } from '../counted.ts';
import { Refused } from '../refused.ts';
import { writeWhole } from '../store/folder.ts';
import { takeLock } from '../store/locks.ts';
import { parseJson } from './api.ts';
import { bodyOf, type Copy, checkPosition, Position, readDetection, START } from './copy.ts';

/** Splits at line feeds alone: JSON may contain U+2028 and U+2029, where node:readline splits, too. */
async function* readLines(input: Readable): AsyncIterable<string> {
  let rest = '';
  for await (const text of input.setEncoding('utf8')) {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest;
}

/** The content of the file beside the copy. */
const Noted = Type.Object({ ...Position.properties, bytes: Type.Integer({ minimum: 0 }) });
type Noted = Static<typeof Noted>;

/**
 * @param isRead opens it for reading only, maybe while a pull appends to it; it may be the copy of another client
 * @throws Refused `failed` if another pull is at work on it, or it is not a copy of lines
 */
export function openLines(path: string, isRead: boolean): Copy {
  const own = isRead ? null : openOwn(path);
  let noted = readPlace(path);
  return {
    position: () => noted,
    store: (rows, position) => {
      const text = rows.map((row) => `${bodyOf(row)}\n`).join('');
      // Unlike writeSync, writeFileSync throws if a full disk takes only a part.
      if (own !== null && text !== '') writeFileSync(own.file, text, { flush: true });
      noted = { ...position, bytes: noted.bytes + Buffer.byteLength(text) };
      writePlace(path, noted);
      return rows.length;
    },
    count: () => null,
    async *rows() {
      const bytes = existsSync(placeOf(path)) ? noted.bytes : Number.POSITIVE_INFINITY;
      let number = 0;
      // A stream of no bytes would have an end before its start, which is an error.
      for await (const text of bytes === 0 ? [] : readLines(createReadStream(path, { end: bytes - 1 }))) {
        number += 1;
        if (text.trim() !== '') yield readDetection(text, `${path}, line ${number}`);
      }
    },
    [Symbol.dispose]: () => own?.open.dispose(),
  };
}

/** Checks that a file is a copy of lines before it changes anything. */
function openOwn(path: string) {
  // Of two processes that append, each would cut off the lines of the other.
  const release = takeLock(`${path}.lock`);
  if (release === null)
    throw new Refused('failed', `another pull is at work on ${path}. Stop it first, or name another file.`);
  using opening = new DisposableStack();
  opening.defer(release);
  const file = openSync(path, 'a', 0o600);
  opening.defer(() => closeSync(file));
  const noted = readPlace(path);
  const wrong = wrongIn(path, fstatSync(file).size, noted);
  if (wrong !== null) throw new Refused('failed', `${wrong}, or name another file with --into.`);
  // First: it marks the file as a copy, whatever a crash leaves in it.
  if (!existsSync(placeOf(path))) writePlace(path, noted);
  ftruncateSync(file, noted.bytes);
  return { file, open: opening.move() };
}

function wrongIn(path: string, size: number, { bytes }: Noted): string | null {
  const place = placeOf(path);
  if (size < bytes)
    return `${path} has ${counted(size, 'byte')}, but according to ${place} it had ${grouped(bytes)}: lines are missing. Remove both files to start again`;
  if (size > 0 && !existsSync(place))
    return `${path} already exists, but is not a copy of lines. Check --format`;
  return null;
}

export function placeOf(path: string): string {
  return `${path}.place`;
}

function readPlace(path: string): Noted {
  const place = placeOf(path);
  if (!existsSync(place)) return { ...START, bytes: 0 };
  return checkPosition(Noted, parseJson(readFileSync(place, 'utf8')), place);
}

function writePlace(path: string, noted: Noted): void {
  writeWhole(placeOf(path), JSON.stringify(noted));
}
