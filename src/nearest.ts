/** "Did you mean": the known name closest to a mistyped one. No I/O. */

/**
 * @param differencesMax letters that may be wrong, missing or surplus; Infinity always finds a name
 * @returns the first of the closest names; null if none is close enough
 */
export function nearest(word: string, names: readonly string[], differencesMax: number): string | null {
  const [closest] = names
    .map((name) => ({ name, differences: editDistance(word, name) }))
    .filter(({ differences }) => differences <= differencesMax)
    .sort((one, other) => one.differences - other.differences);
  return closest?.name ?? null;
}

/** What to say of an unknown name: `; did you mean quiet_ms?`, or nothing. */
export function didYouMean(word: string, names: readonly string[]): string {
  const near = nearest(word, names, 3);
  return near === null ? '' : `; did you mean ${near}?`;
}

/** The Levenshtein distance of the first 100 characters. */
function editDistance(a: string, b: string): number {
  const from = a.slice(0, 100);
  const to = b.slice(0, 100);
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
