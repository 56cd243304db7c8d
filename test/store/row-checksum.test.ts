/** The checksums of texts: no text is taken for another one, alone or in a page. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DatabaseDamage } from '../../src/store/database-errors.ts';
import { requireChecksum, requireChecksums, rowChecksum, sealsSql } from '../../src/store/row-checksum.ts';
import { forAll } from '../support/for-all.ts';
import { createTestStore } from '../support/store.ts';

type Row = Readonly<{ place: number; body: Buffer; checksum: number }>;

const rowArbitrary = fc
  .record({
    place: fc.integer({ min: 2 ** 34, max: Number.MAX_SAFE_INTEGER }),
    body: fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => Buffer.from(`{${text}}`)),
  })
  .map((row): Row => ({ ...row, checksum: rowChecksum(row.place, row.body) }));
const pageArbitrary = fc.array(rowArbitrary, { minLength: 1, maxLength: 8 });

const join = (rows: readonly Row[]): Buffer =>
  Buffer.concat(rows.flatMap(({ body }) => [Buffer.from(','), body])).subarray(1);

/** As a page is read: its text, and what {@link sealsSql} lists. */
function check(rows: readonly Row[], data = join(rows)): number[] {
  const seals = rows.map(({ body, checksum }) => body.length * 2 ** 32 + (checksum >>> 0));
  const places = rows.map(({ place }) => place);
  return requireChecksums(data, places, seals.join());
}

describe('a page', () => {
  test('of stored texts is accepted, however long they are', () => {
    const long = (length: number): Row => {
      const row = { place: 2 ** 34 + length, body: Buffer.alloc(length, 'x') };
      return { ...row, checksum: rowChecksum(row.place, row.body) };
    };
    for (const length of [0, 8190, 8191, 8192, 8193, 100_001]) {
      const rows = [long(length), long(5), long(length)];
      assert.deepEqual(check(rows), [length, 5, length]);
    }
    forAll(100, pageArbitrary, (rows) => void check(rows));
  });

  test('with any other bit is refused', () => {
    forAll(2_000, pageArbitrary, fc.nat(), (rows, bit) => {
      const data = Buffer.from(join(rows));
      const at = (bit >> 3) % data.length;
      data[at] = (data[at] ?? 0) ^ (1 << (bit & 7));
      assert.throws(() => check(rows, data), DatabaseDamage);
    });
  });

  test('whose places or checksums have another bit is refused', () => {
    const column = fc.constantFrom('place', 'checksum');
    forAll(2_000, pageArbitrary, fc.nat(), column, fc.nat({ max: 52 }), (rows, at, name, bit) => {
      const change = (row: Row) => ({ [name]: withBit(row[name], name === 'checksum' ? bit % 32 : bit) });
      const damaged = rows.map((row, index) =>
        index === at % rows.length ? { ...row, ...change(row) } : row,
      );
      assert.throws(() => check(damaged), DatabaseDamage);
    });
  });

  test('with two texts in the place of one another is refused', () => {
    const rows = ['{"id":"a"}', '{"id":"b"}'].map((text, at): Row => {
      const place = 2 ** 34 + 1 + at;
      return { place, body: Buffer.from(text), checksum: rowChecksum(place, text) };
    });
    const swapped = rows.map((row, at) => ({ ...row, ...textOf(rows[1 - at]) }));
    assert.throws(() => check(swapped), DatabaseDamage);
    for (const row of swapped) assert.throws(() => requireChecksum(row), DatabaseDamage);
  });
});

const textOf = (row: Row | undefined) => row && { body: row.body, checksum: row.checksum };

const withBit = (value: number, bit: number): number => Number(BigInt(value) ^ (1n << BigInt(bit)));

test('a text in two parts has the checksum of the whole, and SQL lists what is compared', () => {
  const place = 2 ** 34 + 1;
  assert.equal(rowChecksum(place, '{"a":', Buffer.from('"ä"}')), rowChecksum(place, '{"a":"ä"}'));
  using store = createTestStore();
  for (const article_id of [1, 2, 3])
    store.deliver([{ content_type: 'text', version: 1, row: { article_id } }], 1);
  const page = store.reader
    .prepare<[], { readonly data: Buffer; readonly places: string; readonly seals: string }>(
      `SELECT CAST(group_concat(body, ',') AS BLOB) AS data, group_concat(place) AS places,
        ${sealsSql('body', 'checksum')} FROM stream_row`,
    )
    .get();
  assert.ok(page !== undefined);
  const places = page.places.split(',').map(Number);
  assert.deepEqual(places, [place, place + 1, place + 2]);
  assert.equal(requireChecksums(page.data, places, page.seals).length, 3);
});
