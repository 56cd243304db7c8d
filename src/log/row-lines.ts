/**
 * Detections as lines of the log. A line has the text that clients get, and the other columns of the detection.
 *
 * | line | meaning |
 * |---|---|
 * | `{"row":ID,…}` | a row of an export, checked and rendered; a later line has its outcome |
 * | `{"created":N,"position":P,"version":V}` | the next N rows are new detections, at P, P+1, … of the change stream |
 * | `{"passed":N}` | the next N rows had no effect, or have a line of their own |
 * | `{"changed":ID,"position":P,"version":V,…}` | a detection has a new version, at P of the change stream |
 * | `{"rescored":ID,"version":V,…}` | a detection was scored again, without a new version |
 * | `{"removed":S}` | the detections of subscription S and their versions are removed; a `put` of each of its streams (effects.ts), which says where it ended, comes before |
 */
import { BASE_URL_MARK, type FilterValues, filterValues, type Match } from '../detection/match.ts';
import { isObject } from '../is-object.ts';
import { LogDamage } from '../store/log-errors.ts';
import { parseSeconds } from '../time.ts';
import { parse } from './format.ts';

/** A detection without its version and its place in the change stream. */
export interface DetectionState<Rendered = string> {
  readonly id: string;
  /** See `renderMatch`. */
  readonly rendered: Rendered;
  readonly exported_at_given: string | null;
  readonly url_withheld: string | null;
  /** Epoch seconds. */
  readonly first_detected_at: number;
  readonly filters: FilterValues;
}

/** A detection to store; bytes are the UTF-8 of a rendered row of an export. */
export type StoredState = DetectionState<string | Uint8Array>;

type Written = Pick<DetectionState, 'id' | 'rendered' | 'exported_at_given' | 'url_withheld'>;

const MARK_ESCAPED = '\\u0001';
/** The member with the mark: other members, such as a headline, may contain the same characters. */
const OWN_ADDRESS = `"image_url":"${MARK_ESCAPED}/`;
const RENDERED_BEGINNING = '"content_type":';

/** The line of a row up to its rendered match, which ends it. */
export const rowHead = (row: Omit<Written, 'rendered'>): string => `{"row":"${row.id}",${ownMembers(row)}`;

export const changedLine = (row: Written, position: number, version: number): string =>
  `{"changed":"${row.id}","position":${position},"version":${version},${ownMembers(row)}${escapeMark(row.rendered)}\n`;

export const rescoredLine = (row: Written, version: number): string =>
  `{"rescored":"${row.id}","version":${version},${ownMembers(row)}${escapeMark(row.rendered)}\n`;

export const createdLine = (rows: number, position: number, version: number): string =>
  `{"created":${rows},"position":${position},"version":${version}}\n`;

export const passedLine = (rows: number): string => `{"passed":${rows}}\n`;

export const removedLine = (subscription: number): string => `{"removed":${subscription}}\n`;

/** JSON text cannot have raw control characters. @param text any number of rendered matches */
export const escapeMark = (text: string): string => text.replaceAll(BASE_URL_MARK, MARK_ESCAPED);

function ownMembers({ exported_at_given, url_withheld }: Omit<Written, 'rendered'>): string {
  const given = exported_at_given === null ? '' : `"exported_at_given":${JSON.stringify(exported_at_given)},`;
  const withheld = url_withheld === null ? '' : `"url_withheld":${JSON.stringify(url_withheld)},`;
  return given + withheld;
}

/** @returns a line's members, and the detection if it is of one; @throws LogDamage */
export function readLine(text: string) {
  const line = parse(text);
  if (!isObject(line)) throw new LogDamage('a line is not a JSON object');
  const id = line.row ?? line.changed ?? line.rescored;
  return { line, state: typeof id === 'string' ? stateOf(id, line, renderedIn(text)) : null };
}

/** The bytes as they were rendered, whatever this version of the program would make of the same row. */
const renderedIn = (text: string): string =>
  text.slice(text.indexOf(RENDERED_BEGINNING)).replace(OWN_ADDRESS, `"image_url":"${BASE_URL_MARK}/`);

function stateOf(id: string, line: Readonly<Record<string, unknown>>, rendered: string): DetectionState {
  if (!isMatch(line)) throw new LogDamage(`the line of ${id} does not contain a detection`);
  return {
    id,
    rendered,
    exported_at_given: textOrNull(line.exported_at_given),
    url_withheld: textOrNull(line.url_withheld),
    first_detected_at: parseSeconds(line.first_detected_at) ?? 0,
    filters: filterValues(line),
  };
}

/** Distinguishes a match from other lines; its content is protected by a checksum. */
const isMatch = (line: object): line is Match =>
  'content_type' in line && 'article' in line && 'strength' in line && 'source' in line;

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
