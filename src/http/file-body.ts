/**
 * Sends a part of a file, a piece at a time: however large it is and however slowly it is read, one piece of it is
 * in memory, and the file is closed when the answer ends, in whatever way.
 */
import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';

/** A file as it is at one moment; what was written to it since then shows. */
export interface FileState {
  readonly size: number;
  /** Nanoseconds since the epoch. */
  readonly modifiedNs: bigint;
}

export interface FileBody {
  /** Closed by who sends it. */
  readonly handle: FileHandle;
  /** When its size went into the headers. */
  readonly state: FileState;
  readonly start: number;
  /** At least 1. */
  readonly bytes: number;
}

const PIECE_BYTES = 64 * 1024;

/**
 * Sends a body whose head is written. Whoever goes away before its end is left alone.
 *
 * @throws what kept the file from being sent as it was; the connection is cut off then, since the length that was
 *   told cannot be kept, and a client must not take two halves for a whole
 */
export async function sendFile(
  response: ServerResponse,
  { handle, state, start, bytes }: FileBody,
): Promise<void> {
  try {
    const end = start + bytes;
    for (let at = start; at < end && !response.destroyed; ) {
      const piece = await readPiece(handle, at, Math.min(PIECE_BYTES, end - at));
      at += piece.length;
      if (at === end) await requireUnchanged(handle, state);
      if (!response.write(piece) && at < end) await drained(response);
    }
    response.end();
  } catch (error) {
    response.destroy();
    throw error;
  } finally {
    await handle.close();
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

/** Looked at before the last piece goes out: what was cut off is not taken for whole, nor kept by a cache. */
async function requireUnchanged(handle: FileHandle, { size, modifiedNs }: FileState): Promise<void> {
  const now = await readState(handle);
  if (now.size !== size || now.modifiedNs !== modifiedNs)
    throw new Error('the file was modified while it was being sent');
}

/** Resolves once the client has read what was written, or is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      response.off('drain', settle);
      response.off('close', settle);
      resolve();
    };
    response.on('drain', settle);
    response.on('close', settle);
    // It may have closed before anybody listened.
    if (response.destroyed) settle();
  });
}
