/** A planted fault: one edit of the source. */
export interface PlantedFault {
  /** In `src/`. */
  readonly file: string;
  /** Must occur exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The promise that the fault breaks, in words. */
  readonly breaks: string;
  /** The smallest test file that must fail: `NAME.test.ts`. */
  readonly test: string;
}

/** Faults of one file, as tuples: text to find, replacement, broken promise, test file. */
export function faultsIn(
  file: string,
  faults: readonly (readonly [find: string, replace: string, breaks: string, test: string])[],
): PlantedFault[] {
  return faults.map(([find, replace, breaks, test]) => ({ file, find, replace, breaks, test }));
}
