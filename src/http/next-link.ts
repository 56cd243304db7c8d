/** `Link: <…>; rel="next"` (RFC 8288): the call that gives the next page, for tools that follow it. */

/**
 * Proxies take 4 KiB of headers by default (nginx, proxy_buffer_size), some clients 16 KiB, and a legal query alone
 * reaches 15 KB: a page that cannot be read is worse than one that does not name the next.
 */
const CHARACTERS_MAX = 2000;

/**
 * @param path of the endpoint
 * @param query of this page, as sent
 * @returns name and value of the header; nothing where it would be too long
 */
export function nextLink(baseUrl: string, path: string, query: string, cursor: string): string[] {
  const next = new URLSearchParams(query);
  next.delete('since');
  next.set('cursor', cursor);
  const link = `<${baseUrl}${path}?${next}>; rel="next"`;
  return link.length > CHARACTERS_MAX ? [] : ['Link', link];
}
