/**
 * Replaces the mark in stored detections with the base address.
 *
 * It searches the bytes of a complete page: SQLite's replace() takes twice as long as reading the page.
 */
import { BASE_URL_MARK } from '../detection/match.ts';

const MARK = BASE_URL_MARK.charCodeAt(0);

/** The base address, escaped for JSON text. */
export function jsonBaseUrl(baseUrl: string): Buffer {
  if (baseUrl !== known.baseUrl) known = { baseUrl, json: Buffer.from(JSON.stringify(baseUrl).slice(1, -1)) };
  return known.json;
}

/** The same for every request. */
let known = { baseUrl: '', json: Buffer.alloc(0) };

/** @param stored one detection; @param baseUrl of {@link jsonBaseUrl} */
export function withBaseUrl(stored: string, baseUrl: Buffer): string {
  return stored.replace(BASE_URL_MARK, () => baseUrl.toString());
}

/** @param json stored detections; @param baseUrl of {@link jsonBaseUrl} */
export function putBaseUrl(json: Buffer, baseUrl: Buffer): Buffer {
  const marks: number[] = [];
  for (let at = json.indexOf(MARK); at >= 0; at = json.indexOf(MARK, at + 1)) marks.push(at);
  if (marks.length === 0) return json;
  const result = Buffer.allocUnsafe(json.length + marks.length * (baseUrl.length - 1));
  let from = 0;
  let to = 0;
  for (const mark of marks) {
    to += json.copy(result, to, from, mark);
    to += baseUrl.copy(result, to);
    from = mark + 1;
  }
  json.copy(result, to, from);
  return result;
}
