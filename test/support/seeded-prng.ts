/** Reproducible random choices. */
import { createDraws, type Prng } from '../../src/tools/generate/prng.ts';

/**
 * @param purpose makes the choices of two uses of one seed independent
 * @param number makes the choices of several items with the same purpose independent
 */
export function seededPrng(seed: string | number, purpose: string, number = 0): Prng {
  return createDraws(String(seed))(purpose, number, 0);
}
