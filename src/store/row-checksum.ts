/**
 * The checksum that is stored with each text in `detections.db`: the CRC-32 of the text and a comma, combined with the
 * row's place, so that two texts that changed places are found, too. A text is compared with it whenever it is read.
 *
 * A page is one text of up to a megabyte, with a comma between rows. Its CRC-32 is computed by one native call, and the
 * expected one from those of its rows: `crc(AB) = crc(A) * x^(8 * length of B) + crc(B)` in GF(2)
 * (https://github.com/madler/zlib/blob/v1.3.1/crc32.c, crc32_combine).
 */
import { crc32 } from 'node:zlib';
import { DatabaseDamage } from './database-errors.ts';

export type StoredText = Readonly<{ place: number; body: Uint8Array | string; checksum: number }>;

const WORD = 2 ** 32;
const COMMA = Buffer.from(',');

/** Odd factors: no change of one half of the place leaves the result as it was. */
const hashOf = (place: number): number => Math.imul(place, 0x9e3779b1) ^ Math.imul(place / WORD, 0x85ebca6b);

/** @param parts of the text, UTF-8; @returns a signed integer of 32 bits: SQLite stores it in four bytes */
export function rowChecksum(place: number, ...parts: readonly (Uint8Array | string)[]): number {
  const crc = parts.reduce<number>((before, part) => crc32(part, before), 0);
  return crc32(COMMA, crc) ^ hashOf(place);
}

/** @throws DatabaseDamage unless a text is the one that was stored there */
export function requireChecksum({ place, body, checksum }: StoredText): void {
  if (rowChecksum(place, body) !== checksum) throw damaged();
}

const damaged = (): DatabaseDamage => new DatabaseDamage('a stored detection does not match its checksum');

/**
 * An aggregate for {@link requireChecksums}, of the rows whose texts the same aggregation joins by commas: of each row
 * the length of its text in bytes, times 2^32, plus its checksum.
 */
export const sealsSql = (body: string, checksum: string): string =>
  `group_concat(octet_length(${body}) << 32 | (${checksum} & 0xffffffff)) AS seals`;

/**
 * @param data the texts, joined by commas
 * @param places of the texts, in the page's order
 * @param seals of {@link sealsSql}
 * @returns the length of each text in bytes, in the page's order
 * @throws DatabaseDamage unless every text is the one that was stored at its place
 */
export function requireChecksums(data: Buffer, places: readonly number[], seals: string): number[] {
  const lengths: number[] = [];
  let crc = 0;
  for (const [row, seal] of numbersOf(seals).entries()) {
    const length = Math.floor(seal / WORD);
    lengths.push(length);
    crc = multiplied(powerOf(length + 1), crc) ^ seal ^ hashOf(places[row] ?? 0);
  }
  if (lengths.length !== places.length || (crc32(COMMA, crc32(data)) | 0) !== crc) throw damaged();
  return lengths;
}

/** @param list of `group_concat`: `1,2,…` */
export const numbersOf = (list: string): number[] => JSON.parse(`[${list}]`);

/** The polynomial of CRC-32, its bits reversed as in all that follows: the highest bit is that of x^0. */
const POLYNOMIAL = 0xedb88320 | 0;
const ONE = 1 << 31;
const X_8 = 1 << 23;

/** The product of two polynomials, modulo that of CRC-32. */
function multiplied(a: number, b: number): number {
  let product = 0;
  for (let bit = 0; bit < 32; bit += 1) {
    product ^= b & (a >> 31);
    a <<= 1;
    b = (b >>> 1) ^ (POLYNOMIAL & -(b & 1));
  }
  return product;
}

/** Texts are seldom longer. */
const POWERS_MAX = 8192;
const powers = new Int32Array(POWERS_MAX);
let powersKnown = 0;

/** x^(8 * bytes). */
function powerOf(bytes: number): number {
  if (bytes >= POWERS_MAX) {
    const half = bytes >>> 1;
    return multiplied(powerOf(half), powerOf(bytes - half));
  }
  for (; powersKnown <= bytes; powersKnown += 1)
    powers[powersKnown] = powersKnown === 0 ? ONE : multiplied(powers[powersKnown - 1] ?? 0, X_8);
  return powers[bytes] ?? 0;
}
