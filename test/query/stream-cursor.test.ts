/** Cursors of the change stream: each has one spelling, and only issued ones are accepted (contract: Cursors). */
import assert from 'node:assert/strict';
import { createCipheriv } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { createStreamCursors } from '../../src/query/stream-cursor.ts';
import { Refused } from '../../src/refused.ts';
import { deriveKey } from '../../src/seal.ts';

const SECRET = Buffer.alloc(32, 1);
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const place = fc.record({ position: fc.maxSafeNat(), epoch: fc.nat(2 ** 24 - 1) }, { noNullPrototype: true });
const START = { position: 0, epoch: 0 };

function isRefused(text: string, secret = SECRET): boolean {
  try {
    createStreamCursors(secret).decode(text);
    return false;
  } catch (error) {
    return (
      error instanceof Refused &&
      error.message === 'cursor: invalid; use next_cursor from this endpoint, or start again with since'
    );
  }
}

test('a cursor contains its position and epoch, and another process with the secret can read it', () => {
  fc.assert(
    fc.property(place, place, (first, second) => {
      const cursors = createStreamCursors(SECRET);
      for (const at of [first, second, { ...second, epoch: first.epoch }, first, START]) {
        assert.match(cursors.encode(at), /^[\w-]{22}$/);
        assert.deepEqual(createStreamCursors(SECRET).decode(cursors.encode(at)), at);
      }
    }),
  );
});

test('a cursor of an earlier version is valid: its format is stable', () => {
  const given = 'vEEz9_nMB-9gd7TQcKD5Tw';
  const secret = Buffer.alloc(32, 7);
  const at = { position: 1_795_000_000_000_000, epoch: 0 };
  assert.deepEqual(createStreamCursors(secret).decode(given), at);
  assert.equal(createStreamCursors(secret).encode(at), given);
});

test('cursors reveal nothing of their positions: between neighbours every bit changes half of the time', () => {
  const cursors = createStreamCursors(SECRET);
  const blockAt = (at: number) => [
    ...Buffer.from(cursors.encode({ position: 1_795_000_000_000_000 + at, epoch: 0 }), 'base64url'),
  ];
  const changes = Array<number>(16 * 8).fill(0);
  for (let at = 0; at < 1000; at += 1) {
    const next = blockAt(at + 1);
    for (const [byte, value] of blockAt(at).entries()) {
      for (let bit = 0; bit < 8; bit += 1) {
        const index = byte * 8 + bit;
        changes[index] = (changes[index] ?? 0) + (((value ^ (next[byte] ?? 0)) >> bit) & 1);
      }
    }
  }
  assert.ok(Math.min(...changes) > 400 && Math.max(...changes) < 600, changes.join(' '));
});

test('any changed character is refused, at every position', () => {
  const cursor = createStreamCursors(SECRET).encode({ position: 1_763_719_200_000_000, epoch: 70_000 });
  for (let at = 0; at < cursor.length; at += 1) {
    for (const character of `${ALPHABET}=+/ .`) {
      if (character === cursor[at]) continue;
      assert.ok(isRefused(cursor.slice(0, at) + character + cursor.slice(at + 1)), `${character} at ${at}`);
    }
  }
});

test('other lengths, other spellings and other secrets are refused', () => {
  const cursor = createStreamCursors(SECRET).encode({ position: 5, epoch: 0 });
  for (const text of [
    '',
    cursor.slice(1),
    cursor.slice(0, -1),
    `${cursor}A`,
    `${cursor}==`,
    ` ${cursor}`,
    `${cursor}\n`,
  ]) {
    assert.ok(isRefused(text), JSON.stringify(text));
  }
  assert.ok(isRefused(cursor, Buffer.alloc(32, 2)));
});

test('the cache of the last cursor changes no result', () => {
  const cursors = createStreamCursors(SECRET);
  const fresh = (at: { position: number; epoch: number }) => createStreamCursors(SECRET).encode(at);
  const other = { position: 7, epoch: 0 };
  for (const position of [5, 5, 6, 5, 0, 0])
    for (const epoch of [0, 1, 1]) {
      const at = { position, epoch };
      const cursor = cursors.encode(at);
      assert.equal(cursor, fresh(at));
      assert.deepEqual(cursors.decode(cursor), at);
      assert.deepEqual(cursors.decode(fresh(other)), other);
      assert.throws(() => cursors.decode(`${cursor.slice(0, -1)}!`), Refused);
    }
});

test('no text that was not issued is accepted', () => {
  fc.assert(fc.property(fc.string({ maxLength: 40 }), (text) => isRefused(text)));
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) =>
      isRefused(Buffer.from(bytes).toString('base64url')),
    ),
  );
});

test('a block without a valid position is refused, even if encrypted with the key', () => {
  const key = deriveKey(SECRET, 'stream-cursor-block');
  const cursorOf = (hex: string) => {
    const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
    return cipher.update(Buffer.from(hex, 'hex')).toString('base64url');
  };
  assert.ok(!isRefused(cursorOf('0000000000000000001fffffffffffff')));
  assert.ok(isRefused(cursorOf('00000000000000000020000000000000')), 'beyond the greatest position');
  assert.ok(isRefused(cursorOf('0100000000000000001fffffffffffff')));
  assert.ok(isRefused(cursorOf('0000000001000000001fffffffffffff')));
  assert.ok(!isRefused(cursorOf('0000000000ffffff001fffffffffffff')));
});
