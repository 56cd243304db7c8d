/**
 * The merge rule: what becomes of a detection when one more scoring of it arrives. The outcome does not depend on the
 * order of their arrival (but for `version`, and for an `exported_at` that the export left out): `first_detected_at` is
 * the earliest that was ever given, every other field comes from the newest scoring.
 *
 * Members in another order, and an absent member in place of a null one, are no difference: else another version of this
 * program would announce every detection again.
 */
import { isObject } from '../is-object.ts';
import type { Match } from './match.ts';

/** One scoring of a match, as an export row states it. */
export interface Scoring {
  /** With `article.url` as exported. */
  readonly match: Match;
  /** `exported_at` where the row gave it; null where it was filled in. */
  readonly exported_at_given: string | null;
}

/** A detection as stored. */
export interface Known extends Scoring {
  readonly version: number;
  /** What `article.url` shows at present: null in place of the exported one when that is withheld. */
  readonly url_shown: string | null;
}

export type Outcome =
  /** Not known before: version 1. */
  | { readonly kind: 'created'; readonly known: Known }
  /** A visible field changed: one version more. */
  | { readonly kind: 'updated'; readonly known: Known }
  /** A newer scoring with the same visible fields. */
  | { readonly kind: 'rescored'; readonly known: Known }
  | { readonly kind: 'unchanged' };

/** @param known null for a detection not seen before; @param licensed to see the addresses of print articles */
export function merge(known: Known | null, scoring: Scoring, licensed: boolean): Outcome {
  if (known === null) return { kind: 'created', known: toKnown(scoring, 1, licensed) };
  const newer = compareScorings(scoring, known) > 0;
  const { first_detected_at, first_detected_estimated } = earlierFirst(known.match, scoring.match);
  const { match, exported_at_given } = newer ? scoring : known;
  const merged = { match: { ...match, first_detected_at, first_detected_estimated }, exported_at_given };
  const next = toKnown(merged, known.version, licensed);
  if (!isAlike(visible(next), visible(known)))
    return { kind: 'updated', known: { ...next, version: known.version + 1 } };
  return newer ? { kind: 'rescored', known: next } : { kind: 'unchanged' };
}

/** The address that a customer sees: that of a print article only with the licence for print metadata. */
export function shownUrl(url: string | null, isPrint: boolean | undefined, licensed: boolean): string | null {
  return isPrint === true && !licensed ? null : url;
}

/** Positive when `a` is the newer scoring: by time of scoring, then of export where given, then by its fields. */
function compareScorings(a: Scoring, b: Scoring): number {
  return (
    compareText(a.match.last_scored_at, b.match.last_scored_at) ||
    compareText(a.exported_at_given ?? '', b.exported_at_given ?? '') ||
    compareFields(ofNewest(a.match), ofNewest(b.match))
  );
}

function earlierFirst(a: Match, b: Match): Match {
  const order = compareText(a.first_detected_at, b.first_detected_at);
  if (order !== 0) return order < 0 ? a : b;
  return a.first_detected_estimated ? b : a;
}

/** What changes without a new version. */
const REPLACED_IN_PLACE = { last_scored_at: null, exported_at: null };

/** The fields that are taken from the newest scoring, without the times that precede them in their order. */
function ofNewest(match: Match): object {
  return { ...match, ...REPLACED_IN_PLACE, first_detected_at: null, first_detected_estimated: null };
}

/** All that a customer sees and that raises `version`. */
function visible({ match, url_shown }: Known): object {
  return { ...match, article: { ...match.article, url: url_shown }, ...REPLACED_IN_PLACE };
}

/** An order among scorings of the same instant: that of their canonical forms. Most are alike, and need none. */
function compareFields(a: object, b: object): number {
  if (isAlike(a, b)) return 0;
  return compareText(JSON.stringify(canonicalValue(a)), JSON.stringify(canonicalValue(b)));
}

/** Whether values differ only in the order of members, and in null members. */
function isAlike(a: unknown, b: unknown): boolean {
  if (!isObject(a) || !isObject(b)) return (a ?? null) === (b ?? null);
  for (const name in a) if (!isAlike(a[name], b[name])) return false;
  for (const name in b) if (a[name] === undefined && (b[name] ?? null) !== null) return false;
  return true;
}

/** Equal, as JSON text, for values that are alike. */
function canonicalValue(value: unknown): unknown {
  if (!isObject(value)) return value;
  const sorted: Record<string, unknown> = {};
  for (const name of Object.keys(value).sort()) {
    const member = value[name] ?? null;
    if (member !== null) sorted[name] = canonicalValue(member);
  }
  return sorted;
}

function toKnown({ match, exported_at_given }: Scoring, version: number, licensed: boolean): Known {
  const url_shown = shownUrl(match.article.url, match.article.print, licensed);
  return { match, exported_at_given, version, url_shown };
}

/** Both sides are timestamps in the one spelling of the API, or canonical forms: text order is their order. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
