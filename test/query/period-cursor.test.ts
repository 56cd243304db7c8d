/**
 * Cursors of the period endpoint: each has one spelling, and only issued ones are accepted (contract: Cursors,
 * QueryCursor).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createQueryCursors, hashRequest, type PeriodWalk } from '../../src/query/query-cursor.ts';
import { createStreamCursors } from '../../src/query/stream-cursor.ts';
import { Refused } from '../../src/refused.ts';

const SECRET = Buffer.alloc(32, 1);
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const REQUEST = hashRequest(['a']);
const WALK: PeriodWalk = {
  period: { from: 1_763_683_200, to: 1_763_769_600 },
  time_zone: 'Europe/Berlin',
  place: { second: 1_763_719_200, id: 't.7001.123.456' },
};
const NUMBER_MAX = 999_999_999_999_999;

/** The error message for a cursor; null if it is accepted. */
function refusal(text: string, { secret = SECRET, request = REQUEST } = {}): string | null {
  try {
    createQueryCursors(secret).decode(text, request);
    return null;
  } catch (error) {
    assert.ok(error instanceof Refused && error.code === 'invalid_request');
    return error.message;
  }
}

const NOT_OURS = 'cursor: invalid; use next_cursor from this endpoint, or leave cursor out to start again';
const CHANGED = 'cursor: the period or filters changed; start again';

test('a cursor contains place and period, and another process with the secret can read it', () => {
  const second = fc.integer({ min: -62_200_000_000, max: 253_500_000_000 });
  const part = fc.integer({ min: 0, max: NUMBER_MAX });
  const id = fc.tuple(fc.constantFrom('t', 'i'), part, part, part).map((parts) => parts.join('.'));
  const zone = fc.constantFrom('UTC', 'Etc/GMT-3', 'america/argentina/BUENOS_AIRES', 'z'.repeat(64));
  fc.assert(
    fc.property(second, second, second, id, zone, (from, to, at, detectionId, time_zone) => {
      const walk = { period: { from, to }, time_zone, place: { second: at, id: detectionId } };
      const text = createQueryCursors(SECRET).encode(REQUEST, walk);
      assert.match(text, /^[\w-]+$/);
      assert.deepEqual(createQueryCursors(SECRET).decode(text, REQUEST), walk);
    }),
  );
});

test('a period cursor of an earlier version is valid: its format is stable', () => {
  const given =
    'AQMDAwMDAwMDAwMDAwMDAwMAAAAAav2GwAAAAABrBq6AAAAAAGr_DWB0LjcwMDEuMTIzLjQ1NiBFdXJvcGUvQmVybGluf-y1iI4nWdSixL4tQl2z_w';
  const cursors = createQueryCursors(Buffer.alloc(32, 7));
  const request = Buffer.alloc(16, 3);
  const walk: PeriodWalk = {
    period: { from: 1_795_000_000, to: 1_795_600_000 },
    time_zone: 'Europe/Berlin',
    place: { second: 1_795_100_000, id: 't.7001.123.456' },
  };
  assert.deepEqual(cursors.decode(given, request), walk);
  assert.equal(cursors.encode(request, walk), given);
});

test('any changed character is refused, at every position', () => {
  const cursor = createQueryCursors(SECRET).encode(REQUEST, WALK);
  for (let at = 0; at < cursor.length; at += 1) {
    for (const character of `${ALPHABET}=+/ .`) {
      if (character === cursor[at]) continue;
      const changed = cursor.slice(0, at) + character + cursor.slice(at + 1);
      assert.equal(refusal(changed), NOT_OURS, `${character} at ${at}`);
    }
  }
});

test('other lengths, other spellings, other secrets and cursors of the stream are refused', () => {
  const cursor = createQueryCursors(SECRET).encode(REQUEST, WALK);
  const others = ['', cursor.slice(1), cursor.slice(0, -1), `${cursor}A`, `${cursor}AAAA`, `${cursor}==`];
  for (const text of [...others, ` ${cursor}`, `${cursor}\n`, cursor.repeat(9)]) {
    assert.equal(refusal(text), NOT_OURS, JSON.stringify(text));
  }
  assert.equal(refusal(cursor, { secret: Buffer.alloc(32, 2) }), NOT_OURS);
  assert.equal(refusal(createStreamCursors(SECRET).encode({ position: 5, epoch: 0 })), NOT_OURS);
  assert.throws(() => createStreamCursors(SECRET).decode(cursor), Refused);
  assert.equal(refusal(cursor), null);
});

test('a cursor of another request is refused, with a hint', () => {
  const cursor = createQueryCursors(SECRET).encode(REQUEST, WALK);
  assert.equal(refusal(cursor, { request: hashRequest(['b']) }), CHANGED);
});

test('no text that was not issued is accepted', () => {
  fc.assert(fc.property(fc.string({ maxLength: 220 }), (text) => refusal(text) === NOT_OURS));
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 150 }),
      (bytes) => refusal(Buffer.from(bytes).toString('base64url')) === NOT_OURS,
    ),
  );
});
