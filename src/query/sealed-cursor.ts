/**
 * Cursors of the change stream. A cursor holds a position in the order of arrival and the epoch that issued it, and
 * nothing else, so it is valid with any filter, and outlives keys and accounts. It is one encrypted block: positions count
 * the changes of all customers and contain the time, so in the clear they would show how much others receive, and when.
 */
import { createCipheriv, createDecipheriv, createSecretKey } from 'node:crypto';
import type { StreamPosition } from '../log/version-epoch.ts';
import { decodeBase64url, deriveKey } from '../seal.ts';
import { invalid } from './parameters.ts';

export type { StreamPosition };

export type StreamCursors = ReturnType<typeof createStreamCursors>;

/** A single block needs no mode of operation; equal positions give equal texts. */
const CIPHER = 'aes-256-ecb';
const BLOCK_BYTES = 16;
/** The first 40 bits of a block are zero, and 11 before the position: random bits pass once in 2^51. */
const EPOCH_START = 5;
const EPOCH_BYTES = 3;
const POSITION_START = 8;
const CURSOR_CHARACTERS = Math.ceil((BLOCK_BYTES * 8) / 6);

export function createStreamCursors(secret: Buffer) {
  const key = createSecretKey(deriveKey(secret, 'stream-cursor-block'));
  // Kept, since making one takes longer than its work. Without padding they keep no state between complete blocks.
  const cipher = createCipheriv(CIPHER, key, null).setAutoPadding(false);
  const decipher = createDecipheriv(CIPHER, key, null).setAutoPadding(false);

  return {
    /** @param at a position from 0, below 2^53, and an epoch below 2^24. @returns the same text for the same ones */
    encode({ position, epoch }: StreamPosition): string {
      const block = Buffer.alloc(BLOCK_BYTES);
      block.writeUIntBE(epoch, EPOCH_START, EPOCH_BYTES);
      block.writeBigUInt64BE(BigInt(position), POSITION_START);
      return cipher.update(block).toString('base64url');
    },
    /** @throws Refused `invalid_request` for a text that `encode` never gave */
    decode(text: string): StreamPosition {
      if (text.length !== CURSOR_CHARACTERS) throw invalidCursor();
      const bytes = decodeBase64url(text);
      if (bytes?.length !== BLOCK_BYTES) throw invalidCursor();
      const block = decipher.update(bytes);
      const position = Number(block.readBigUInt64BE(POSITION_START));
      if (block.readUIntBE(0, EPOCH_START) !== 0 || !Number.isSafeInteger(position)) throw invalidCursor();
      return { position, epoch: block.readUIntBE(EPOCH_START, EPOCH_BYTES) };
    },
  };
}

function invalidCursor() {
  return invalid('cursor: invalid; use next_cursor from this endpoint, or start again with since');
}
