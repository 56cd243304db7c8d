/**
 * Intervals of checks and retries that the program chooses itself. Tests shorten them by the factor WIREWATCH_HASTE;
 * intervals of the API, a protocol or a setting are not changed.
 */
const haste = Math.max(1, Number(process.env.WIREWATCH_HASTE) || 1);

/** @param ms the interval outside of tests */
export const paced = (ms: number): number => ms / haste;
