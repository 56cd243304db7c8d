/** Reads the log of this machine for a copy: asynchronously, checked, in contents for its objects. */
import { createReadStream } from 'node:fs';
import type { Commit, Mark } from '../log/format.ts';
import { listSegments, type Segment } from '../log/segment.ts';
import { LogDamage } from '../store/log-errors.ts';
import { EntryChain, framesOf } from './entries.ts';

const READ_BYTES = 1024 * 1024;

export type Batch =
  /** Whole entries, for one part. */
  | { readonly kind: 'entries'; readonly first: Mark; readonly last: Mark; readonly content: Buffer }
  /** Of an entry that is too large for one. */
  | { readonly kind: 'piece'; readonly content: Buffer }
  /** That entry is complete with its pieces. */
  | { readonly kind: 'large'; readonly entry: Mark }
  /** All of a closed segment came. */
  | { readonly kind: 'closed'; readonly segment: Segment; readonly last: Mark };

/**
 * The entries of a log after one, up to another.
 * @param after which the log has; null: from its beginning on
 * @throws LogDamage; the file system's error
 */
export async function* batchesAfter(
  log: string,
  after: Mark | null,
  end: Mark,
  partBytes: number,
): AsyncGenerator<Batch> {
  const segments = listSegments(log);
  const from = after?.entry ?? 0;
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1]?.firstEntry;
    // It was closed after its last entry had been written.
    if (after !== null && next === from + 1) yield { kind: 'closed', segment, last: after };
    if (next !== undefined && next <= from + 1) continue;
    if (segment.firstEntry > end.entry) return;
    // Where the first entry before it is not known, any may come first.
    const chain = new EntryChain(segment.firstEntry === 1 ? null : undefined);
    const collected = new Collected(partBytes);
    for await (const frame of framesOf(readFile(segment.path), segment.path)) {
      if (frame.kind === 'header') continue;
      const number = (chain.last?.entry ?? segment.firstEntry - 1) + 1;
      const commit = chain.add(frame);
      if (number <= from) continue;
      yield* collected.add(frame.bytes, commit);
      if (number >= end.entry && commit !== null) break;
    }
    yield* collected.rest();
    const last = chain.last;
    if (next === undefined || !last || last.entry >= end.entry) continue;
    if (last.entry !== next - 1) throw new LogDamage(`${segment.path} ends before entry ${next}`);
    yield { kind: 'closed', segment, last };
  }
}

/** The entries of a closed segment, as one content. @throws LogDamage */
export async function contentOf({ path }: Segment): Promise<Buffer> {
  const chain = new EntryChain(undefined);
  const frames: Buffer[] = [];
  for await (const frame of framesOf(readFile(path), path)) {
    if (frame.kind === 'header') continue;
    chain.add(frame);
    frames.push(frame.bytes);
  }
  return Buffer.concat(frames);
}

/** Puts frames together until they fill a part. */
class Collected {
  readonly #partBytes: number;
  #frames: Buffer[] = [];
  #bytes = 0;
  /** How many of the frames make whole entries, and which. */
  #whole = 0;
  #first: Mark | null = null;
  #last: Mark | null = null;
  #isLarge = false;

  constructor(partBytes: number) {
    this.#partBytes = partBytes;
  }

  *add(frame: Buffer, commit: Commit | null): Generator<Batch> {
    this.#frames.push(frame);
    this.#bytes += frame.length;
    if (commit !== null && this.#isLarge) {
      yield { kind: 'piece', content: this.#take(this.#frames.length) };
      yield { kind: 'large', entry: commit };
      this.#isLarge = false;
      return;
    }
    if (commit !== null) {
      this.#first ??= commit;
      this.#last = commit;
      this.#whole = this.#frames.length;
    }
    if (this.#bytes < this.#partBytes) return;
    yield* this.rest();
    if (this.#bytes < this.#partBytes) return;
    this.#isLarge = true;
    yield { kind: 'piece', content: this.#take(this.#frames.length) };
  }

  /** The whole entries. */
  *rest(): Generator<Batch> {
    if (this.#first === null || this.#last === null) return;
    const { first, last } = { first: this.#first, last: this.#last };
    yield { kind: 'entries', first, last, content: this.#take(this.#whole) };
    this.#first = null;
    this.#last = null;
    this.#whole = 0;
  }

  #take(count: number): Buffer {
    const content = Buffer.concat(this.#frames.splice(0, count));
    this.#bytes -= content.length;
    return content;
  }
}

function readFile(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: READ_BYTES });
}
