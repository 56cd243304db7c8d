/** Reproducible random choices. */
import { createPrng, type Prng, seedKey } from '../../src/tools/generate/prng.ts';

/**
 * @param purpose makes the choices of two uses of one seed independent
 * @param number makes the choices of several items with the same purpose independent
 */
export function seededPrng(seed: string | number, purpose: string, number = 0): Prng {
  const prng = createPrng();
  prng.reseed(seedKey(String(seed), purpose), number, 0);
  return prng;
}
