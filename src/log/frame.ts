/**
 * Frames of the log, the unit that is compressed, checked and written at once; and the entries that they make.
 *
 * A frame is a skippable zstd frame (magic, size, then length, CRC-32 and kind of what follows) and an ordinary zstd
 * frame with lines of JSON (RFC 8878, sections 3.1.1 and 3.1.2). So `zstdcat` prints a segment, and the log can be
 * checked without decompressing it.
 */
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { grouped } from '../counted.ts';
import { LogDamage } from '../store/log-errors.ts';
import { type Commit, type Mark, parse, parseCommit, SNAPSHOT } from './format.ts';

const KINDS = ['header', 'lines', 'commit'] as const;
type FrameKind = (typeof KINDS)[number];

export interface Frame {
  readonly kind: FrameKind;
  /** All of it, and the zstd frame in it. */
  readonly bytes: Buffer;
  readonly packed: Buffer;
  /** CRC-32 of the zstd frame. */
  readonly checksum: number;
  /** Where the next frame begins. */
  readonly end: number;
}

/** Every frame begins so: the first skippable magic number (other programs may know others), and its content's size, 12. */
export const FRAME_MAGIC = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 12, 0, 0, 0]);
export const FRAME_HEADER_BYTES = FRAME_MAGIC.length + 12;
/** Far more than 500 rows need; a greater length is damage. */
const FRAME_BYTES_MAX = 256 * 1024 * 1024;

/** The fastest level: compression must not slow down ingest. */
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** @param lines JSON texts, each with a newline at its end; @returns the bytes of one frame */
export function encodeFrame(kind: FrameKind, lines: string | Uint8Array): Buffer<ArrayBuffer> {
  const packed = zstdCompressSync(lines, OPTIONS);
  // In memory of its own, so that it can be transferred to another thread.
  const frame = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + packed.length);
  FRAME_MAGIC.copy(frame);
  frame.writeUInt32LE(packed.length, 8);
  frame.writeUInt32LE(crc32(packed), 12);
  frame.writeUInt32LE(KINDS.indexOf(kind), 16);
  packed.copy(frame, FRAME_HEADER_BYTES);
  return frame;
}

/** @param bytes at least {@link FRAME_HEADER_BYTES}; @returns null if no frame begins there */
export function decodeFrameHeader(bytes: Buffer) {
  if (bytes.length < FRAME_HEADER_BYTES || !bytes.subarray(0, FRAME_MAGIC.length).equals(FRAME_MAGIC))
    return null;
  const kind = KINDS[bytes.readUInt32LE(16)];
  const length = bytes.readUInt32LE(8);
  // A write that a power cut tore may have left zeros behind the first bytes.
  if (kind === undefined || length === 0 || length > FRAME_BYTES_MAX) return null;
  return { kind, length, checksum: bytes.readUInt32LE(12) };
}

/** @param read up to so many bytes from an offset on; @returns null if no intact frame begins there */
export function frameAt(read: (offset: number, length: number) => Buffer, offset: number): Frame | null {
  const header = decodeFrameHeader(read(offset, FRAME_HEADER_BYTES));
  if (header === null) return null;
  const bytes = read(offset, FRAME_HEADER_BYTES + header.length);
  const packed = bytes.subarray(FRAME_HEADER_BYTES);
  if (packed.length < header.length || crc32(packed) !== header.checksum) return null;
  return { kind: header.kind, bytes, packed, checksum: header.checksum, end: offset + bytes.length };
}

/** The frames of a content: whole ones, one after the other. @throws LogDamage, with the name of the content */
export function* framesOf(content: Buffer, name: string): Generator<Frame, undefined> {
  const read = (offset: number, length: number) => content.subarray(offset, offset + length);
  for (let at = 0; at < content.length; ) {
    const frame = frameAt(read, at);
    if (frame === null) throw new LogDamage(`${name} has a damaged frame at byte ${at}`);
    yield frame;
    at = frame.end;
  }
}

/** The lines of an intact frame, without their newlines. */
export const decodeLines = ({ packed }: Frame): string[] => linesIn(zstdDecompressSync(packed));

/** @param text lines, each with a newline at its end @throws LogDamage if that of the last one is missing */
function linesIn(text: Buffer): string[] {
  const lines = text.toString('utf8').split('\n');
  if (lines.pop() !== '') throw new LogDamage('a frame ends within a line');
  return lines;
}

/** What the first line of a frame of kind `header` says. @throws LogDamage */
export const headerIn = (frame: Frame): unknown => parse(decodeLines(frame)[0] ?? '');

/** The commit line at the end of a frame of that kind. @throws LogDamage */
export const commitIn = (frame: Frame): Commit => parseCommit(decodeLines(frame).at(-1) ?? '');

/** Adds a frame's checksum to that of the frames before it. */
export function chainChecksum(before: number, checksum: number): number {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(checksum, 0);
  return crc32(bytes, before);
}

export interface EntryPart {
  readonly entry: number;
  readonly frame: Frame;
  /** The commit line of the entry that it ends; null: it ends none. */
  readonly commit: Commit | null;
  /** Its other lines, without their newlines; unpacked only here, since checksums are enough to check a log. */
  lines(): readonly string[];
}

/**
 * Makes entries of frames, and checks that each is whole, and follows the one before.
 * @param last the entry before; null: there is none, so that a log must be able to begin here; undefined: any may be
 * @param first the number of the first entry, unless `last` tells it
 * @param where the beginning of an error
 */
export function entryChain(last: Mark | null | undefined, first: number, where = '') {
  let frames = 0;
  let checksum = 0;
  return {
    /** The last whole entry. */
    last,
    /** The number of the entry that the next frame is of. */
    get next(): number {
      return (this.last?.entry ?? first - 1) + 1;
    },
    /** @throws LogDamage if the entry that the frame ends is not whole, or does not follow the one before */
    add(frame: Frame): EntryPart {
      if (frame.kind === 'header') throw new LogDamage(`${where}a header stands between entries`);
      const entry = this.next;
      if (frame.kind === 'lines') {
        frames += 1;
        checksum = chainChecksum(checksum, frame.checksum);
        return { entry, frame, commit: null, lines: () => decodeLines(frame) };
      }
      const bytes = zstdDecompressSync(frame.packed);
      const at = bytes.lastIndexOf('\n', -2) + 1;
      const commit = parseCommit(bytes.toString('utf8', at));
      if (commit.frames !== frames || commit.checksum !== checksum)
        throw new LogDamage(`${where}frames of entry ${commit.entry} are missing`);
      if (this.last === null) requireBeginning(commit);
      else if (commit.entry !== entry || commit.after !== (this.last ?? { id: commit.after }).id)
        throw new LogDamage(`${where}entry ${commit.entry} does not follow entry ${entry - 1}`);
      [frames, checksum, this.last] = [0, 0, commit];
      return { entry, frame, commit, lines: () => linesIn(bytes.subarray(0, at)) };
    },
  };
}

/** @throws LogDamage unless a log can start with this entry: 1, or a snapshot (compact.ts) */
function requireBeginning({ entry, after, operation }: Commit): void {
  if ((entry === 1 && after === null) || operation.kind === SNAPSHOT) return;
  throw new LogDamage(`it begins with entry ${grouped(entry)}; earlier entries are missing`);
}
