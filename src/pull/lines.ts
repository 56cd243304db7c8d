/**
 * A copy as NDJSON or CSV: every version that is read is appended as a line.
 *
 * A file beside it stores the position, with the length of the copy at that position: anything that a crash left after
 * that length is cut off before reading continues, so no line is there twice.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { counted, grouped } from '../counted.ts';
import { Refused } from '../refused.ts';
import { type Release, takeLock } from '../store/locks.ts';
import type { Detection } from './answers.ts';
import { bodyOf, type Copy } from './copy.ts';

const Noted = Type.Object({
  bytes: Type.Integer({ minimum: 0 }),
  cursor: Type.Union([Type.String(), Type.Null()]),
  walk: Type.Union([Type.String(), Type.Null()]),
  /** Missing where an earlier version wrote it. */
  selection: Type.Optional(Type.String()),
});

type Noted = Static<typeof Noted>;

/** How a detection becomes a line. */
export interface LineForm {
  /** The first line of the file; null: none. */
  readonly head: string | null;
  readonly line: (detection: Detection) => string;
}

export const NDJSON: LineForm = { head: null, line: bodyOf };

/** @throws Refused `failed` when another pull is at work on it, or it is no copy */
export function openLines(path: string, form: LineForm = NDJSON): Copy {
  // SQLite has its own lock; two processes that append lines would each cut off the other's.
  const release = takeLock(`${path}.lock`);
  if (release === null)
    throw new Refused('failed', `another pull is at work on ${path}. Stop it first, or name another file.`);
  try {
    return openAlone(path, form, release);
  } catch (error) {
    release();
    throw error;
  }
}

function openAlone(path: string, { head, line }: LineForm, release: Release): Copy {
  const placePath = `${path}.place`;
  let noted = readPlace(placePath);
  const file = openSync(path, 'a', 0o600);
  const { size } = fstatSync(file);
  if (size < noted.bytes || (size > 0 && !existsSync(placePath))) {
    closeSync(file);
    throw new Refused(
      'failed',
      size < noted.bytes
        ? `${path} has ${counted(size, 'byte')}, but according to ${placePath} it had ${grouped(noted.bytes)}: lines are missing. Remove both files to start again, or name another file with --into.`
        : `${path} already exists, but is not a copy: ${placePath} is missing. Name another file with --into.`,
    );
  }
  if (noted.bytes > 0 && head !== null && !beginsWith(path, `${head}\n`)) {
    closeSync(file);
    throw new Refused(
      'failed',
      `${path} does not begin with the columns that the service has now. Name another file with --into.`,
    );
  }
  // From here on the file is known as a copy, whatever a crash leaves in it.
  if (!existsSync(placePath)) writePlace(placePath, noted);
  ftruncateSync(file, noted.bytes);
  return {
    cursor: () => noted.cursor,
    walk: () => noted.walk,
    selection: () => noted.selection ?? null,
    select: (streams) => {
      noted = { ...noted, selection: streams };
      writePlace(placePath, noted);
    },
    store: (rows, place) => {
      const lines = rows.map((row) => `${line(row)}\n`);
      const text = [...(noted.bytes === 0 && head !== null ? [`${head}\n`] : []), ...lines].join('');
      // Unlike writeSync, it throws when a full disk takes only the beginning.
      writeFileSync(file, text);
      fsyncSync(file);
      noted = {
        ...noted,
        bytes: noted.bytes + Buffer.byteLength(text),
        cursor: 'cursor' in place ? place.cursor : noted.cursor,
        walk: 'walk' in place ? place.walk : null,
      };
      writePlace(placePath, noted);
      return rows.length;
    },
    count: () => null,
    close() {
      closeSync(file);
      release();
    },
  };
}

function beginsWith(path: string, head: string): boolean {
  const expected = Buffer.from(head);
  const file = openSync(path, 'r');
  try {
    const found = Buffer.alloc(expected.length);
    return readSync(file, found) === found.length && found.equals(expected);
  } finally {
    closeSync(file);
  }
}

function readPlace(path: string): Noted {
  if (!existsSync(path)) return { bytes: 0, cursor: null, walk: null };
  return placeOf(readFileSync(path, 'utf8'), path);
}

/** @throws Refused `failed` when the text is no note of a copy's place */
export function placeOf(text: string, path: string): Noted {
  const noted: unknown = JSON.parse(text);
  if (Value.Check(Noted, noted)) return noted;
  throw new Refused(
    'failed',
    `${path} does not contain the position of a copy. Name another file with --into to start a new copy.`,
  );
}

function writePlace(path: string, place: Noted): void {
  const draft = `${path}.tmp`;
  const file = openSync(draft, 'w', 0o600);
  try {
    writeFileSync(file, JSON.stringify(place));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}
