/**
 * Sends a part of a file, piece by piece: only one piece is in memory, however slowly a client reads, and the file is
 * closed however the answer ends.
 */
import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isErrorCode } from '../refused.ts';

/** Size and time of a file, which show whether it was modified since. */
export interface FileState {
  readonly size: number;
  /** Nanoseconds since the epoch. */
  readonly modifiedNs: bigint;
}

export interface FileBody {
  /** Closed by {@link sendFile}. */
  readonly handle: FileHandle;
  /** When the headers were made. */
  readonly state: FileState;
  readonly start: number;
  /** At least 1. */
  readonly bytes: number;
}

const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * The part of a file that the header Range asks for (RFC 9110, 14.1.2 and 14.2).
 * @param size of the file in bytes, at least 1
 * @returns null: send the complete file: without the header, or if it is malformed, of another unit, with
 *   several ranges, or outside the file, for which the API has no status. A server may ignore all of these (RFC
 *   9110, 14.2), and clients cannot depend on a 416 (15.5.17).
 */
export function parseRange(
  header: string | undefined,
  size: number,
): { start: number; bytes: number } | null {
  const [, first = '', last = ''] = ONE_RANGE.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  return start < end ? { start, bytes: end - start } : null;
}

const PIECE_BYTES = 64 * 1024;

/**
 * Sends a body after its head. Nothing is thrown where the client goes away.
 * @throws where the file cannot be read or was modified. The connection is cut then, so that a client never takes a
 *   mixture for the file
 */
export async function sendFile(response: ServerResponse, body: FileBody): Promise<void> {
  try {
    await sendPieces(response, pieces(body));
  } finally {
    await body.handle.close();
  }
}

/** Sends pieces, each once the client has read most of those before. Nothing is thrown where the client goes away. */
export async function sendPieces(
  response: ServerResponse,
  pieces: AsyncIterable<Buffer | string>,
  through?: Transform,
): Promise<void> {
  try {
    await (through === undefined ? pipeline(pieces, response) : pipeline(pieces, through, response));
  } catch (error) {
    if (!isErrorCode(error, 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED')) throw error;
  }
}

async function* pieces({ handle, state, start, bytes }: FileBody): AsyncGenerator<Buffer> {
  const end = start + bytes;
  for (let at = start; at < end; ) {
    const piece = await readPiece(handle, at, Math.min(PIECE_BYTES, end - at));
    at += piece.length;
    if (at === end) await requireUnchanged(handle, state);
    yield piece;
  }
}

export async function readState(handle: FileHandle): Promise<FileState & { readonly isFile: boolean }> {
  const stats = await handle.stat({ bigint: true });
  return { size: Number(stats.size), modifiedNs: stats.mtimeNs, isFile: stats.isFile() };
}

async function readPiece(handle: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const piece = Buffer.allocUnsafe(bytes);
  const { bytesRead } = await handle.read(piece, 0, bytes, at);
  if (bytesRead === 0) throw new Error('the file shrank while it was being sent');
  return piece.subarray(0, bytesRead);
}

/** Checked before the last piece is sent: neither client nor cache keeps an answer that was cut off. */
async function requireUnchanged(handle: FileHandle, { size, modifiedNs }: FileState): Promise<void> {
  const now = await readState(handle);
  if (now.size !== size || now.modifiedNs !== modifiedNs)
    throw new Error('the file was modified while it was being sent');
}
