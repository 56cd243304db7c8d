/** Reads the log of this machine for a copy: checked, in contents for its objects. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Commit, Mark } from '../log/format.ts';
import { type EntryPart, EntryReader, listSegments, type Segment } from '../log/segment.ts';
import { LogDamage } from '../store/log-errors.ts';

/** Frames between two turns of the event loop. */
const FRAMES_A_TURN = 8;

export type Batch =
  /** Whole entries, for one part. */
  | { readonly kind: 'entries'; readonly first: Mark; readonly last: Mark; readonly content: Buffer }
  /** A piece of an entry that is too large for one part. */
  | { readonly kind: 'piece'; readonly content: Buffer }
  /** That entry is complete with its pieces. */
  | { readonly kind: 'large'; readonly entry: Mark }
  /** All of a closed segment came. */
  | { readonly kind: 'closed'; readonly segment: Segment; readonly last: Mark };

/**
 * The entries of a log after one, up to another.
 * @param after which the log has; null: from its beginning on
 * @throws LogDamage, LogFailure
 */
export async function* batchesAfter(
  log: string,
  after: Mark | null,
  end: Mark,
  partBytes: number,
): AsyncGenerator<Batch> {
  const whole = new Pile();
  /** What is there of the entry that is not complete yet. */
  const open = new Pile();
  let isLarge = false;
  /** The first of the whole entries, and the last entry that came. */
  let first: Mark | null = null;
  let last: Mark | null = after;
  const from = (after?.entry ?? 0) + 1;
  for await (const { segment, part, entry } of framesFrom(log, from)) {
    if (entry < from) continue;
    if (open.bytes === 0 && !isLarge && last !== null && segment.firstEntry === last.entry + 1) {
      if (first !== null && last !== null) yield { kind: 'entries', first, last, content: whole.take() };
      first = null;
      const closed = listSegments(log).findLast(({ firstEntry }) => firstEntry < segment.firstEntry);
      if (closed !== undefined) yield { kind: 'closed', segment: closed, last };
    }
    open.add(part.frame);
    if (part.kind === 'commit') {
      last = part.commit;
      if (isLarge) {
        yield { kind: 'piece', content: open.take() };
        yield { kind: 'large', entry: last };
        isLarge = false;
      } else {
        whole.add(open.take());
        first ??= last;
      }
    }
    if (whole.bytes + open.bytes >= partBytes) {
      if (first !== null && last !== null) yield { kind: 'entries', first, last, content: whole.take() };
      first = null;
      if (open.bytes >= partBytes) {
        isLarge = true;
        yield { kind: 'piece', content: open.take() };
      }
    }
    if (part.kind === 'commit' && part.commit.entry >= end.entry) break;
  }
  if (first !== null && last !== null) yield { kind: 'entries', first, last, content: whole.take() };
  if ((last?.entry ?? 0) < end.entry) throw new LogDamage(`the log ends before entry ${end.entry}`);
}

/**
 * The frames of the segments from that with an entry on, each with the number of its entry. A segment is read from its
 * beginning, and other work runs in between.
 */
async function* framesFrom(
  log: string,
  begin: number,
): AsyncGenerator<{ readonly segment: Segment; readonly part: EntryPart; readonly entry: number }> {
  const segments = listSegments(log);
  const index = segments.findLastIndex(({ firstEntry }) => firstEntry <= begin);
  let last: Commit | undefined;
  let frames = 0;
  for (const segment of segments.slice(Math.max(0, index))) {
    using reader = new EntryReader(segment);
    for (let part = reader.next(last); part !== null; part = reader.next(last)) {
      const before = reader.last?.entry ?? segment.firstEntry - 1;
      yield { segment, part, entry: part.kind === 'commit' ? part.commit.entry : before + 1 };
      if (part.kind === 'commit') last = part.commit;
      frames += 1;
      if (frames % FRAMES_A_TURN === 0) await nextTurn();
    }
  }
}

/** The entries of a closed segment up to its last one, as one content. @throws LogDamage, LogFailure */
export async function contentOf(segment: Segment, last: Mark): Promise<Buffer> {
  const content = new Pile();
  using reader = new EntryReader(segment);
  for (let part = reader.next(undefined); part !== null; part = reader.next(reader.last ?? undefined)) {
    content.add(part.frame);
    await nextTurn();
  }
  if (reader.last?.id !== last.id) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
  return content.take();
}

/** Frames that are put together. */
class Pile {
  #frames: Buffer[] = [];
  bytes = 0;

  add(frame: Buffer): void {
    this.#frames.push(frame);
    this.bytes += frame.length;
  }

  take(): Buffer {
    const content = Buffer.concat(this.#frames);
    this.#frames = [];
    this.bytes = 0;
    return content;
  }
}
