/** The names of time zones (contract: GET /v1/detections, `time_zone`; Me, `time_zone` of a subscription). */
import { BoundedMap } from './bounded-map.ts';

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
  const zone = runtimeZone(text);
  if (zone === null) return null;
  return zone.toLowerCase() === text.toLowerCase() ? zone : text;
}

/**
 * The one spelling under which the runtime knows a zone, for comparing and calculating: names differ in case, and
 * one zone can have several.
 *
 * @param name of {@link zoneName}
 */
export function zoneId(name: string): string {
  const zone = runtimeZone(name);
  if (zone === null) throw new Error(`this version of Node does not know the time zone ${name}`);
  return zone;
}

/** A zone is asked for with every page of a period, and to ask the runtime takes longer than a small page. */
const ZONES_KEPT_MAX = 1000;
const runtimeZones = new BoundedMap<string, string | null>(ZONES_KEPT_MAX);

function runtimeZone(name: string): string | null {
  const kept = runtimeZones.get(name);
  if (kept !== undefined) return kept;
  const zone = askRuntime(name);
  runtimeZones.set(name, zone);
  return zone;
}

function askRuntime(name: string): string | null {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}
