/** Compresses answers (RFC 9110, 12.5.3) on Node's thread pool, so that light requests do not wait. */
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { constants, gzip, zstdCompress } from 'node:zlib';
import type { Answer } from './exchange.ts';
import { byteLength, isBytes } from './reply.ts';
import { createTurns } from './thread-turns.ts';

/** Smaller answers fit into a packet anyway. */
const BYTES_MIN = 1024;
/** One processor stays free for the main thread. */
const AT_ONCE = Math.max(1, availableParallelism() - 1);

const ENCODINGS = ['zstd', 'gzip'] as const;
type Encoding = (typeof ENCODINGS)[number];

const compressGzip = promisify(gzip);
const compressZstd = promisify(zstdCompress);
// Measured on pages of 1,000 detections: higher levels take up to five times as long for a tenth less.
const COMPRESS: Readonly<Record<Encoding, (bytes: Buffer) => Promise<Buffer>>> = {
  gzip: (bytes) => compressGzip(bytes, { level: 1 }),
  zstd: (bytes) => compressZstd(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
};

export type Encoder = (answer: Answer, acceptEncoding: string | undefined) => Answer | Promise<Answer>;

export function createEncoder(): Encoder {
  const inTurn = createTurns(AT_ONCE);
  /** The last one: anybody may ask for the OpenAPI document, and others would wait while it is compressed each time. */
  const texts = new Map<Encoding, { readonly text: string; readonly compressed: Promise<Buffer> }>();

  async function ofText(text: string, encoding: Encoding): Promise<Buffer> {
    let last = texts.get(encoding);
    if (last?.text !== text) {
      last = { text, compressed: inTurn(() => COMPRESS[encoding](Buffer.from(text))) };
      texts.set(encoding, last);
    }
    try {
      // A copy: the memory of what is sent is freed.
      return Buffer.from(await last.compressed);
    } catch (error) {
      texts.delete(encoding);
      throw error;
    }
  }

  return (answer, acceptEncoding) => {
    const { body, headers = [] } = answer;
    // A strong entity tag identifies one sequence of bytes (RFC 9110, 8.8.1).
    if (!isBytes(body) || headers.includes('ETag')) return answer;
    const bytes = byteLength(body);
    if (bytes < BYTES_MIN) return answer;
    // Also where it is not encoded, but would be for another client.
    const varied = { ...answer, headers: [...headers, 'Vary', 'Accept-Encoding'] };
    const encoding = encodingFor(acceptEncoding);
    if (encoding === null) return varied;
    varied.headers.push('Content-Encoding', encoding);
    const compressed =
      typeof body === 'string'
        ? ofText(body, encoding)
        : inTurn(() => COMPRESS[encoding](Buffer.concat(body, bytes)));
    return compressed.then((whole) => ({ ...varied, body: [whole] }));
  };
}

/** @param header Accept-Encoding; @returns what is accepted with the highest weight; null: none of ours */
export function encodingFor(header: string | undefined): Encoding | null {
  if (header === undefined) return null;
  const weights = new Map<string, number>();
  for (const member of header.split(',')) {
    const [, name, q = '1'] =
      /^\s*([\w-]+)\s*(?:;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/i.exec(member) ?? [];
    if (name !== undefined) weights.set(name.toLowerCase(), Number(q));
  }
  const weightOf = (encoding: Encoding) => weights.get(encoding) ?? 0;
  const [best] = ENCODINGS.toSorted((a, b) => weightOf(b) - weightOf(a));
  return best === undefined || weightOf(best) === 0 || weightOf(best) < (weights.get('identity') ?? 0)
    ? null
    : best;
}
