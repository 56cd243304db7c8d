/** A fault as it is planted: an edit of one place of the source. */
export interface PlantedFault {
  /** In `src/`. */
  readonly file: string;
  /** Occurs exactly once in the file; otherwise the list is stale. */
  readonly find: string;
  readonly replace: string;
  /** The promise, in words. */
  readonly breaks: string;
  /** The smallest test file that must turn red: `NAME.test.ts`. */
  readonly test: string;
}

/** Faults of one file, in few lines: what is found, what stands in its place, what breaks, which test sees it. */
export function faultsIn(
  file: string,
  faults: readonly (readonly [find: string, replace: string, breaks: string, test: string])[],
): PlantedFault[] {
  return faults.map(([find, replace, breaks, test]) => ({ file, find, replace, breaks, test }));
}
