/**
 * Cursors of both lists. Only what was given out is accepted, in its one spelling.
 *
 * A cursor of the change stream holds a position in the order of arrival and the epoch that issued it, and nothing else,
 * so it is valid with any filter, and outlives keys and accounts. It is one encrypted block: positions count the changes
 * of all customers and contain the time, so in the clear they would show how much others receive, and when.
 *
 * A cursor of the period endpoint holds a place in a walk, the period and time zone that the walk began with, and a hash
 * of the account and the request: used with another request it would skip or repeat detections. It does not hold what the
 * key reads, which may change meanwhile.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hash } from 'node:crypto';
import type { StreamPosition } from '../log/version-epoch.ts';
import { createSeal, decodeBase64url, deriveKey } from '../seal.ts';
import { invalid } from './parameters.ts';
import type { Period } from './period.ts';

export type { StreamPosition };

/** A single block needs no mode of operation; equal positions give equal texts. */
const CIPHER = 'aes-256-ecb';
const BLOCK_BYTES = 16;
/** The first 40 bits of a block are zero, and 11 before the position: random bits pass once in 2^51. */
const EPOCH_START = 5;
const EPOCH_BYTES = 3;
const POSITION_START = 8;
const STREAM_CURSOR_CHARACTERS = Math.ceil((BLOCK_BYTES * 8) / 6);

/** @param secret of the data folder */
export function createStreamCursors(secret: Buffer) {
  const key = createSecretKey(deriveKey(secret, 'stream-cursor-block'));
  // Kept, since making one takes longer than its work. Without padding they keep no state between complete blocks.
  const cipher = createCipheriv(CIPHER, key, null).setAutoPadding(false);
  const decipher = createDecipheriv(CIPHER, key, null).setAutoPadding(false);
  const refused = () =>
    invalid('cursor: invalid; use next_cursor from this endpoint, or start again with since');

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
      const bytes = text.length === STREAM_CURSOR_CHARACTERS ? decodeBase64url(text) : null;
      if (bytes === null) throw refused();
      const block = decipher.update(bytes);
      const position = Number(block.readBigUInt64BE(POSITION_START));
      if (block.readUIntBE(0, EPOCH_START) !== 0 || !Number.isSafeInteger(position)) throw refused();
      return { position, epoch: block.readUIntBE(EPOCH_START, EPOCH_BYTES) };
    },
  };
}

/** The last detection before a page of a period. `second`: its `first_detected_at`, epoch seconds. */
export type PeriodPlace = Readonly<{ second: number; id: string }>;

/** `period`: as it was resolved for the first page; `time_zone`: the name that its answers show. */
export type PeriodWalk = Readonly<{ period: Period; time_zone: string; place: PeriodPlace }>;

const SIGNATURE_BYTES = 16;
const HASH_CHARACTERS = 32;
/** Ids have at most 51 characters, names of zones 64. */
const QUERY_CURSOR_CHARACTERS_MAX = 320;

/** A hash of a request's normal form. @param form JSON values in a fixed order: sets sorted, without duplicates */
export const hashRequest = (form: readonly unknown[]): string =>
  hash('sha256', JSON.stringify(form)).slice(0, HASH_CHARACTERS);

/** @param secret of the data folder */
export function createQueryCursors(secret: Buffer) {
  const { seal, open } = createSeal(deriveKey(secret, 'query-cursor'), SIGNATURE_BYTES);

  return {
    /** @param request of {@link hashRequest} */
    encode(request: string, { period, time_zone, place }: PeriodWalk): string {
      const content = [request, period.from, period.to, time_zone, place.second, place.id];
      return seal(Buffer.from(JSON.stringify(content)));
    },
    /** @throws Refused `invalid_request` for a text that `encode` never gave, or gave for another request */
    decode(text: string, request: string): PeriodWalk {
      const content = text.length > QUERY_CURSOR_CHARACTERS_MAX ? null : open(text);
      if (content === null)
        throw invalid(
          'cursor: invalid; use next_cursor from this endpoint, or leave cursor out to start again',
        );
      const [given, from, to, time_zone, second, id] = JSON.parse(content.toString());
      if (given !== request) throw invalid('cursor: the period or filters changed; start again');
      return { period: { from, to }, time_zone, place: { second, id } };
    },
  };
}
