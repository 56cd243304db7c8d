/**
 * The checksum that is stored with each text in `detections.db`: the CRC-32 of the text and a comma, combined with the
 * row's place and position, so that two texts that changed places are found, too. A text is compared with it whenever it is
 * read.
 *
 * A page is one text of up to a megabyte, with a comma between rows. Its CRC-32 is computed by one native call, and the expected one from those of
 * its rows: `crc(AB) = crc(A) * x^(8 * length of B) + crc(B)` in GF(2)
 * (https://github.com/madler/zlib/blob/v1.3.1/crc32.c, crc32_combine).
 */
import { crc32 } from 'node:zlib';
import { DatabaseDamage } from './database-errors.ts';

/** Where a text is stored. */
export interface TextPlace {
  readonly place: number;
  /** 0 for the text of a detection that was scored again. */
  readonly position: number;
}

/** A stored text with its checksum. */
export interface StoredText extends TextPlace {
  readonly body: Uint8Array | string;
  readonly checksum: number;
}

/** Odd numbers: no change of one factor leaves the product as it was. */
const FACTORS = [0x9e3779b1, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f] as const;
const WORD = 2 ** 32;
const COMMA = Buffer.from(',');

function hashOf({ place, position }: TextPlace): number {
  return (
    Math.imul(place, FACTORS[0]) ^
    Math.imul(place / WORD, FACTORS[1]) ^
    Math.imul(position, FACTORS[2]) ^
    Math.imul(position / WORD, FACTORS[3])
  );
}

/** @param parts of the text, UTF-8; @returns a signed integer of 32 bits: SQLite stores it in four bytes */
export function rowChecksum(at: TextPlace, ...parts: readonly (Uint8Array | string)[]): number {
  return (
    crc32(
      COMMA,
      parts.reduce<number>((crc, part) => crc32(part, crc), 0),
    ) ^ hashOf(at)
  );
}

/** @throws DatabaseDamage unless a text is the one that was stored there */
export function requireChecksum(text: StoredText): void {
  if (rowChecksum(text, text.body) !== text.checksum) throw damaged();
}

function damaged(): DatabaseDamage {
  return new DatabaseDamage('a stored detection does not match its checksum');
}

/**
 * Aggregates for {@link requireChecksums}, of the rows whose texts the same aggregation joins by commas. Three lists take
 * half the time of one with all numbers.
 */
export function checksumsSql(place: string, position: string, body: string, checksum: string): string {
  return `group_concat(${place}) AS places, group_concat(${position}) AS positions,
    group_concat(octet_length(${body}) << 32 | (${checksum} & 0xffffffff)) AS seals`;
}

/** What {@link checksumsSql} gives; null: there are no rows. */
export interface Checksums {
  readonly places: string;
  readonly positions: string;
  /** Length of the text in bytes, times 2^32, plus checksum. */
  readonly seals: string;
}

/**
 * @param data the texts, joined by commas
 * @param low added to each place
 * @returns the place of each row, and the length of its text in bytes, in the page's order
 * @throws DatabaseDamage unless every text is the one that was stored at its place
 */
export function requireChecksums(data: Buffer, checksums: Checksums, low: number) {
  const places = numbersOf(checksums.places, low);
  const positions = numbersOf(checksums.positions, 0);
  const seals = numbersOf(checksums.seals, 0);
  const lengths: number[] = [];
  let crc = 0;
  for (const [row, seal] of seals.entries()) {
    const length = Math.floor(seal / WORD);
    lengths.push(length);
    const at = { place: places[row] ?? 0, position: positions[row] ?? 0 };
    crc = multiplied(powerOf(length + 1), crc) ^ seal ^ hashOf(at);
  }
  if ((crc32(COMMA, crc32(data)) | 0) !== crc) throw damaged();
  return { places, lengths };
}

const COMMA_CODE = 0x2c;
const ZERO_CODE = 0x30;

/** Reads `1,2,…` digit by digit: four times faster than split. @param low added to each */
function numbersOf(list: string, low: number): number[] {
  const numbers: number[] = [];
  let number = 0;
  for (let at = 0; at < list.length; at += 1) {
    const code = list.charCodeAt(at);
    if (code === COMMA_CODE) {
      numbers.push(low + number);
      number = 0;
    } else number = number * 10 + (code - ZERO_CODE);
  }
  numbers.push(low + number);
  return numbers;
}

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
