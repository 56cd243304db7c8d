/** Reading a log: its entries in order, across segments; where it ends; what its newest segment is worth. */

import { closeSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { syncFolder } from '../store/folder.ts';
import { type Commit, type LogKind, type Mark, SNAPSHOT } from './format.ts';
import { LogDamage, LogFailure } from './log-error.ts';
import { type EntryPart, EntryReader, listSegments, type Segment } from './segment.ts';

const PIECE_BYTES = 4 * 1024 * 1024;

/** Where a log ends. */
export interface Tail {
  /** The last whole entry; null: there is none. */
  readonly last: Commit | null;
  /** The newest segment, to which the next entry may be appended; null: there is none. */
  readonly segment: (Segment & { readonly program: string; readonly bytes: number }) | null;
  /** Files that hold no whole entry and no whole header: what a crash left of a segment that was begun. */
  readonly stumps: readonly Segment[];
  /** Whether there is more behind the last whole entry. */
  readonly isTorn: boolean;
  /**
   * Of the one entry behind it the end is intact and another part is not: a power cut that came before it was durable may
   * leave that, since a disk writes in any order; so may damage.
   */
  readonly isDoubtful: boolean;
}

/**
 * Looks where a log ends; changes nothing. Entries before the last are not looked into: whoever applies them does that.
 *
 * @param mayBeDoubtful whether the caller knows another witness of what the last entry was
 * @throws LogDamage where it is not merely torn: a whole entry stands behind what is not whole
 */
export function findTail(folder: string, kind: LogKind, mayBeDoubtful = false): Tail {
  const segments = listSegments(folder);
  const stumps: Segment[] = [];
  let open: Tail['segment'] = null;
  let isTorn = false;
  let isDoubtful = false;
  for (const segment of segments.toReversed()) {
    const reader = new EntryReader(segment, kind);
    try {
      reader.skipToEnd();
      if (!reader.isWhole) {
        const behind = reader.entriesBehind();
        const next = reader.last === null ? segment.firstEntry : reader.last.entry + 1;
        isDoubtful ||= behind.length > 0;
        const isDamage = behind.some((entry) => entry !== next) || (isDoubtful && !mayBeDoubtful);
        if (open !== null || isDamage)
          throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
        isTorn = true;
      }
      if (reader.header === null) stumps.push(segment);
      else open ??= { ...segment, program: reader.header.program, bytes: reader.end };
      if (reader.last !== null) return { last: reader.last, segment: open, stumps, isTorn, isDoubtful };
    } finally {
      reader.close();
    }
  }
  return { last: null, segment: open, stumps, isTorn, isDoubtful };
}

/**
 * Puts the whole entries of the newest segment into a new file, so that what is relied on is on the disk: after a kill
 * or a failed fsync, what the system shows of a file may not be.
 *
 * @throws LogFailure
 */
export function trustTail(folder: string, { segment, stumps }: Tail): void {
  try {
    for (const { path } of stumps) rmSync(path);
    if (segment !== null) {
      const draft = `${segment.path}.tmp`;
      copyStart(segment.path, draft, segment.bytes);
      renameSync(draft, segment.path);
      syncFolder(folder);
    }
  } catch (error) {
    throw new LogFailure('write', segment?.path ?? folder, error);
  }
}

/** In pieces: an entry of millions of rows makes a segment larger than memory. */
function copyStart(from: string, to: string, length: number): void {
  const source = openSync(from, 'r');
  const target = openSync(to, 'w', 0o600);
  try {
    const piece = Buffer.allocUnsafe(Math.min(length, PIECE_BYTES));
    for (let done = 0; done < length; ) {
      const read = readSync(source, piece, 0, Math.min(piece.length, length - done), done);
      if (read === 0) throw new Error(`it ends before byte ${grouped(length)}`);
      for (let written = 0; written < read; )
        written += writeSync(target, piece, written, read - written, done + written);
      done += read;
    }
    fsyncSync(target);
  } finally {
    closeSync(target);
    closeSync(source);
  }
}

/** How a database's mark and a log go together. */
export type Place =
  /** The log has this very entry. */
  | 'known'
  /** The log has another entry of that number: the database is of another history. */
  | 'foreign'
  /** The log was begun anew behind it. */
  | 'before'
  /** The log does not reach that far. */
  | 'beyond';

/** @throws LogDamage when the segment in which the entry should be is damaged before it */
export function placeOf(folder: string, kind: LogKind, mark: Mark): Place {
  const segments = listSegments(folder);
  const index = segments.findLastIndex(({ firstEntry }) => firstEntry <= mark.entry);
  const segment = segments[index];
  if (segment === undefined) return segments.length === 0 ? 'beyond' : 'before';
  const reader = new EntryReader(segment, kind);
  try {
    while (reader.next(reader.last ?? undefined) !== null)
      if (reader.last?.entry === mark.entry) return reader.last.id === mark.id ? 'known' : 'foreign';
    if (index < segments.length - 1) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
    return 'beyond';
  } finally {
    reader.close();
  }
}

export interface LocatedPart {
  readonly segment: Segment;
  /** Up to the last whole entry that was read, in bytes of the segments from the first one that is yielded. */
  readonly bytes: number;
  readonly part: EntryPart;
}

/**
 * The entries behind one, in order, frame by frame; every check of the log is made on the way.
 *
 * Of a log that is written meanwhile, it goes on with what was added each time that it is asked.
 *
 * @param after null: from the first entry of the log on
 * @throws LogDamage where an entry is missing, damaged or out of its order; a torn end merely ends it
 */
export function* entriesAfter(folder: string, kind: LogKind, after: Mark | null): Generator<LocatedPart> {
  let segments = listSegments(folder);
  const from = after?.entry ?? 0;
  const first = Math.max(
    0,
    segments.findLastIndex(({ firstEntry }) => firstEntry <= Math.max(1, from)),
  );
  const hasNext = (index: number) => {
    if (index === segments.length - 1) segments = listSegments(folder);
    return index < segments.length - 1;
  };
  let previous: Commit | null | undefined;
  let bytesBefore = 0;
  for (let index = first; index < segments.length; index += 1) {
    const segment = segments[index];
    if (segment === undefined) return;
    const reader = new EntryReader(segment, kind);
    let isYielded = false;
    const next = () => {
      const part = reader.next(previous);
      // It was closed once there is a next one: what was added since it was read is whole.
      return part ?? (hasNext(index) ? reader.next(previous) : null);
    };
    try {
      for (let part = next(); part !== null; part = next()) {
        const entry =
          part.kind === 'commit' ? part.commit.entry : (previous?.entry ?? segment.firstEntry - 1) + 1;
        if (part.kind === 'commit' && index === 0 && previous === undefined) requireBeginning(part.commit);
        isYielded ||= entry > from;
        if (isYielded) yield { segment, part, bytes: bytesBefore + reader.end };
        if (part.kind === 'commit') previous = part.commit;
      }
      if (!reader.isWhole && hasNext(index))
        throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
      if (isYielded) bytesBefore += reader.end;
    } finally {
      reader.close();
    }
  }
}

/**
 * A log begins with its first entry, or with one that holds all that there was (`rebuild --log`).
 *
 * @throws LogDamage when this entry is neither
 */
export function requireBeginning({ entry, after, operation }: Commit): void {
  if ((entry === 1 && after === null) || operation.kind === SNAPSHOT) return;
  throw new LogDamage(`it begins with entry ${grouped(entry)}; earlier entries are missing`);
}

/**
 * The first entry of a log that was begun anew, where a database has applied all that came before: it holds what that
 * database holds. Null where the log does not begin so.
 */
export function snapshotAfter(folder: string, kind: LogKind, mark: Mark): Commit | null {
  const [first] = listSegments(folder);
  if (first === undefined || first.firstEntry !== mark.entry + 1) return null;
  const reader = new EntryReader(first, kind);
  try {
    for (let part = reader.next(undefined); part !== null; part = reader.next(undefined)) {
      if (part.kind !== 'commit') continue;
      const { commit } = part;
      return commit.operation.kind === SNAPSHOT && commit.after === mark.id ? commit : null;
    }
    return null;
  } finally {
    reader.close();
  }
}
