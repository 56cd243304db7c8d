/** Cursors of both lists: each has one spelling, and only issued ones are accepted. */
import assert from 'node:assert/strict';
import { createCipheriv } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { createQueryCursors, createStreamCursors, hashRequest } from '../../src/query/cursors.ts';
import { Refused } from '../../src/refused.ts';
import { deriveKey } from '../../src/seal.ts';
import { forAll } from '../support/for-all.ts';

const SECRET = Buffer.alloc(32, 1);
const OTHER_SECRET = Buffer.alloc(32, 2);
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const REQUEST = hashRequest(['a']);
const WALK = {
  period: { from: 1_763_683_200, to: 1_763_769_600 },
  time_zone: 'Europe/Berlin',
  place: { second: 1_763_719_200, id: 't.7001.123.456' },
};
const CHANGED = 'cursor: the period or filters changed; start again';

/** The detail for a cursor of the change stream; null if it is accepted. */
const streamRefusal = (text: string, secret = SECRET) =>
  refusal(() => createStreamCursors(secret).decode(text));
const periodRefusal = (text: string, secret = SECRET, request = REQUEST) =>
  refusal(() => createQueryCursors(secret).decode(text, request));

function refusal(decode: () => unknown): string | null {
  try {
    decode();
    return null;
  } catch (error) {
    assert.ok(error instanceof Refused && error.code === 'invalid_request');
    return error.message;
  }
}

const KINDS = {
  stream: {
    cursor: createStreamCursors(SECRET).encode({ position: 1_763_719_200_000_000, epoch: 70_000 }),
    refusal: streamRefusal,
    notOurs: 'cursor: invalid; use next_cursor from this endpoint, or start again with since',
  },
  period: {
    cursor: createQueryCursors(SECRET).encode(REQUEST, WALK),
    refusal: periodRefusal,
    notOurs: 'cursor: invalid; use next_cursor from this endpoint, or leave cursor out to start again',
  },
};

test('any changed character is refused, at every position', () => {
  for (const { cursor, refusal, notOurs } of Object.values(KINDS)) {
    assert.equal(refusal(cursor), null);
    for (let at = 0; at < cursor.length; at += 1)
      for (const character of `${ALPHABET}=+/ .`.replace(cursor[at] ?? '', '')) {
        const changed = cursor.slice(0, at) + character + cursor.slice(at + 1);
        assert.equal(refusal(changed), notOurs, `${character} at ${at}`);
      }
  }
});

test('other lengths, spellings and secrets, and cursors of another request or list, are refused', () => {
  const { stream, period } = KINDS;
  for (const { cursor, refusal, notOurs } of [stream, period]) {
    const others = ['', cursor.slice(1), cursor.slice(0, -1), `${cursor}A`, `${cursor}AAAA`, `${cursor}==`];
    for (const text of [...others, ` ${cursor}`, `${cursor}\n`, cursor.repeat(20)])
      assert.equal(refusal(text), notOurs, JSON.stringify(text));
    assert.equal(refusal(cursor, OTHER_SECRET), notOurs);
  }
  assert.equal(periodRefusal(period.cursor, SECRET, hashRequest(['b'])), CHANGED);
  assert.equal(stream.refusal(period.cursor), stream.notOurs);
  assert.equal(period.refusal(stream.cursor), period.notOurs);
});

test('cursors of an earlier version are valid: their format is stable', () => {
  const secret = Buffer.alloc(32, 7);
  const stream = createStreamCursors(secret);
  const at = { position: 1_795_000_000_000_000, epoch: 0 };
  assert.deepEqual(stream.decode('vEEz9_nMB-9gd7TQcKD5Tw'), at);
  assert.equal(createStreamCursors(secret).encode(at), 'vEEz9_nMB-9gd7TQcKD5Tw');
  const given =
    'WyIwMzAzMDMwMzAzMDMwMzAzMDMwMzAzMDMwMzAzMDMwMyIsMTc5NTAwMDAwMCwxNzk1NjAwMDAwLCJFdXJvcGUvQmVybGluIiwxNzk1MTAwMDAwLCJ0LjcwMDEuMTIzLjQ1NiJdyZwlJ3oQvbFLe0bbtqSmQQ';
  const period = createQueryCursors(secret);
  const request = '03'.repeat(16);
  const walk = {
    period: { from: 1_795_000_000, to: 1_795_600_000 },
    time_zone: 'Europe/Berlin',
    place: { second: 1_795_100_000, id: 't.7001.123.456' },
  };
  assert.deepEqual(period.decode(given, request), walk);
  assert.equal(period.encode(request, walk), given);
});

test('a cursor of the stream contains its position and epoch, whatever was encoded before', () => {
  const members = { position: fc.maxSafeNat(), epoch: fc.nat(2 ** 24 - 1) };
  const place = fc.record(members, { noNullPrototype: true });
  forAll(100, place, place, (first, second) => {
    const cursors = createStreamCursors(SECRET);
    for (const at of [first, second, { ...second, epoch: first.epoch }, first, { position: 0, epoch: 0 }]) {
      const cursor = cursors.encode(at);
      assert.match(cursor, /^[\w-]{22}$/);
      for (const by of [cursors, createStreamCursors(SECRET)]) assert.deepEqual(by.decode(cursor), at);
      assert.equal(createStreamCursors(SECRET).encode(at), cursor);
      assert.throws(() => cursors.decode(`${cursor.slice(0, -1)}!`), Refused);
    }
  });
});

test('a block without a valid position is refused, even if encrypted with the key', () => {
  const key = deriveKey(SECRET, 'stream-cursor-block');
  const isRefused = (hex: string) => {
    const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
    return streamRefusal(cipher.update(Buffer.from(hex, 'hex')).toString('base64url')) !== null;
  };
  for (const [hex, expected] of [
    ['0000000000000000001fffffffffffff', false],
    ['00000000000000000020000000000000', true],
    ['0100000000000000001fffffffffffff', true],
    ['0000000001000000001fffffffffffff', true],
    ['0000000000ffffff001fffffffffffff', false],
  ] as const)
    assert.equal(isRefused(hex), expected, hex);
});

test('a cursor of the period contains place and period', () => {
  const second = fc.integer({ min: -62_200_000_000, max: 253_500_000_000 });
  const part = fc.integer({ min: 0, max: 999_999_999_999_999 });
  const id = fc.tuple(fc.constantFrom('t', 'i'), part, part, part).map((parts) => parts.join('.'));
  const zone = fc.constantFrom('UTC', 'Etc/GMT-3', 'america/argentina/BUENOS_AIRES', 'z'.repeat(64));
  forAll(100, second, second, second, id, zone, (from, to, at, detectionId, time_zone) => {
    const walk = { period: { from, to }, time_zone, place: { second: at, id: detectionId } };
    const text = createQueryCursors(SECRET).encode(REQUEST, walk);
    assert.match(text, /^[\w-]+$/);
    assert.deepEqual(createQueryCursors(SECRET).decode(text, REQUEST), walk);
  });
});
