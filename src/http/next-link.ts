/** The header `Link: <…>; rel="next"` (RFC 8288): the request for the next page. */
import { optional, text } from './description.ts';

/**
 * Proxies accept 4 KiB of headers by default (nginx, proxy_buffer_size), some clients 16 KiB, and a legal query alone
 * reaches 15 KB: a page without the header is better than one that cannot be read.
 */
const CHARACTERS_MAX = 2000;

/** On every page but the last. */
export const NEXT_LINK = {
  Link: optional(
    text('^<.+>; rel="next"$'),
    'The request for the next page. Left out if it is longer than 2,000 characters.',
  ),
};

/**
 * @param path of the endpoint
 * @param query of this page, as sent
 * @returns name and value of the header; empty where it would be too long
 */
export function nextLink(baseUrl: string, path: string, query: string, cursor: string): string[] {
  const next = new URLSearchParams(query);
  next.delete('since');
  next.set('cursor', cursor);
  const link = `<${baseUrl}${path}?${next}>; rel="next"`;
  return link.length > CHARACTERS_MAX ? [] : ['Link', link];
}
