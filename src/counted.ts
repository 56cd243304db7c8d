/** Numbers in texts for people. No I/O. */

/** A number of things: `1 key`, `12,000 keys`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** A number with separators if it has five digits or more. */
export function grouped(count: number): string {
  return Math.abs(count) < 10_000 ? String(count) : count.toLocaleString('en-US');
}
