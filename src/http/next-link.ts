/** What the lists of detections have in common: a page's body, and the header `Link: <…>; rel="next"` (RFC 8288). */
import { optional, text } from './description.ts';

/** Proxies accept 4 KiB of headers by default, and a legal query alone reaches 15 KB. */
const CHARACTERS_MAX = 2000;

export const NEXT_LINK = {
  Link: optional(
    text('^<.+>; rel="next"$'),
    'The request for the next page. Left out if it is longer than 2,000 characters.',
  ),
};

/** @param query of this page, as sent; @returns name and value of the header; empty where it would be too long */
export function nextLink(baseUrl: string, path: string, query: string, cursor: string): string[] {
  const next = new URLSearchParams(query);
  next.delete('since');
  next.set('cursor', cursor);
  const link = `<${baseUrl}${path}?${next}>; rel="next"`;
  return link.length > CHARACTERS_MAX ? [] : ['Link', link];
}

/** @param data JSON texts of the rows, with commas between them; @param rest the members after `data` */
export function pageBody(data: Buffer, rest: object): string | Buffer[] {
  const end = `],${JSON.stringify(rest).slice(1)}`;
  return data.length === 0 ? `{"data":[${end}` : [Buffer.from('{"data":['), data, Buffer.from(end)];
}
