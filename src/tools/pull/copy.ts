/**
 * A client's own copy of the detections. Rows and position are stored together, so no crash separates them.
 *
 * A copy is an SQLite database, whose tables other programs may read, or NDJSON, to which each version is appended as a
 * line. A file beside the lines stores the position and the length of the copy at that position. What a crash left
 * after that length is cut off before pull continues, so no line is there twice.
 */
import { createReadStream, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { counted, grouped } from '../../counted.ts';
import { errorCode, failed, isErrorCode, misused, Refused, reasonOf } from '../../refused.ts';
import { openDatabase, writing } from '../../store/database.ts';
import { isDamage, isForbidden } from '../../store/database-errors.ts';
import { writeWhole } from '../../store/folder.ts';
import { takeLock } from '../../store/locks.ts';
import { readLines } from '../../text-lines.ts';
import { ContentType, Detection, parseAs, parseJson, TextOrNull } from './api.ts';

/** The members of a detection that name its stream. */
export const Stream = Type.Object({ subscription_id: Type.Integer(), content_type: ContentType });
export type Stream = Static<typeof Stream>;

/** A period of one stream; both days are included. */
export const Step = Type.Object({ ...Stream.properties, from: Type.String(), to: Type.String() });
export type Step = Static<typeof Step>;

const Position = Type.Object({
  /** The cursor of the change stream; null before its first page. */
  cursor: TextOrNull,
  /** The rest of a full copy: its periods, the current one first, and the cursor of that period's next page. */
  walk: Type.Union([Type.Object({ steps: Type.Array(Step), cursor: TextOrNull }), Type.Null()]),
  /**
   * A full copy: the streams whose periods it has, or will have after `walk`, such as `7001 text`. Null: it began
   * otherwise.
   */
  streams: Type.Union([Type.Array(Type.String()), Type.Null()]),
});
export type Position = Static<typeof Position>;

export interface Copy extends Disposable {
  position(): Position;
  /** Stores the rows of a page and the position after it, or neither. @returns how many rows were new or newer */
  store(rows: readonly Detection[], position: Position): number;
  /** Detections; null if the form of the copy does not tell. */
  count(): number | null;
  /** Every row before the cursor, maybe some after it. A copy of lines may return a detection several times. */
  rows(): AsyncIterable<Detection>;
}

/** The JSON of a detection without `event`, which belongs to the stream. */
const bodyOf = ({ event: _, ...detection }: Detection) => JSON.stringify(detection);

/** @param place in the copy, for the message; @throws Refused `failed` for text that is not a detection */
function readDetection(text: string, place: string): Detection {
  const row = parseAs(Detection, text);
  if (row !== null) return row;
  throw failed(`${place}: expected a detection as the service returns it, with id and version`);
}

const SQL = `
CREATE TABLE detections (id TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL) STRICT;

-- One row: the cursor, null before the first page of the stream; the rest of the position as JSON.
CREATE TABLE state (cursor TEXT, notes TEXT NOT NULL) STRICT;
INSERT INTO state (cursor, notes) VALUES (NULL, '{"walk":null,"streams":null}');
`;
/** SQLite's number for a copy. */
const SCHEMA = { application_id: 0x77770014, sql: SQL, synchronous: 'FULL' } as const;

/** The stream and the periods deliver a detection in any order, maybe repeatedly: the higher version stays. */
const UPSERT_DETECTION = `
  INSERT INTO detections (id, version, body) VALUES (?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body
  WHERE excluded.version > detections.version`;
const SELECT_ROWS = 'SELECT id, body FROM detections WHERE id > ? ORDER BY id LIMIT ?';
/** Rows of one read transaction: a long one would keep the WAL of a pull that follows from being reset. */
const BATCH_ROWS = 1000;

/** @param isRead opens it for reading only, maybe while a pull updates it; @throws what {@link refusedIn} explains */
export function openSqliteCopy(path: string, isRead: boolean): Copy {
  if (!isRead && existsSync(placeOf(path)))
    throw misused(`${path} is a copy of lines. Name its format with --format, or another file.`);
  const db = isRead ? openDatabase(path, 'inspect') : openDatabase(path, 'write', SCHEMA);
  return {
    position() {
      const row = db.prepare<[], { cursor: unknown; notes: string }>('SELECT cursor, notes FROM state').get();
      return checkPosition(Position, { ...Object(parseJson(row?.notes ?? '')), cursor: row?.cursor }, path);
    },
    store: (rows, { cursor, ...notes }) =>
      writing(db, () => {
        const upsert = db.prepare(UPSERT_DETECTION);
        const stored = rows.filter((row) => upsert.run(row.id, row.version, bodyOf(row)).changes > 0);
        db.prepare('UPDATE state SET cursor = ?, notes = ?').run(cursor, JSON.stringify(notes));
        return stored.length;
      }),
    count: () => db.prepare<[], number>('SELECT count(*) FROM detections').pluck().get() ?? 0,
    async *rows() {
      const select = db.prepare<[string, number], { id: string; body: string }>(SELECT_ROWS);
      for (let after = ''; ; ) {
        const rows = select.all(after, BATCH_ROWS);
        for (const { id, body } of rows) yield readDetection(body, `${path}, ${id}`);
        if (rows.length < BATCH_ROWS) return;
        after = rows.at(-1)?.id ?? '';
      }
    },
    [Symbol.dispose]: () => void db.close(),
  };
}

/** Errors that the file of a copy causes, in words for its owner: it is no file of an appliance, with backups. */
export function refusedIn(path: string, isRead: boolean, error: unknown): unknown {
  const refused = (detail: string) => new Refused('failed', `${path} ${detail}`, { cause: error });
  const another = 'Name another file with --into';
  const isForeign = error instanceof Refused && error.code === 'configuration';
  if (isForeign || isErrorCode(error, 'SQLITE_NOTADB', 'SQLITE_ERROR')) {
    const lines =
      'To compare the copy of another client, give it as NDJSON, one detection per line: --format ndjson';
    return refused(`was not made by this version of pull. ${isRead ? lines : `${another}.`}`);
  }
  if (isForbidden(error) || isErrorCode(error, 'EROFS')) {
    const reason = errorCode(error).startsWith('SQLITE') ? 'permission denied' : reasonOf(error, path);
    return refused(`cannot be opened: ${reason}. ${another}.`);
  }
  return isDamage(error)
    ? refused(`is damaged. ${another}, or delete it with its -wal and -shm to start again.`)
    : error;
}

/** @param path for the message; @throws Refused `failed` for a value that is not a position */
function checkPosition<Form extends TSchema>(form: Form, value: unknown, path: string): Static<Form> {
  if (Value.Check(form, value)) return value;
  const found = `${path} does not contain the position of a copy.`;
  throw failed(`${found} Name another file with --into to start a new copy.`);
}

/** The content of the file beside the copy. */
const Noted = Type.Object({ ...Position.properties, bytes: Type.Integer({ minimum: 0 }) });
type Noted = Static<typeof Noted>;

export const placeOf = (path: string) => `${path}.place`;

/**
 * @param isRead opens it for reading only, maybe while a pull appends to it; it may be the copy of another client
 * @throws Refused `failed` if another pull is at work on it, or it is not a copy of lines
 */
export function openLines(path: string, isRead: boolean): Copy {
  const release = isRead ? () => {} : lockLines(path);
  let noted = readPlace(path);
  return {
    position: () => noted,
    store: (rows, position) => {
      const text = rows.map((row) => `${bodyOf(row)}\n`).join('');
      // Unlike writeSync, writeFileSync throws if a full disk takes only a part.
      if (text !== '') writeFileSync(path, text, { flag: 'a', flush: true });
      noted = { ...position, bytes: noted.bytes + Buffer.byteLength(text) };
      writeWhole(placeOf(path), JSON.stringify(noted));
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
    [Symbol.dispose]: release,
  };
}

/** Checks that a file is a copy of lines before it changes anything. @returns gives up the lock on it */
function lockLines(path: string) {
  // Two processes that append would each cut off the lines of the other.
  const release = takeOwnLock(`${path}.lock`);
  if (release === null)
    throw failed(`another pull is at work on ${path}. Stop it first, or name another file.`);
  writeFileSync(path, '', { flag: 'a', mode: 0o600 });
  const noted = readPlace(path);
  const place = placeOf(path);
  const { size } = statSync(path);
  const another = 'or name another file with --into.';
  if (size < noted.bytes)
    throw failed(
      `${path} has ${counted(size, 'byte')}, but according to ${place} it had ${grouped(noted.bytes)}: lines are missing. Remove both files to start again, ${another}`,
    );
  if (!existsSync(place)) {
    if (size > 0)
      throw failed(`${path} already exists, but is not a copy of lines. Check --format, ${another}`);
    // First: it marks the file as a copy, whatever a crash leaves in it.
    writeWhole(place, JSON.stringify(noted));
  }
  truncateSync(path, noted.bytes);
  return release;
}

/** @throws Refused `failed` that names the lock, if it cannot be taken at all */
function takeOwnLock(path: string) {
  try {
    return takeLock(path);
  } catch (error) {
    throw refusedIn(path, false, error);
  }
}

function readPlace(path: string): Noted {
  const place = placeOf(path);
  if (!existsSync(place)) return { cursor: null, walk: null, streams: null, bytes: 0 };
  return checkPosition(Noted, parseJson(readFileSync(place, 'utf8')), place);
}
