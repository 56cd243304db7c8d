/** Repeatable random choices. */
import { createPrng, type Prng, seedKey } from '../../src/generate/prng.ts';

/**
 * @param purpose keeps the choices of two uses of one seed apart
 * @param number of one of many alike, each with choices of its own
 */
export function seededPrng(seed: string | number, purpose: string, number = 0): Prng {
  const prng = createPrng();
  prng.reseed(seedKey(String(seed), purpose), number, 0);
  return prng;
}
