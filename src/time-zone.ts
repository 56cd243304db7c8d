/** The names of time zones (GET /v1/detections, `time_zone`). */
import { BoundedMap } from './bounded-map.ts';
import { getOrMake } from './get-or-make.ts';
import { unlessError } from './refused.ts';

/** The short names of the tz database; the other ones that the runtime knows are ambiguous abbreviations. */
const SHORT_NAMES = new Set('CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET'.split(' '));

/**
 * Parses the name of a time zone, in any case.
 * @returns the name in the spelling of the tz database if the runtime knows the zone by this name, otherwise (an
 *   alternative name, `Europe/Kyiv`) the text itself; null for any other text. Offsets and abbreviations such as `BST`,
 *   which the runtime takes for Bangladesh, are not names.
 */
export function zoneName(text: string): string | null {
  if (!/^[a-z][a-z0-9_+-]*(\/[a-z0-9_+-]+){0,2}$/i.test(text) || text.length > 64) return null;
  if (text.length === 3 && !SHORT_NAMES.has(text.toUpperCase())) return null;
  if (/^systemv\//i.test(text)) return null;
  const zone = runtimeZone(text);
  if (zone === null) return null;
  return zone.toLowerCase() === text.toLowerCase() ? zone : text;
}

/**
 * The runtime's own name of a zone, for comparisons and calculations: names differ in case, and a zone can have several.
 * @param name from {@link zoneName}
 */
export function zoneId(name: string): string {
  const zone = runtimeZone(name);
  if (zone === null) throw new Error(`this version of Node does not know the time zone ${name}`);
  return zone;
}

/** A cache: every period page needs a zone, and asking the runtime takes longer than a small page. */
const ZONES_KEPT_MAX = 1000;
const runtimeZones = new BoundedMap<string, string | null>(ZONES_KEPT_MAX);

function runtimeZone(name: string): string | null {
  return getOrMake(runtimeZones, name, () =>
    unlessError(null, () => new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone),
  );
}
