/**
 * How long the program itself chooses to wait before it checks or tries something again. Tests shorten these waits with
 * WIREWATCH_HASTE, a factor; whatever the contract, a protocol or a setting states is not paced.
 */
const haste = Math.max(1, Number(process.env.WIREWATCH_HASTE) || 1);

/** @param ms the wait outside of tests */
export function paced(ms: number): number {
  return ms / haste;
}
