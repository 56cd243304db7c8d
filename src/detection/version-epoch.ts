/**
 * What a version epoch does to versions. After a disaster it cannot be proven that they match what clients saw, so they
 * are raised once: no client takes newer content for older.
 */

/** Far more than the versions that a detection gathers in what may be lost. */
export const RAISE_VERSIONS = 1000;

/** The first version of a detection. @param raisesMs when there were raises, epoch milliseconds */
export function firstVersion(firstDetectedSeconds: number, raisesMs: readonly number[]): number {
  // What was detected after a raise cannot have been known before it.
  const before = raisesMs.filter((atMs) => firstDetectedSeconds * 1000 < atMs);
  return 1 + RAISE_VERSIONS * before.length;
}

/**
 * The version after a visible change.
 *
 * @param next what it would be without raises
 * @param outstanding raises since the version before
 */
export function raisedVersion(next: number, outstanding: number): number {
  return next + RAISE_VERSIONS * outstanding;
}
