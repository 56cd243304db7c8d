/**
 * Pseudo-random numbers that are seeded by coordinates.
 *
 * A sample file must be the same on every machine, and each row must be independent of the rows before it. So every story,
 * article and detection begins a sequence of its own, instead of drawing from one long one.
 */
import { hash } from 'node:crypto';

export type Prng = ReturnType<typeof createPrng>;
export type Draws = ReturnType<typeof createDraws>;

/** @returns gives the generator of a purpose, moved to the start of the sequence of two coordinates */
export function createDraws(seed: string) {
  const prngs = new Map<string, Prng>();
  return (purpose: string, first: number, second: number): Prng => {
    const prng = prngs.get(purpose) ?? createPrng(seed, purpose);
    prngs.set(purpose, prng);
    prng.begin(first, second);
    return prng;
  };
}

/** Chris Doty-Humphrey's sfc32: 128 bits of state; passes PractRand. */
function createPrng(seed: string, purpose: string) {
  const digest = hash('sha256', JSON.stringify([seed, purpose]), 'buffer');
  const key = [digest.readUInt32LE(0), digest.readUInt32LE(4)] as const;
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
  function begin(first: number, second: number): void {
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

  return { begin, uint32, unit, below, chance, pick };
}
