/** The header Range (RFC 9110, 14.1.2 and 14.2): the part of a file that a request asks for. */

export interface ByteRange {
  readonly start: number;
  readonly bytes: number;
}

const ONE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * @param size of the file in bytes, at least 1
 * @returns null: send the complete file: without the header, or if it is malformed, of another unit, with
 *   several ranges, or outside the file, for which the API has no status. A server may ignore all of these (RFC
 *   9110, 14.2), and clients cannot depend on a 416 (15.5.17).
 */
export function parseRange(header: string | undefined, size: number): ByteRange | null {
  const [, first = '', last = ''] = ONE_RANGE.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  return start < end ? { start, bytes: end - start } : null;
}
