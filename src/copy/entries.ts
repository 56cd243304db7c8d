/** The bytes of a log as entries: frames one after the other, and the check that they make entries that follow each other. */
import { type Commit, type Mark, parseCommit } from '../log/format.ts';
import {
  chainChecksum,
  decodeFrameHeader,
  decodeLines,
  FRAME_HEADER_BYTES,
  type FrameKind,
  isFrameIntact,
} from '../log/frame.ts';
import { requireBeginning } from '../log/log-reader.ts';
import { checkCommit } from '../log/segment.ts';
import { LogDamage } from '../store/log-errors.ts';

export interface RawFrame {
  readonly kind: FrameKind;
  /** The whole frame, and the zstd frame in it. */
  readonly bytes: Buffer;
  readonly packed: Buffer;
  readonly checksum: number;
}

/**
 * The frames in a sequence of bytes.
 * @param what their name, for errors
 * @throws LogDamage if a frame is damaged, or the bytes end within one
 */
export async function* framesOf(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  what: string,
): AsyncGenerator<RawFrame> {
  let rest: Buffer = Buffer.alloc(0);
  let at = 0;
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let begin = 0;
    for (let frame = frameAt(rest, begin, what); frame !== null; frame = frameAt(rest, begin, what)) {
      begin += frame.bytes.length;
      yield frame;
    }
    rest = rest.subarray(begin);
    at += begin;
  }
  if (rest.length > 0) throw new LogDamage(`${what} is damaged at byte ${at}`);
}

/** @returns null if the bytes end before the frame does */
function frameAt(bytes: Buffer, begin: number, what: string): RawFrame | null {
  if (bytes.length < begin + FRAME_HEADER_BYTES) return null;
  const header = decodeFrameHeader(bytes.subarray(begin, begin + FRAME_HEADER_BYTES));
  const end = begin + FRAME_HEADER_BYTES + (header?.length ?? 0);
  if (header !== null && bytes.length < end) return null;
  const packed = bytes.subarray(begin + FRAME_HEADER_BYTES, end);
  if (header === null || !isFrameIntact(header, packed)) throw new LogDamage(`${what} has a damaged frame`);
  return { kind: header.kind, bytes: bytes.subarray(begin, end), packed, checksum: header.checksum };
}

/** Checks that frames make whole entries, of which each follows the one before. */
export class EntryChain {
  /** The last whole entry; null: none; undefined: not known, so that any may follow. */
  last: Mark | null | undefined;
  #frames = 0;
  #checksum = 0;

  constructor(last: Mark | null | undefined) {
    this.last = last;
  }

  /**
   * @returns the commit line of the entry that the frame ends; null: it ends none
   * @throws LogDamage if the entry is not whole, or does not follow the last one
   */
  add({ kind, packed, checksum }: RawFrame): Commit | null {
    if (kind === 'header') throw new LogDamage('a header stands between entries');
    if (kind === 'lines') {
      this.#frames += 1;
      this.#checksum = chainChecksum(this.#checksum, checksum);
      return null;
    }
    const commit = parseCommit(decodeLines(packed).at(-1) ?? '');
    // A log may also begin with a snapshot.
    checkCommit(commit, this.last ?? undefined, { frames: this.#frames, checksum: this.#checksum });
    if (this.last === null) requireBeginning(commit);
    this.#frames = 0;
    this.#checksum = 0;
    this.last = commit;
    return commit;
  }
}
