/** Reads a log: its entries in order, across segments, and what it has of an entry. Where it ends: torn-end.ts. */
import { LogDamage } from '../store/log-errors.ts';
import type { Commit, Mark } from './format.ts';
import { commitsIn, listSegments, SegmentReader } from './segment.ts';

/**
 * Where a database's mark is in a log. `known`: the log has this entry; `foreign`: it has another one with that number, so
 * the database belongs to another log; `before`: it starts with a later entry; `beyond`: it ends before this one.
 */
export type Place = 'known' | 'foreign' | 'before' | 'beyond';

/** @throws LogDamage if the segment that should have the entry is damaged before it */
export function placeOf(folder: string, mark: Mark): Place {
  const segments = listSegments(folder);
  const index = segments.findLastIndex(({ firstEntry }) => firstEntry <= mark.entry);
  const segment = segments[index];
  if (segment === undefined) return segments.length === 0 ? 'beyond' : 'before';
  using reader = new SegmentReader(segment);
  reader.skipTo(mark.entry);
  if (reader.last?.entry === mark.entry) return reader.last.id === mark.id ? 'known' : 'foreign';
  if (index < segments.length - 1) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
  return 'beyond';
}

/** Where an entry that was read ends. */
export type ReadTo = Readonly<{ path: string; last: Commit; end: number }>;

/**
 * The entries after one, in order, frame by frame, with every check of the log. After the end, it can be asked again
 * for entries that were added meanwhile.
 * @param after null: from the first entry of the log on
 * @param readTo where it ends, if that is known: its segment is not read from the beginning on
 * @returns `bytes`: up to the last complete entry, counted from the start of the first segment that is yielded
 * @throws LogDamage if an entry is missing, damaged or out of order; a torn end is only the end
 */
export function* entriesAfter(folder: string, after: Mark | null, readTo: ReadTo | null = null) {
  let segments = listSegments(folder);
  const from = after?.entry ?? 0;
  const first = segments.findLastIndex(({ firstEntry }) => firstEntry <= Math.max(1, from));
  const hasNext = (index: number) => {
    if (index === segments.length - 1) segments = listSegments(folder);
    return index < segments.length - 1;
  };
  let previous: Mark | null = null;
  let bytesBefore = 0;
  for (let index = Math.max(0, first); index < segments.length; index += 1) {
    const segment = segments[index];
    if (segment === undefined) return;
    const isBegun = segment.firstEntry <= from;
    using reader: SegmentReader = new SegmentReader(segment, isBegun ? undefined : previous);
    if (readTo?.path === segment.path && readTo.last.id === after?.id) reader.seek(readTo.last, readTo.end);
    else if (isBegun) reader.skipTo(from);
    // Once there is a next segment, this one is closed: read what was added since.
    const next = () => reader.next() ?? (hasNext(index) ? reader.next() : null);
    for (let part = next(); part !== null; part = next())
      yield { segment, part, bytes: bytesBefore + reader.end };
    if (!reader.isWhole && hasNext(index))
      throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
    previous = reader.last ?? previous;
    if ((reader.last?.entry ?? 0) > from) bytesBefore += reader.end;
  }
}

/** The commit lines of a log, newest first, without reading other frames. @throws LogDamage, LogFailure */
export function* commitsBackwards(folder: string): Generator<Commit, undefined> {
  for (const segment of listSegments(folder).toReversed()) yield* commitsIn(segment).toReversed();
}
