/** Names of time zones, as the tz database has them (contract: Me, `time_zone` of a subscription). */

/** The tz database's own short names; every other one that the runtime knows is an ambiguous abbreviation. */
const SHORT_NAMES = new Set('CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET'.split(' '));

/**
 * Reads the name of a time zone in any case.
 *
 * @returns the name in the tz database's spelling where the runtime knows the zone by this name, otherwise (an
 *   alternative name, `Europe/Kyiv`) as given; null when it is no such name. Offsets and abbreviations such as
 *   `BST`, which the runtime takes for Bangladesh, are none.
 */
export function zoneName(text: string): string | null {
  if (!/^[a-z][a-z0-9_+-]*(\/[a-z0-9_+-]+){0,2}$/i.test(text) || text.length > 64) return null;
  if (text.length === 3 && !SHORT_NAMES.has(text.toUpperCase())) return null;
  if (/^systemv\//i.test(text)) return null;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
    return timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text;
  } catch {
    return null;
  }
}
