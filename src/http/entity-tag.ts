/** If-None-Match (RFC 9110, 13.1.2): whether a client already has what it asks for. */

/** A member of the list, up to the comma behind it: `*`, a tag, a weak one, or what is none. */
const MEMBER = /[ \t]*(?:(?<any>\*)|(?:W\/)?(?<tag>"[\x21\x23-\x7e\x80-\xff]*"))[ \t]*(?:,|$)|[^,]*(?:,|$)/y;

/**
 * @param header If-None-Match; given more than once, its values with commas between them
 * @param current a strong entity tag
 * @returns whether `*` or the current tag is among its members, compared weakly. A member that is malformed names
 *   nothing: the worst that comes of it is an answer in full.
 */
export function namesEntityTag(header: string | undefined, current: string): boolean {
  if (header === undefined) return false;
  MEMBER.lastIndex = 0;
  while (MEMBER.lastIndex < header.length) {
    const groups = MEMBER.exec(header)?.groups;
    if (groups?.any !== undefined || groups?.tag === current) return true;
  }
  return false;
}
