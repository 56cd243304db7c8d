/** A rule that must hold for whatever values fast-check makes up. */
import fc from 'fast-check';

/** @param runs how many values are tried @param args arbitraries, then the check of a value of each */
export function forAll<Values extends [unknown, ...unknown[]]>(
  runs: number,
  ...args: [...{ [At in keyof Values]: fc.Arbitrary<Values[At]> }, (...values: Values) => void]
): void {
  fc.assert(fc.property<Values>(...args), { numRuns: runs });
}
