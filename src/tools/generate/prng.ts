/**
 * Pseudo-random numbers that are seeded by coordinates.
 *
 * A sample file must be the same on every machine, and each row must be independent of the rows before it. So every story,
 * article and detection begins a sequence of its own, instead of drawing from one long one.
 */
import { hash } from 'node:crypto';
import { getOrMake } from '../../get-or-make.ts';

export type Prng = ReturnType<typeof createPrng>;
export type Draws = ReturnType<typeof createDraws>;

/** @returns makes the generator of a purpose, at the start of the sequence of two coordinates */
export function createDraws(seed: string) {
  const keys = new Map<string, Buffer>();
  return (purpose: string, first: number, second: number) => {
    const key = getOrMake(keys, purpose, () => hash('sha256', JSON.stringify([seed, purpose]), 'buffer'));
    return createPrng(key, first, second);
  };
}

/** Chris Doty-Humphrey's sfc32: 128 bits of state; passes PractRand. */
function createPrng(key: Buffer, first: number, second: number) {
  let a = key.readUInt32LE(0) ^ Math.imul(second, 0x9e3779b1);
  let b = key.readUInt32LE(4);
  let c = first | 0;
  let counter = second | 1;

  /** The next integer from 0 to 2^32 - 1. */
  function uint32(): number {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  // Neighbouring coordinates differ in few bits: without these rounds their first numbers would be similar.
  for (let round = 0; round < 12; round += 1) uint32();

  /** The next number in [0, 1). */
  const unit = () => uint32() / 4294967296;
  /** The next integer from 0 to `count` - 1. */
  const below = (count: number) => Math.floor(unit() * count);
  const chance = (probability: number) => unit() < probability;

  /** One element; the list must not be empty. */
  function pick<T>(choices: readonly T[]): T {
    const choice = choices[below(choices.length)];
    if (choice === undefined) throw new RangeError('nothing to pick from');
    return choice;
  }

  return { uint32, unit, below, chance, pick };
}
