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

/**
 * Faults of one file that one test must catch: each edit, and the promise that it breaks. An edit is written as by
 * `git diff --word-diff`: `[-what goes-]` and `{+what comes+}` within the text around it.
 */
export function faultsIn(
  file: string,
  test: string,
  faults: Readonly<Record<string, string>>,
): PlantedFault[] {
  return Object.entries(faults).map(([edit, breaks]) => {
    const find = edit.replace(/\{\+.*?\+\}/s, '').replace(/\[-(.*?)-\]/s, '$1');
    const replace = edit.replace(/\[-.*?-\]/s, '').replace(/\{\+(.*?)\+\}/s, '$1');
    return { file, find, replace, breaks, test };
  });
}
