/**
 * A copy as NDJSON or CSV: each version that is read is appended as a line.
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
import { type Detection, parseJson } from './api.ts';
import { bodyOf, type Copy, checkPosition, Position, readDetection } from './copy.ts';

/** How detections become lines, and lines detections. */
export interface LineForm {
  /** Text before the first row. */
  readonly head: string;
  readonly line: (detection: Detection) => string;
  /** Each detection as JSON text. */
  readonly read: (input: Readable) => AsyncIterable<string>;
}

export const NDJSON: LineForm = {
  head: '',
  line: bodyOf,
  read: readLines,
};

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
const Noted = Type.Object({
  ...Position.properties,
  bytes: Type.Integer({ minimum: 0 }),
  head: Type.String(),
});
type Noted = Static<typeof Noted>;

/**
 * @param isRead opens it for reading only, maybe while a pull appends to it; it may be the copy of another client
 * @throws Refused `failed` if another pull is at work on it, or it is not a copy in this form
 */
export function openLines(path: string, form: LineForm, isRead: boolean): Copy {
  const { head, line, read } = form;
  const own = isRead ? null : openOwn(path, form);
  let noted = readPlace(path, form);
  return {
    position: () => noted,
    store: (rows, position) => {
      const text = `${noted.bytes === 0 ? head : ''}${rows.map((row) => `${line(row)}\n`).join('')}`;
      // Unlike writeSync, writeFileSync throws if a full disk takes only a part.
      if (own !== null && text !== '') writeFileSync(own.file, text, { flush: true });
      noted = { ...position, head, bytes: noted.bytes + Buffer.byteLength(text) };
      writePlace(path, noted);
      return rows.length;
    },
    count: () => null,
    async *rows() {
      const bytes = existsSync(placeOf(path)) ? noted.bytes : Number.POSITIVE_INFINITY;
      let number = 0;
      // A stream of no bytes would have an end before its start, which is an error.
      for await (const text of bytes === 0 ? [] : read(createReadStream(path, { end: bytes - 1 }))) {
        number += 1;
        if (text.trim() !== '') yield readDetection(text, `${path}, line ${number}`);
      }
    },
    [Symbol.dispose]: () => own?.open.dispose(),
  };
}

/** Checks that a file is a copy in this form before it changes anything. */
function openOwn(path: string, form: LineForm) {
  // Of two processes that append, each would cut off the lines of the other.
  const release = takeLock(`${path}.lock`);
  if (release === null)
    throw new Refused('failed', `another pull is at work on ${path}. Stop it first, or name another file.`);
  using opening = new DisposableStack();
  opening.defer(release);
  const file = openSync(path, 'a', 0o600);
  opening.defer(() => closeSync(file));
  const noted = readPlace(path, form);
  const wrong = wrongIn(path, fstatSync(file).size, noted, form);
  if (wrong !== null) throw new Refused('failed', `${wrong}, or name another file with --into.`);
  // First: it marks the file as a copy, whatever a crash leaves in it.
  if (!existsSync(placeOf(path))) writePlace(path, noted);
  ftruncateSync(file, noted.bytes);
  return { file, open: opening.move() };
}

function wrongIn(path: string, size: number, { bytes, head }: Noted, form: LineForm): string | null {
  const place = placeOf(path);
  if (size < bytes)
    return `${path} has ${counted(size, 'byte')}, but according to ${place} it had ${grouped(bytes)}: lines are missing. Remove both files to start again`;
  if (size > 0 && !existsSync(place))
    return `${path} already exists, but is not a copy of lines. Check --format`;
  if (head !== form.head)
    return `${path} was begun in another format, or with other columns than the service has now. Check --format`;
  return null;
}

export function placeOf(path: string): string {
  return `${path}.place`;
}

function readPlace(path: string, { head }: LineForm): Noted {
  const place = placeOf(path);
  if (!existsSync(place)) return { bytes: 0, head, cursor: null, walk: null };
  return checkPosition(Noted, parseJson(readFileSync(place, 'utf8')), place);
}

function writePlace(path: string, noted: Noted): void {
  writeWhole(placeOf(path), JSON.stringify(noted));
}
