/**
 * Cursors of the change stream (contract: Cursors).
 *
 * A cursor says where in the order of arrival its holder stands, and nothing else: so it is valid with any filter,
 * and outlives keys and accounts. It is authenticated, so that a position is always one that was given out.
 */
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { Refused } from '../refused.ts';
import { deriveKey } from '../store/derived-key.ts';

export interface StreamCursors {
  /** @param position an integer from 0, below 2^53 */
  encode(position: number): string;
  /** @throws Refused `invalid_request` for a text that `encode` never gave */
  decode(text: string): number;
}

/** Cursors that are known to be ours without being checked again. */
const KNOWN_MAX = 1000;

const FORMAT = 1;
const MAC_START = 9;
const MAC_BYTES = 16;
const CURSOR_BYTES = MAC_START + MAC_BYTES;
const CURSOR_CHARACTERS = Math.ceil((CURSOR_BYTES * 8) / 6);

/** @param secret of the data folder */
export function createStreamCursors(secret: Buffer): StreamCursors {
  const key = createSecretKey(deriveKey(secret, 'stream-cursor'));

  function seal(position: number): Buffer {
    const bytes = Buffer.alloc(CURSOR_BYTES);
    bytes[0] = FORMAT;
    bytes.writeBigUInt64BE(BigInt(position), 1);
    createHmac('sha256', key)
      .update(bytes.subarray(0, MAC_START))
      .digest()
      .copy(bytes, MAC_START, 0, MAC_BYTES);
    return bytes;
  }

  // Clients that wait for something new come with the same cursors again and again.
  const known = new Map<string, number>();

  // A client that is caught up is given the cursor it came with, again and again.
  let last = { position: 0, text: seal(0).toString('base64url') };

  return {
    encode(position) {
      if (position !== last.position) last = { position, text: seal(position).toString('base64url') };
      return last.text;
    },
    decode(text) {
      const position = known.get(text) ?? open(text);
      if (known.size >= KNOWN_MAX) known.clear();
      known.set(text, position);
      return position;
    },
  };

  function open(text: string): number {
    if (text.length !== CURSOR_CHARACTERS) throw notOurs();
    const bytes = Buffer.from(text, 'base64url');
    // The last character has bits to spare, and the decoder passes over what it does not know: one spelling only.
    if (bytes.length !== CURSOR_BYTES || bytes.toString('base64url') !== text) throw notOurs();
    const position = Number(bytes.readBigUInt64BE(1));
    if (!Number.isSafeInteger(position) || !timingSafeEqual(bytes, seal(position))) throw notOurs();
    return position;
  }
}

function notOurs(): Refused {
  return new Refused('invalid_request', 'cursor: not one that this endpoint gave');
}
