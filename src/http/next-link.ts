/** `Link: <…>; rel="next"` (RFC 8288): the call that gives the next page, for tools that follow it. */

/**
 * @param path of the endpoint
 * @param query of this page, as sent
 * @returns name and value of the header
 */
export function nextLink(baseUrl: string, path: string, query: string, cursor: string): string[] {
  const next = new URLSearchParams(query);
  next.delete('since');
  next.set('cursor', cursor);
  return ['Link', `<${baseUrl}${path}?${next}>; rel="next"`];
}
