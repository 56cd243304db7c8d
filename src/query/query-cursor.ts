/**
 * Cursors of the period endpoint (contract: Cursors, QueryCursor).
 *
 * A cursor says where in a walk its holder stands, freezes period and time zone as the walk began with them, and
 * carries a hash of what was asked: used with anything else it would skip or repeat detections without a word. What
 * the key reads is no part of it: somebody may change that while the walk goes on. It is authenticated, so that a
 * place is always one that was given out.
 */
import { createHmac, createSecretKey, hash, timingSafeEqual } from 'node:crypto';
import { deriveKey } from '../store/derived-key.ts';
import { invalid } from './parameters.ts';
import type { Period } from './period.ts';

/** The detection behind which a page begins. */
export interface PeriodPlace {
  /** Epoch seconds: its `first_detected_at`. */
  readonly second: number;
  readonly id: string;
}

export interface PeriodWalk {
  /** As it was resolved for the first page. */
  readonly period: Period;
  /** The name that its answers show. */
  readonly time_zone: string;
  readonly place: PeriodPlace;
}

export interface QueryCursors {
  /** @param request of {@link hashRequest} */
  encode(request: Buffer, walk: PeriodWalk): string;
  /** @throws Refused `invalid_request` for a text that `encode` never gave, or gave for another request */
  decode(text: string, request: Buffer): PeriodWalk;
}

const FORMAT = 1;
const HASH_START = 1;
const HASH_BYTES = 16;
const NUMBERS_START = HASH_START + HASH_BYTES;
const NUMBER_BYTES = 8;
const TEXT_START = NUMBERS_START + 3 * NUMBER_BYTES;
const MAC_BYTES = 16;
/** Ids have at most 51 bytes, names of zones 64; neither has a space. */
const CURSOR_CHARACTERS_MAX = 240;

/** A hash of a request's normal form. @param form JSON values in a fixed order: sets sorted, without duplicates */
export function hashRequest(form: readonly unknown[]): Buffer {
  return hash('sha256', JSON.stringify(form), 'buffer').subarray(0, HASH_BYTES);
}

/** @param secret of the data folder */
export function createQueryCursors(secret: Buffer): QueryCursors {
  const key = createSecretKey(deriveKey(secret, 'query-cursor'));
  const mac = (bytes: Buffer) => createHmac('sha256', key).update(bytes).digest().subarray(0, MAC_BYTES);

  return {
    encode(request, { period, time_zone, place }) {
      const bytes = Buffer.alloc(TEXT_START);
      bytes[0] = FORMAT;
      request.copy(bytes, HASH_START);
      for (const [index, number] of [period.from, period.to, place.second].entries()) {
        bytes.writeBigInt64BE(BigInt(number), NUMBERS_START + index * NUMBER_BYTES);
      }
      const content = Buffer.concat([bytes, Buffer.from(`${place.id} ${time_zone}`)]);
      return Buffer.concat([content, mac(content)]).toString('base64url');
    },
    decode(text, request) {
      if (text.length > CURSOR_CHARACTERS_MAX) throw notOurs();
      const bytes = Buffer.from(text, 'base64url');
      // The last character can have bits to spare, and the decoder passes over what it does not know: one spelling
      // only.
      if (bytes.length < TEXT_START + MAC_BYTES || bytes.toString('base64url') !== text) throw notOurs();
      const content = bytes.subarray(0, -MAC_BYTES);
      if (!timingSafeEqual(bytes.subarray(-MAC_BYTES), mac(content))) throw notOurs();
      if (!content.subarray(HASH_START, NUMBERS_START).equals(request)) {
        throw invalid('cursor: the period or filters changed; start again');
      }
      const number = (index: number) => Number(content.readBigInt64BE(NUMBERS_START + index * NUMBER_BYTES));
      const [id = '', time_zone = ''] = content.subarray(TEXT_START).toString().split(' ');
      return { period: { from: number(0), to: number(1) }, time_zone, place: { second: number(2), id } };
    },
  };
}

function notOurs() {
  return invalid('cursor: invalid; use next_cursor from this endpoint, or leave cursor out to start again');
}
