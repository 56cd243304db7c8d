/**
 * Rows of detections as lines of the log. The text of a detection stands in them as clients get it, so that a line is
 * the detection, with what belongs to it besides.
 *
 * | line | meaning |
 * |---|---|
 * | `{"row":ID,…}` | a row of an export, checked and rendered; what became of it follows |
 * | `{"created":N,"position":P,"version":V}` | the next N rows are new detections, at P, P+1, … of the change stream |
 * | `{"passed":N}` | the next N rows came to nothing, or to a line of their own |
 * | `{"changed":ID,"position":P,"version":V,…}` | a detection is as given from now on, and the change stream says so at P |
 * | `{"rescored":ID,"version":V,…}` | a detection is as given from now on; the change stream does not say so |
 * | `{"removed":S}` | all detections of the subscription S are gone, and their versions; before it, a `put` of each of its streams (effects.ts) says where that ended |
 */
import { BASE_URL_MARK, type FilterColumns, filterColumns, type Match } from '../detection/match.ts';
import { parseSeconds } from '../time.ts';
import { isObject, parse } from './format.ts';
import { LogDamage } from './log-error.ts';

/** What a detection is, but for its version and its place in the change stream. */
export interface DetectionState<Rendered = string> {
  readonly id: string;
  /** See `renderMatch`. */
  readonly rendered: Rendered;
  readonly exported_at_given: string | null;
  readonly url_withheld: string | null;
  /** Epoch seconds. */
  readonly first_detected_at: number;
  readonly judged: FilterColumns;
}

/** A detection as it is to be stored: bytes are the UTF-8 of what an export's own row was rendered to. */
export type StoredState = DetectionState<string | Uint8Array>;

type Written = Pick<DetectionState, 'id' | 'rendered' | 'exported_at_given' | 'url_withheld'>;

const MARK_ESCAPED = '\\u0001';
/** Of a detection's own address: what else an export gave may begin like the mark, such as a headline. */
const OWN_ADDRESS = `"image_url":"${MARK_ESCAPED}/`;
const RENDERED_BEGINNING = '"content_type":';

/** The line of a row up to its rendered match, which ends it (see {@link escapeMark}). */
export function rowHead(row: Omit<Written, 'rendered'>): string {
  return `{"row":"${row.id}",${ownMembers(row)}`;
}

export function changedLine(row: Written, position: number, version: number): string {
  return `{"changed":"${row.id}","position":${position},"version":${version},${ownMembers(row)}${escapeMark(row.rendered)}\n`;
}

export function rescoredLine(row: Written, version: number): string {
  return `{"rescored":"${row.id}","version":${version},${ownMembers(row)}${escapeMark(row.rendered)}\n`;
}

export function createdLine(rows: number, position: number, version: number): string {
  return `{"created":${rows},"position":${position},"version":${version}}\n`;
}

export function passedLine(rows: number): string {
  return `{"passed":${rows}}\n`;
}

export function removedLine(subscription: number): string {
  return `{"removed":${subscription}}\n`;
}

/** JSON has no raw control characters. @param text with any number of rendered matches */
export function escapeMark(text: string): string {
  return text.replaceAll(BASE_URL_MARK, MARK_ESCAPED);
}

function ownMembers({ exported_at_given, url_withheld }: Omit<Written, 'rendered'>): string {
  const given = exported_at_given === null ? '' : `"exported_at_given":${JSON.stringify(exported_at_given)},`;
  const withheld = url_withheld === null ? '' : `"url_withheld":${JSON.stringify(url_withheld)},`;
  return given + withheld;
}

export type RowLine =
  | { readonly kind: 'row'; readonly state: StoredState }
  | { readonly kind: 'created'; readonly rows: number; readonly position: number; readonly version: number }
  | { readonly kind: 'passed'; readonly rows: number }
  | {
      readonly kind: 'changed';
      readonly state: DetectionState;
      readonly position: number;
      readonly version: number;
    }
  | { readonly kind: 'rescored'; readonly state: DetectionState; readonly version: number }
  | { readonly kind: 'removed'; readonly subscription: number }
  /** Of a table: see effects.ts. */
  | { readonly kind: 'other'; readonly line: Readonly<Record<string, unknown>> };

/**
 * @param bytes of the same line; with them, a row is rendered to bytes wherever nothing of it has to be replaced
 * @throws LogDamage when it is no line of this format
 */
export function readRowLine(text: string, bytes: Buffer | null = null): RowLine {
  const line = parse(text);
  if (!isObject(line)) throw new LogDamage('a line is not a JSON object');
  const { position, version } = line;
  if (typeof line.row === 'string') {
    const rendered = bytes === null || text.includes(OWN_ADDRESS) ? renderedIn(text) : renderedBytes(bytes);
    return { kind: 'row', state: stateOf(line.row, line, rendered) };
  }
  if (typeof line.created === 'number' && typeof position === 'number' && typeof version === 'number')
    return { kind: 'created', rows: line.created, position, version };
  if (typeof line.passed === 'number') return { kind: 'passed', rows: line.passed };
  if (typeof line.changed === 'string' && typeof position === 'number' && typeof version === 'number')
    return { kind: 'changed', state: stateOf(line.changed, line, renderedIn(text)), position, version };
  if (typeof line.rescored === 'string' && typeof version === 'number')
    return { kind: 'rescored', state: stateOf(line.rescored, line, renderedIn(text)), version };
  if (typeof line.removed === 'number') return { kind: 'removed', subscription: line.removed };
  return { kind: 'other', line };
}

/** Byte for byte as it was rendered, whatever a later program would make of the same row. */
function renderedIn(text: string): string {
  return text.slice(text.indexOf(RENDERED_BEGINNING)).replace(OWN_ADDRESS, `"image_url":"${BASE_URL_MARK}/`);
}

function renderedBytes(line: Buffer): Uint8Array {
  return line.subarray(line.indexOf(RENDERED_BEGINNING));
}

function stateOf<Rendered>(
  id: string,
  line: Readonly<Record<string, unknown>>,
  rendered: Rendered,
): DetectionState<Rendered> {
  if (!isMatch(line)) throw new LogDamage(`the line of ${id} does not contain a detection`);
  return {
    id,
    rendered,
    exported_at_given: textOrNull(line.exported_at_given),
    url_withheld: textOrNull(line.url_withheld),
    first_detected_at: parseSeconds(line.first_detected_at) ?? 0,
    judged: filterColumns(line),
  };
}

/** A checksum has vouched for the line: what is looked at here tells a match from lines of other kinds. */
function isMatch(line: object): line is Match {
  return 'content_type' in line && 'article' in line && 'strength' in line && 'source' in line;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
