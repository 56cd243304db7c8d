/**
 * Segments of the local log that are made from the copy: the snapshot of a new generation, and what is damaged here. The
 * copy has the entries byte for byte, so what is made of them joins its neighbours.
 */
import { renameSync } from 'node:fs';
import { grouped } from '../counted.ts';
import type { Commit } from '../log/format.ts';
import { isBeginning, newestCommits } from '../log/log-reader.ts';
import { LogWriter } from '../log/log-writer.ts';
import { draftOf, EntryReader, listSegments, type Segment, segmentPath, tidyLog } from '../log/segment.ts';
import { failed } from '../refused.ts';
import { type DataFolder, syncFolder } from '../store/folder.ts';
import { isLogError } from '../store/log-errors.ts';
import { type LogMark, readLogMarkOf } from '../store/log-mark.ts';
import { VERSION } from '../version.ts';
import { commitsIn, entriesIn, findLog } from './copied-log.ts';
import { EntryChain } from './entries.ts';
import type { LogObject } from './names.ts';
import type { Place } from './place.ts';

/** The first and the last entry, by their numbers. */
interface Range {
  readonly first: number;
  /** Infinite: all that the copy has. */
  readonly last: number;
}

export interface DraftSegment {
  readonly path: string;
  readonly first: Commit | null;
  readonly last: Commit | null;
}

/** Writes a segment into the folder for drafts, durably. @throws Unreachable, LogDamage, LogFailure */
export async function draftSegment(
  place: Place,
  objects: readonly LogObject[],
  log: string,
  { first, last: end }: Range,
): Promise<DraftSegment> {
  tidyLog(log);
  const folder = draftOf(log);
  const options = { folder, program: VERSION, segmentBytes: Number.POSITIVE_INFINITY };
  const draft = new LogWriter(options, { last: { entry: first - 1, id: '' }, segment: null });
  const ends: Commit[] = [];
  const begin = Math.max(
    0,
    objects.findLastIndex((object) => object.first <= first),
  );
  let number = objects[begin]?.first ?? first;
  const chain = new EntryChain(begin > 0 ? undefined : null);
  try {
    for await (const { frame, commit } of entriesIn(place, objects.slice(begin), () => {}, chain)) {
      if (number > end) break;
      if (number >= first) draft.adopt(frame.bytes, commit);
      if (commit === null) continue;
      if (number >= first) ends.splice(1, 1, commit);
      number = commit.entry + 1;
    }
    draft.closeDurably();
  } catch (error) {
    draft.close();
    throw error;
  }
  return { path: segmentPath(folder, first), first: ends[0] ?? null, last: ends.at(-1) ?? null };
}

/**
 * Makes damaged and missing parts of the local log anew from the copy; a crash leaves each as it was, or made anew.
 * @returns the files that were made anew
 * @throws Refused `failed` if the copy lacks the newest entry that is known here; Unreachable, LogDamage, LogFailure
 */
export async function healLog(place: Place, folder: DataFolder): Promise<string[]> {
  const { log } = folder;
  const { objects, newest } = await requireNewest(place, folder);
  const healed: string[] = [];
  let before: Commit | null = null;
  for (const { first, last, segment } of rangesOf(log, objects[0]?.first ?? 1)) {
    const needed = Math.max(0, ...(Number.isFinite(last) ? [last] : newest.map(({ entry }) => entry)));
    let found = segment === null ? MISSING : read(segment);
    const isEmpty = found.first === null && needed < first;
    if (!found.isWhole || !(isEmpty || (joins(before, found.first) && reaches(found, needed)))) {
      const draft = await draftSegment(place, objects, log, { first, last });
      if (!joins(before, draft.first) || !reaches(draft, needed))
        throw failed(`the copy lacks entries of ${segment?.path ?? log} that are damaged or missing.`);
      const path =
        segment?.path ?? segmentPath(log, first).replace('.zst', first > 1 ? '-snapshot.zst' : '.zst');
      renameSync(draft.path, path);
      syncFolder(log);
      healed.push(path);
      found = { ...draft, isWhole: true };
    }
    before = found.last ?? before;
  }
  tidyLog(log);
  return healed;
}

/** @throws Refused `failed` if the copy lacks the newest entry that is known here; Unreachable, LogDamage */
export async function requireNewest(
  place: Place,
  folder: DataFolder,
): Promise<{ readonly objects: readonly LogObject[]; readonly newest: readonly LogMark[] }> {
  const { objects } = await findLog(place);
  const newest = newestKnown(folder);
  for (const mark of newest)
    if (!(await hasEntry(place, objects, mark)))
      throw failed(`the copy lacks entry ${grouped(mark.entry)}, which this machine has.`);
  return { objects, newest };
}

/** The newest entries that this machine is known to have had. */
function newestKnown({ log, detections }: DataFolder): LogMark[] {
  const all = { before: Number.POSITIVE_INFINITY, limit: 1, segmentsMax: 2 };
  const mark = readLogMarkOf(detections);
  return [...newestCommits(log, all, () => true).commits, ...(mark === null ? [] : [mark])];
}

/** Whether a copy has an entry. @throws Unreachable, LogDamage */
export async function hasEntry(
  place: Place,
  objects: readonly LogObject[],
  { entry, id }: LogMark,
): Promise<boolean> {
  const object = objects.findLast(({ first }) => first <= entry);
  return object !== undefined && (await commitsIn(place, object.name)).some((commit) => commit.id === id);
}

/** What each segment should have, and what lacks before the first. */
function rangesOf(log: string, begin: number): readonly (Range & { readonly segment: Segment | null })[] {
  const segments = listSegments(log);
  const first = segments[0]?.firstEntry ?? Number.POSITIVE_INFINITY;
  const ranges = segments.map((segment, index) => ({
    first: segment.firstEntry,
    last: (segments[index + 1]?.firstEntry ?? Number.POSITIVE_INFINITY) - 1,
    segment,
  }));
  return begin < first ? [{ first: begin, last: first - 1, segment: null }, ...ranges] : ranges;
}

interface Found {
  readonly first: Commit | null;
  readonly last: Commit | null;
  /** Whether nothing in it is damaged. */
  readonly isWhole: boolean;
}

const MISSING: Found = { first: null, last: null, isWhole: false };

function read(segment: Segment): Found {
  let first: Commit | null = null;
  try {
    using reader = new EntryReader(segment);
    while (reader.next(reader.last ?? undefined) !== null) first ??= reader.last;
    // A torn end is no damage.
    const isWhole = reader.isWhole || reader.commitsBehind().next().done === true;
    return { first, last: reader.last, isWhole };
  } catch (error) {
    if (!isLogError(error)) throw error;
    return MISSING;
  }
}

const reaches = ({ last }: Pick<Found, 'last'>, needed: number) => (last?.entry ?? 0) >= needed;

/** Whether an entry follows another; null: it is the first of the log. */
function joins(before: Commit | null, next: Commit | null): boolean {
  if (next === null) return false;
  return before === null ? isBeginning(next) : next.after === before.id;
}
