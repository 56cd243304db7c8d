/**
 * Cursors of the period endpoint. A cursor holds a place in a walk, the period and time zone that the walk began with, and
 * a hash of the account and the request: used with another request it would skip or repeat detections. It does not hold
 * what the key reads, which may change meanwhile. It is sealed, so a place is always one that was given out.
 */
import { hash } from 'node:crypto';
import { createSeal, deriveKey } from '../seal.ts';
import { invalid } from './parameters.ts';
import type { Period } from './period.ts';

/** The last detection before the page. */
export interface PeriodPlace {
  /** Epoch seconds: its `first_detected_at`. */
  readonly second: number;
  readonly id: string;
}

export interface PeriodWalk {
  /** The period that was resolved for the first page. */
  readonly period: Period;
  /** The name that its answers show. */
  readonly time_zone: string;
  readonly place: PeriodPlace;
}

export type QueryCursors = ReturnType<typeof createQueryCursors>;

const FORMAT = 1;
const HASH_START = 1;
const HASH_BYTES = 16;
const NUMBERS_START = HASH_START + HASH_BYTES;
const NUMBER_BYTES = 8;
const TEXT_START = NUMBERS_START + 3 * NUMBER_BYTES;
const SIGNATURE_BYTES = 16;
/** Ids have at most 51 bytes, names of zones 64; neither has a space. */
const CURSOR_CHARACTERS_MAX = 240;

/** A hash of a request's normal form. @param form JSON values in a fixed order: sets sorted, without duplicates */
export function hashRequest(form: readonly unknown[]): Buffer {
  return hash('sha256', JSON.stringify(form), 'buffer').subarray(0, HASH_BYTES);
}

/** @param secret of the data folder */
export function createQueryCursors(secret: Buffer) {
  const { seal, open } = createSeal(deriveKey(secret, 'query-cursor'), SIGNATURE_BYTES);

  return {
    encode(request: Buffer, { period, time_zone, place }: PeriodWalk): string {
      const head = Buffer.alloc(TEXT_START);
      head[0] = FORMAT;
      request.copy(head, HASH_START);
      for (const [index, number] of [period.from, period.to, place.second].entries())
        head.writeBigInt64BE(BigInt(number), NUMBERS_START + index * NUMBER_BYTES);
      return seal(Buffer.concat([head, Buffer.from(`${place.id} ${time_zone}`)]));
    },
    /** @throws Refused `invalid_request` for a text that `encode` never gave, or gave for another request */
    decode(text: string, request: Buffer): PeriodWalk {
      const content = text.length > CURSOR_CHARACTERS_MAX ? null : open(text);
      if (content === null)
        throw invalid(
          'cursor: invalid; use next_cursor from this endpoint, or leave cursor out to start again',
        );
      if (!content.subarray(HASH_START, NUMBERS_START).equals(request))
        throw invalid('cursor: the period or filters changed; start again');
      const number = (index: number) => Number(content.readBigInt64BE(NUMBERS_START + index * NUMBER_BYTES));
      const [id = '', time_zone = ''] = content.subarray(TEXT_START).toString().split(' ');
      return { period: { from: number(0), to: number(1) }, time_zone, place: { second: number(2), id } };
    },
  };
}
