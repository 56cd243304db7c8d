/**
 * A pseudo-random number generator that is seeded by coordinates.
 *
 * A sample file must be the same on every machine, and each row must be independent of the rows before it. So every story,
 * article and detection reseeds the generator with its own coordinates, instead of drawing from one long sequence.
 */
import { createHash } from 'node:crypto';

/** Two 32-bit words derived from a seed. */
export type SeedKey = readonly [number, number];

/** @param purpose separates two uses of one seed */
export function seedKey(seed: string, purpose: string): SeedKey {
  const digest = createHash('sha256')
    .update(JSON.stringify([seed, purpose]))
    .digest();
  return [digest.readUInt32LE(0), digest.readUInt32LE(4)];
}

/** One 32-bit number from a key and two coordinates, for a choice that needs a single draw. */
export function hash32(key: SeedKey, first: number, second: number): number {
  let h = key[0] ^ Math.imul(first, 0x9e3779b1);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b) ^ key[1];
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35) ^ Math.imul(second, 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

export type Prng = ReturnType<typeof createPrng>;

/** Chris Doty-Humphrey's sfc32: 128 bits of state; passes PractRand. */
export function createPrng() {
  let a = 0;
  let b = 0;
  let c = 0;
  let counter = 1;

  /** The next integer from 0 to 2^32 - 1. */
  function uint32(): number {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Starts the sequence of these coordinates. */
  function reseed(key: SeedKey, first: number, second: number): void {
    a = key[0] ^ Math.imul(second, 0x9e3779b1);
    b = key[1];
    c = first | 0;
    counter = second | 1;
    // Neighbouring coordinates differ in few bits: without these rounds their first numbers would be similar.
    for (let round = 0; round < 12; round += 1) uint32();
  }

  /** The next number in [0, 1). */
  const unit = () => uint32() / 4294967296;
  /** The next integer from 0 to `count` - 1. */
  const below = (count: number) => Math.floor(unit() * count);
  /** True with the given probability. */
  const chance = (probability: number) => unit() < probability;

  /** One element; the list must not be empty. */
  function pick<T>(choices: readonly T[]): T {
    const choice = choices[below(choices.length)];
    if (choice === undefined) throw new RangeError('nothing to pick from');
    return choice;
  }

  return { reseed, uint32, unit, below, chance, pick };
}
