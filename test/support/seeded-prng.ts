/** Reproducible random choices. */
import { createDraws, type Prng } from '../../src/tools/generate/prng.ts';

/** @returns the items in a random order */
export function shuffled<Item>(prng: Prng, items: readonly Item[]): Item[] {
  const places = items.map((item) => ({ item, at: prng.unit() }));
  return places.sort((one, other) => one.at - other.at).map(({ item }) => item);
}

/**
 * @param purpose makes the choices of two uses of one seed independent
 * @param number makes the choices of several items with the same purpose independent
 */
export const seededPrng = (seed: string | number, purpose: string, number = 0): Prng =>
  createDraws(String(seed))(purpose, number, 0);
