/** Sends a part of a file: only one piece is in memory, however slowly a client reads. */
import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { isErrorCode } from '../refused.ts';

export interface FileBody {
  /** Closed by {@link sendFile}. */
  readonly handle: FileHandle;
  readonly start: number;
  readonly bytes: number;
}

const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** The part of a file that Range asks for (RFC 9110, 14.1.2, 14.2); null: all of it, as for what is malformed. */
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

/**
 * Sends a body after its head. Nothing is thrown where the client goes away.
 * @throws where the file cannot be read or has become shorter; the connection is cut then
 */
export async function sendFile(response: ServerResponse, { handle, start, bytes }: FileBody): Promise<void> {
  const file = handle.createReadStream({ start, end: start + bytes - 1 });
  try {
    await pipeline(file, response, { end: false });
    if (file.bytesRead < bytes) throw new Error('the file shrank while it was being sent');
    response.end();
  } catch (error) {
    response.destroy();
    if (!isClientGone(error)) throw error;
  }
}

/** Whether a stream to a client has ended because the client went away. */
export function isClientGone(error: unknown): boolean {
  return isErrorCode(error, 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED');
}
