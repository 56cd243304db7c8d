/** The checksums of texts: no text is taken for another one, alone or in a page. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DatabaseDamage } from '../../src/store/database-errors.ts';
import {
  type Checksums,
  checksumsSql,
  requireChecksum,
  requireChecksums,
  rowChecksum,
} from '../../src/store/row-checksum.ts';
import { createTestStore } from '../support/store.ts';

interface Row {
  readonly place: number;
  readonly position: number;
  readonly body: Buffer;
  readonly checksum: number;
}

const rowArbitrary = fc
  .record({
    place: fc.integer({ min: 2 ** 34, max: Number.MAX_SAFE_INTEGER }),
    position: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    body: fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => Buffer.from(`{${text}}`)),
  })
  .map((row): Row => ({ ...row, checksum: rowChecksum(row, row.body) }));
const pageArbitrary = fc.array(rowArbitrary, { minLength: 1, maxLength: 8 });

function join(rows: readonly Row[]): Buffer {
  return Buffer.concat(rows.flatMap(({ body }) => [Buffer.from(','), body])).subarray(1);
}

/** As {@link checksumsSql} lists them. */
function listOf(rows: readonly Row[]): Checksums {
  return {
    places: rows.map(({ place }) => place).join(),
    positions: rows.map(({ position }) => position).join(),
    seals: rows.map(({ body, checksum }) => body.length * 2 ** 32 + (checksum >>> 0)).join(),
  };
}

describe('a page', () => {
  test('of stored texts is accepted, however long they are', () => {
    const long = (length: number): Row => {
      const row = { place: 2 ** 34 + length, position: length, body: Buffer.alloc(length, 'x') };
      return { ...row, checksum: rowChecksum(row, row.body) };
    };
    for (const length of [0, 8190, 8191, 8192, 8193, 100_001]) {
      const rows = [long(length), long(5), long(length)];
      assert.deepEqual(requireChecksums(join(rows), listOf(rows), 0), {
        places: rows.map(({ place }) => place),
        lengths: [length, 5, length],
      });
    }
    fc.assert(
      fc.property(pageArbitrary, (rows) => {
        requireChecksums(join(rows), listOf(rows), 0);
      }),
    );
  });

  test('with any other bit is refused', () => {
    fc.assert(
      fc.property(pageArbitrary, fc.nat(), (rows, bit) => {
        const data = Buffer.from(join(rows));
        const at = (bit >> 3) % data.length;
        data[at] = (data[at] ?? 0) ^ (1 << (bit & 7));
        assert.throws(() => requireChecksums(data, listOf(rows), 0), DatabaseDamage);
      }),
      { numRuns: 2_000 },
    );
  });

  test('whose places, positions or checksums have another bit is refused', () => {
    fc.assert(
      fc.property(
        pageArbitrary,
        fc.nat(),
        fc.constantFrom('place', 'position', 'checksum'),
        fc.nat({ max: 52 }),
        (rows, at, column, bit) => {
          const damaged = rows.map((row, index) =>
            index === at % rows.length
              ? { ...row, [column]: withBit(row[column], column === 'checksum' ? bit % 32 : bit) }
              : row,
          );
          assert.throws(() => requireChecksums(join(rows), listOf(damaged), 0), DatabaseDamage);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('with two texts in the place of one another is refused', () => {
    const [one, other] = [1, 2].map((at) => ({ place: 2 ** 34 + at, position: at }));
    assert.ok(one !== undefined && other !== undefined);
    const rows = [
      { ...one, body: Buffer.from('{"id":"a"}'), checksum: rowChecksum(one, '{"id":"a"}') },
      { ...other, body: Buffer.from('{"id":"b"}'), checksum: rowChecksum(other, '{"id":"b"}') },
    ];
    const swapped = rows.map((row, at) => ({ ...row, ...textOf(rows[1 - at]) }));
    assert.throws(() => requireChecksums(join(swapped), listOf(swapped), 0), DatabaseDamage);
    for (const row of swapped) assert.throws(() => requireChecksum(row), DatabaseDamage);
  });
});

function textOf(row: Row | undefined) {
  return row && { body: row.body, checksum: row.checksum };
}

function withBit(value: number, bit: number): number {
  return Number(BigInt(value) ^ (1n << BigInt(bit)));
}

test('a text in two parts has the checksum of the whole, and SQL lists what is compared', () => {
  const at = { place: 2 ** 34 + 1, position: 1 };
  assert.equal(rowChecksum(at, '{"a":', Buffer.from('"ä"}')), rowChecksum(at, '{"a":"ä"}'));
  const store = createTestStore();
  try {
    store.deliver(
      [1, 2, 3].map((article_id) => ({ content_type: 'text', version: 1, row: { article_id } })),
      1,
    );
    const page = store.reader
      .prepare<[], Checksums & { readonly data: Buffer }>(
        `SELECT CAST(group_concat(body, ',') AS BLOB) AS data,
          ${checksumsSql('place & 17179869183', 'position', 'body', 'checksum')} FROM stream_row`,
      )
      .get();
    assert.ok(page !== undefined);
    assert.deepEqual(
      requireChecksums(page.data, page, 2 ** 34).places,
      [1, 2, 3].map((at) => 2 ** 34 + at),
    );
  } finally {
    store.close();
  }
});
