/**
 * Frames of the log: the unit that is compressed, checked and written at once.
 *
 * A frame is a skippable zstd frame (magic, size, then length, CRC-32 and kind of what follows) and an ordinary zstd
 * frame with lines of JSON (RFC 8878, sections 3.1.1 and 3.1.2). So `zstdcat` prints a segment, and the log can be
 * checked without decompressing it.
 */
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

export type FrameKind = 'header' | 'lines' | 'commit';

export interface FrameHeader {
  readonly kind: FrameKind;
  /** Bytes of the zstd frame that follows. */
  readonly length: number;
  /** CRC-32 of those bytes. */
  readonly checksum: number;
}

/** The first skippable magic number; others may mean something else to other programs. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const CONTENT_BYTES = 12;
export const FRAME_HEADER_BYTES = 8 + CONTENT_BYTES;
/** Far more than 500 rows need; a greater length is damage. */
export const FRAME_BYTES_MAX = 256 * 1024 * 1024;
const KINDS: readonly FrameKind[] = ['header', 'lines', 'commit'];

/** The first bytes of every frame, to search for one after damage. */
export const FRAME_MAGIC = Buffer.from([0x50, 0x2a, 0x4d, 0x18, CONTENT_BYTES, 0, 0, 0]);

/** The fastest level: compression must not slow down ingest. */
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** @param lines JSON texts, each with a newline at its end; @returns the bytes of one frame */
export function encodeFrame(kind: FrameKind, lines: string | Uint8Array): Buffer<ArrayBuffer> {
  return frameOf(kind, zstdCompressSync(lines, OPTIONS));
}

/** @param packed a zstd frame of lines; @returns the bytes of the frame */
export function frameOf(kind: FrameKind, packed: Buffer): Buffer<ArrayBuffer> {
  // In memory of its own, so that it can be transferred to another thread.
  const frame = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + packed.length);
  frame.writeUInt32LE(SKIPPABLE_MAGIC, 0);
  frame.writeUInt32LE(CONTENT_BYTES, 4);
  frame.writeUInt32LE(packed.length, 8);
  frame.writeUInt32LE(crc32(packed), 12);
  frame.writeUInt32LE(KINDS.indexOf(kind), 16);
  packed.copy(frame, FRAME_HEADER_BYTES);
  return frame;
}

/** @param bytes at least {@link FRAME_HEADER_BYTES}; @returns null if no frame begins there */
export function decodeFrameHeader(bytes: Buffer): FrameHeader | null {
  if (bytes.length < FRAME_HEADER_BYTES) return null;
  if (bytes.readUInt32LE(0) !== SKIPPABLE_MAGIC || bytes.readUInt32LE(4) !== CONTENT_BYTES) return null;
  const kind = KINDS[bytes.readUInt32LE(16)];
  const length = bytes.readUInt32LE(8);
  // A write that a power cut tore may have left zeros behind the first bytes.
  if (kind === undefined || length === 0 || length > FRAME_BYTES_MAX) return null;
  return { kind, length, checksum: bytes.readUInt32LE(12) };
}

export function isFrameIntact({ checksum }: FrameHeader, packed: Buffer): boolean {
  return crc32(packed) === checksum;
}

/** The lines of an intact frame, each with a newline at its end. */
export function unpackLines(packed: Buffer): Buffer {
  return zstdDecompressSync(packed);
}

/** The lines of an intact frame, without their newlines. */
export function decodeLines(packed: Buffer): string[] {
  const lines = unpackLines(packed).toString('utf8').split('\n');
  // Each line has a newline at its end, so the last part is empty.
  lines.pop();
  return lines;
}

/** Adds a frame's checksum to that of the frames before it. */
export function chainChecksum(before: number, checksum: number): number {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(checksum, 0);
  return crc32(bytes, before);
}
