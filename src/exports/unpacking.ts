/** Reads an export file in chunks of bounded size, and hashes and unpacks it on the way. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib';
import { errorCode, reasonOf } from '../refused.ts';
import type { Form } from './file-name.ts';

const CHUNK_BYTES = 256 * 1024;

/** Why an export cannot be read to its end. */
export class UnreadableContent extends Error {
  /** `truncated`: the file may still be growing; `damaged`: waiting does not help. */
  readonly kind: 'truncated' | 'damaged';

  constructor(kind: 'truncated' | 'damaged', message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Any write to a file changes it. */
export type FileSnapshot = Readonly<Record<'size' | 'mtimeNs' | 'ino' | 'dev', bigint>>;

export const isSameSnapshot = (a: FileSnapshot, b: FileSnapshot): boolean =>
  a.size === b.size && a.mtimeNs === b.mtimeNs && a.ino === b.ino && a.dev === b.dev;

export interface ExportSource {
  readonly path: string;
  /** The regular file that was found there. Null: whatever is there, or where a link leads. */
  readonly found: FileSnapshot | null;
}

/**
 * @returns `sha256`: of the packed file; call it once, after all chunks have been read
 * @throws UnreadableContent from the chunks, if the packed data is truncated or damaged; Error ESTALE for another file
 */
export async function openContent({ path, found }: ExportSource, form: Form) {
  // Something may have replaced the file since the scan: a link is not followed, and a FIFO does not block.
  const noFollow = found === null ? 0 : constants.O_NOFOLLOW;
  const file = await open(path, constants.O_RDONLY | noFollow | constants.O_NONBLOCK);
  const stats = await file.stat({ bigint: true });
  if (found !== null && !(stats.isFile() && isSameSnapshot(stats, found))) {
    await file.close();
    throw Object.assign(new Error(`${path} was changed before it was read`), { code: 'ESTALE' });
  }
  const hash = createHash('sha256');
  async function* raw(): Source {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return null;
      const chunk = buffer.subarray(0, bytesRead);
      hash.update(chunk);
      yield chunk;
    }
  }
  return {
    chunks: unpack(raw(), form),
    sha256: () => hash.digest('hex'),
    close: () => file.close(),
  };
}

/** The chunks of a packed file; null at its end. */
type Source = AsyncGenerator<Buffer, null>;

/**
 * A zstd file can have several frames, as parallel packers and appending writers produce. Node's stream ends silently
 * where a frame ends within a chunk, so the rest of the chunk goes to a new stream: otherwise it would be lost.
 */
async function* unpack(source: Source, form: Form): AsyncGenerator<Buffer> {
  const isGzip = form.endsWith('.gz');
  if (!isGzip && !form.endsWith('.zst')) return yield* source;
  try {
    let rest = (await source.next()).value;
    // An empty file also goes through the stream, which reports it as truncated.
    do {
      const options = { chunkSize: CHUNK_BYTES };
      const unpacked = isGzip ? createGunzip(options) : createZstdDecompress(options);
      const feeding = feed(unpacked, rest, source);
      feeding.catch((error) => unpacked.destroy(error));
      try {
        yield* unpacked;
        rest = await feeding;
      } finally {
        unpacked.destroy();
      }
      // Node's stream ends at zeros, with which some devices pad their blocks, and does not check what follows them.
      for (; isGzip && rest !== null; rest = (await source.next()).value)
        if (rest.some((byte) => byte !== 0))
          throw new UnreadableContent('damaged', 'the gzip data is followed by other data');
    } while (rest !== null);
  } catch (error) {
    throw unreadable(error, isGzip ? 'gzip' : 'zstd');
  }
}

/** @returns the rest of the chunk in which the packed data ended; null at the end of the source */
async function feed(unpacked: Gunzip | ZstdDecompress, first: Buffer | null, source: Source) {
  for (let chunk = first; chunk !== null; chunk = (await source.next()).value) {
    const before = unpacked.bytesWritten;
    await written(unpacked, chunk);
    const used = unpacked.bytesWritten - before;
    if (used < chunk.length) return chunk.subarray(used);
  }
  unpacked.end();
  return null;
}

function written(unpacked: Gunzip | ZstdDecompress, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null) => {
      unpacked.off('end', done);
      unpacked.off('close', done);
      if (error) reject(error);
      else resolve();
    };
    unpacked.once('end', done);
    unpacked.once('close', done);
    unpacked.write(chunk, done);
  });
}

function unreadable(error: unknown, packing: string): unknown {
  const code = errorCode(error);
  if (code === 'Z_BUF_ERROR')
    return new UnreadableContent('truncated', `the ${packing} data is truncated`, { cause: error });
  if (!code.startsWith('Z_') && !code.startsWith('ZSTD_')) return error;
  const detail = `the ${packing} data is damaged: ${reasonOf(error)}`;
  return new UnreadableContent('damaged', detail, { cause: error });
}
