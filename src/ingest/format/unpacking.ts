/**
 * The content of an export file: opened, hashed and unpacked as it is read, in chunks of bounded size.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib';
import { errorCode, isErrorCode } from '../../refused.ts';
import type { Form } from './file-name.ts';

const CHUNK_BYTES = 256 * 1024;

/** Why an export cannot be read to its end. */
export class UnreadableContent extends Error {
  /** `truncated`: it may still be growing; `damaged`: more time would not help. */
  readonly kind: 'truncated' | 'damaged';

  constructor(kind: 'truncated' | 'damaged', message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UnreadableContent';
    this.kind = kind;
  }
}

export interface Content {
  /** The unpacked bytes. */
  readonly chunks: AsyncIterable<Buffer>;
  /** Of the file as it lies on the disk; valid once the chunks have been read to their end. */
  sha256(): string;
  bytes(): number;
  close(): Promise<void>;
}

/**
 * @param form says how the file is packed
 * @throws UnreadableContent from the chunks, when the packing is cut off or broken
 */
export async function openContent(path: string, form: Form): Promise<Content> {
  // A link that took the file's place after it was looked at is not followed, and a FIFO does not block.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const hash = createHash('sha256');
  let bytes = 0;
  let digest: string | null = null;
  async function* raw(): AsyncGenerator<Buffer> {
    for await (const chunk of readFile(file)) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  }
  return {
    chunks: unpack(raw(), form),
    sha256: () => {
      digest ??= hash.digest('hex');
      return digest;
    },
    bytes: () => bytes,
    close: () => file.close(),
  };
}

async function* readFile(file: FileHandle): AsyncGenerator<Buffer> {
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, null);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

async function* unpack(source: AsyncGenerator<Buffer>, form: Form): AsyncGenerator<Buffer> {
  try {
    if (form.endsWith('.gz')) yield* gunzip(source);
    else if (form.endsWith('.zst')) yield* unzstd(source);
    else yield* source;
  } catch (error) {
    throw unreadable(error, form);
  }
}

async function* gunzip(source: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const unpacked = createGunzip({ chunkSize: CHUNK_BYTES });
  const feeding = feed(unpacked, await nextChunk(source), source);
  feeding.catch((error) => unpacked.destroy(error));
  try {
    yield* unpacked;
    await refuseMore(await feeding, source);
  } finally {
    unpacked.destroy();
  }
}

/** After zeros, with which some devices fill up their blocks, Node's stream ends and reads nothing more. */
async function refuseMore(rest: Buffer | null, source: AsyncGenerator<Buffer>): Promise<void> {
  for (let chunk = rest; chunk !== null; chunk = await nextChunk(source)) {
    if (chunk.some((byte) => byte !== 0)) {
      throw new UnreadableContent('damaged', 'the gzip data is followed by other data');
    }
  }
}

/**
 * A zstd file may be several frames one after the other, as parallel packers and appending writers make them.
 * Node's stream ends silently where a frame ends within a chunk: what follows would be lost, so the rest of
 * the chunk begins a stream of its own.
 */
async function* unzstd(source: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer | null = await nextChunk(source);
  // A file of no bytes is a frame that was never begun: the stream itself says so.
  do {
    const unpacked = createZstdDecompress({ chunkSize: CHUNK_BYTES });
    const feeding = feed(unpacked, rest, source);
    feeding.catch((error) => unpacked.destroy(error));
    try {
      yield* unpacked;
      rest = await feeding;
    } finally {
      unpacked.destroy();
    }
  } while (rest !== null);
}

/** @returns what was left of the chunk in which the packed data ended; null at the end of the source */
async function feed(
  unpacked: Gunzip | ZstdDecompress,
  first: Buffer | null,
  source: AsyncGenerator<Buffer>,
): Promise<Buffer | null> {
  let chunk = first;
  while (chunk !== null) {
    const before = unpacked.bytesWritten;
    await written(unpacked, chunk);
    const used = unpacked.bytesWritten - before;
    if (used < chunk.length) return chunk.subarray(used);
    chunk = await nextChunk(source);
  }
  unpacked.end();
  return null;
}

function written(unpacked: Gunzip | ZstdDecompress, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error | null) => {
      unpacked.off('end', settle);
      unpacked.off('close', settle);
      if (error) reject(error);
      else resolve();
    };
    unpacked.once('end', settle);
    unpacked.once('close', settle);
    unpacked.write(chunk, settle);
  });
}

async function nextChunk(source: AsyncGenerator<Buffer>): Promise<Buffer | null> {
  const next = await source.next();
  return next.done === true ? null : next.value;
}

function unreadable(error: unknown, form: Form): unknown {
  const packing = form.endsWith('.gz') ? 'gzip' : 'zstd';
  if (isErrorCode(error, 'Z_BUF_ERROR')) {
    return new UnreadableContent('truncated', `the ${packing} data is truncated`, { cause: error });
  }
  const code = errorCode(error);
  if (code.startsWith('Z_') || code.startsWith('ZSTD_')) {
    const reason = error instanceof Error ? error.message : code;
    return new UnreadableContent('damaged', `the ${packing} data is damaged: ${reason}`, { cause: error });
  }
  return error;
}
