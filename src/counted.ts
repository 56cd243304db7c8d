/** Numbers in texts for people: with their nouns, with separators. */

/** `1 key`, `12,000 keys`. */
export const counted = (count: number, singular: string, many = `${singular}s`): string =>
  `${grouped(count)} ${count === 1 ? singular : many}`;

/** A number for people: with separators from five digits on. */
export function grouped(count: number): string {
  const isShort = Math.abs(count) < 10_000;
  // Not toLocaleString: its first call loads the data of all languages, which a short command would wait for.
  return isShort ? String(count) : String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}
