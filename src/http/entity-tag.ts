/** Entity tags, and If-None-Match (RFC 9110, 13.1.2): whether a client already has the current version. */
import { header, text } from './description.ts';

export const ETAG = { ETag: header(text('^"[^"]+"$'), 'Identifies this version of the content.') };
export const IF_NONE_MATCH = {
  'If-None-Match': { description: 'An ETag, a list of them, or `*`.', example: '"3q2-7wAAAAAAAAAAAAAAAA"' },
};
export const NOT_MODIFIED = 'Not modified: the client has the current version.';

/** @returns whether `*` or the current tag is in the list, by weak comparison; a malformed member matches nothing */
export function namesEntityTag(header: string | undefined, current: string): boolean {
  const members = (header ?? '').split(',').map((member) => member.trim());
  return members.some((member) => member === '*' || member === current || member === `W/${current}`);
}
