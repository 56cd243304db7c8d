/**
 * Continues the log of a backup with that of the data folder, for a restore. The log of the data folder may be damaged, or
 * of another history: only what follows entry by entry on the end of the backup is taken.
 */
import { copyFileSync, existsSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Commit, Mark } from '../history/format.ts';
import { LogDamage } from '../history/log-error.ts';
import { EntryReader, listSegments, type Segment } from '../history/segment.ts';
import { syncFile } from '../store/folder.ts';
import { append, endOf } from './log-copy.ts';

/** How far a log continues a copy. */
export interface Continued {
  /** The last entry of the continued copy; null: it has none. */
  readonly last: Mark | null;
  /** What follows in the log: perhaps an incomplete entry, as a crash leaves one; or damage, with more entries behind it. */
  readonly rest: 'nothing' | 'torn' | 'damaged';
}

/**
 * Continues a copy with the log that it was taken from, up to the first damage behind the end of the copy. Before that,
 * the copy has what is damaged in the log.
 *
 * @param end the last entry of the copy; @returns null if nothing shows that the log contains it: nothing was changed
 */
export function continueLog(from: string, to: string, end: Mark): Continued | null {
  const segments = listSegments(from);
  const first = segments.findLastIndex(({ firstEntry }) => firstEntry <= end.entry);
  const drafts: string[] = [];
  let read: Read | null = null;
  try {
    for (const segment of first < 0 ? [] : segments.slice(first)) {
      const path = join(to, basename(segment.path));
      const draft = { path: `${path}.tmp`, firstEntry: segment.firstEntry };
      drafts.push(draft.path);
      const before: Read | null = read;
      read =
        before === null
          ? continueSegment({ segment, draft, copy: { ...draft, path }, end })
          : nextSegment(segment, draft, before);
      if (read === null) return null;
      // Without an entry, it would be taken for the end of the log.
      if (read.last === before?.last) rmSync(drafts.pop() ?? '', { force: true });
      if (read.rest === 'damaged') break;
    }
    for (const path of drafts.splice(0)) renameSync(path, path.slice(0, -'.tmp'.length));
    return read;
  } catch (error) {
    if (error instanceof LogDamage) return null;
    throw error;
  } finally {
    for (const path of drafts) rmSync(path, { force: true });
  }
}

interface Read extends Continued {
  readonly last: Commit;
}

interface Continuation {
  /** Of the log that continues the copy: the one that should have `end`. */
  readonly segment: Segment;
  readonly draft: Segment;
  /** The copy's part of this segment; it may not exist. */
  readonly copy: Segment;
  /** The last entry of the copy. */
  readonly end: Mark;
}

/** @returns null if nothing shows that the segment continues the copy */
function continueSegment({ segment, draft, copy, end }: Continuation): Read | null {
  const total = statSync(segment.path).size;
  const found = placeIn(segment, end);
  const appended = (begin: number, at: number) => {
    const check = () => readDraft(draft, undefined);
    return append({ from: segment.path, to: draft.path, begin, at, end: total, check });
  };
  const readThrough = ({ last, rest }: ReturnType<typeof readDraft>): Read | null =>
    last === undefined ? null : { last, rest };
  if (found?.isIntact === true) return readThrough(appended(0, 0));
  if (!existsSync(copy.path)) return null;
  const own = endOf(copy, end);
  const begin = found?.end ?? own;
  if (begin > total) return null;
  copyFileSync(copy.path, draft.path);
  truncateSync(draft.path, own);
  const read = readThrough(appended(begin, own));
  // Where not even its commit line is left, an entry that follows on it shows that it was there.
  return found === null && read?.last.id === end.id ? null : read;
}

/** A segment behind the one that has the end of the copy. @param before what was read before it */
function nextSegment(segment: Segment, draft: Segment, before: Read): Read {
  if (segment.firstEntry !== before.last.entry + 1) return { last: before.last, rest: 'damaged' };
  const { last = before.last, rest } = append({
    from: segment.path,
    to: draft.path,
    begin: 0,
    end: statSync(segment.path).size,
    check: () => readDraft(draft, before.last),
  });
  return { last, rest: last === before.last && rest === 'nothing' ? before.rest : rest };
}

/**
 * Where an entry ends in a segment that may be damaged.
 *
 * @returns null: it is not there; `isIntact`: whether everything before it is
 */
function placeIn(segment: Segment, { id }: Mark): { end: number; isIntact: boolean } | null {
  using reader = new EntryReader(segment);
  try {
    while (reader.next(reader.last ?? undefined) !== null)
      if (reader.last?.id === id) return { end: reader.end, isIntact: true };
  } catch (error) {
    if (!(error instanceof LogDamage)) throw error;
  }
  for (const { commit, end } of reader.commitsBehind()) if (commit.id === id) return { end, isIntact: false };
  return null;
}

/** Reads a draft up to the first damage, and cuts off the rest. */
function readDraft(
  draft: Segment,
  before: Commit | undefined,
): { readonly last: Commit | undefined; readonly rest: Continued['rest'] } {
  let [last, end] = [before, 0];
  let rest: Continued['rest'] = 'damaged';
  try {
    using reader = new EntryReader(draft);
    for (let part = reader.next(last); part !== null; part = reader.next(last)) {
      if (part.kind !== 'commit') continue;
      last = part.commit;
      end = part.end;
    }
    if (reader.isWhole) rest = 'nothing';
    else if (reader.commitsBehind().next().done === true) rest = 'torn';
  } catch (error) {
    if (!(error instanceof LogDamage)) throw error;
  }
  if (rest !== 'nothing') {
    truncateSync(draft.path, end);
    syncFile(draft.path);
  }
  return { last, rest };
}
