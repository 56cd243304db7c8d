/**
 * URLs in export rows, and the registrable domain of an article. A URL is stored as it is, except that characters which RFC
 * 3986 does not allow are percent-encoded. (The WHATWG URL parser would turn a backslash into a slash, and so change the host.)
 */
import { isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import { getDomain } from 'tldts';
import { BoundedMap } from '../bounded-map.ts';

const ADDRESS_BYTES_MAX = 8 * 1024;

/** Scheme, authority, path, query, fragment: the authority ends at the first of / ? # and backslash. */
const ADDRESS = /^(https?:\/\/)([^/?#\\]*)([^?#]*)(\?[^#]*)?(#.*)?$/is;
const BLANK_OR_CONTROL = /[\s\u0000-\u001f\u007f-\u009f]/;
/** A percent sign without an escape, or a run of characters that are not allowed (RFC 3986, appendix A). */
const UNCLEAN = /%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+/g;
/** A fast path for nearly every URL. */
const PLAIN_AUTHORITY = /^[\w\-.~]+(?::\d*)?$/;
const HOST_AND_PORT = /^(\[[^\]]*\]|.*?)(:\d*)?$/s;
/** IPvFuture (RFC 3986, 3.2.2). */
const FUTURE_LITERAL = /^\[v[0-9a-f]+\.[\w\-.~!$&'()*+,;=:]+\]$/i;

export class Bad {
  /** In words. */
  readonly expected: string;
  /** Undefined: to correct the value. */
  readonly what_to_do: string | undefined;

  constructor(expected: string, what_to_do?: string) {
    this.expected = expected;
    this.what_to_do = what_to_do;
  }
}

export function readAddress(given: string): string | Bad {
  if (given.length * 3 > ADDRESS_BYTES_MAX && Buffer.byteLength(given) > ADDRESS_BYTES_MAX)
    return new Bad('a URL of at most 8 KiB');
  if (BLANK_OR_CONTROL.test(given)) return new Bad('a URL without white space or control characters');
  const match = ADDRESS.exec(given);
  if (!match) return new Bad('an absolute URL that begins with http:// or https://');
  const [, scheme = '', authority = '', path = '', query = '', fragment = ''] = match;
  if (hostOf(authority) === '') return new Bad('a URL with a host');
  const rest =
    encodePart(path) +
    (query && `?${encodePart(query.slice(1))}`) +
    (fragment && `#${encodePart(fragment.slice(1))}`);
  return scheme + encodeAuthority(authority) + rest;
}

/**
 * The registrable domain of a host by the public suffix list's ICANN section, lower case and punycode.
 * @returns null if it has none: an address literal, a bare suffix, a single label
 */
export function registrableDomain(host: string): string | null {
  const cached = domains.get(host);
  if (cached !== undefined) return cached;
  const ascii = domainToASCII(host.trim().replace(/\.$/, ''));
  const domain = ascii === '' ? null : getDomain(ascii, { allowPrivateDomains: false, detectIp: true });
  // Rows may have a host of up to 8 KiB, which is no domain.
  if (host.length <= HOST_CHARACTERS_MAX) domains.set(host, domain);
  return domain;
}

/** The host in a domain of an export, which may be a URL. */
export const hostOfDomain = (given: string) =>
  hostOf(/^(?:(?:[a-z][a-z0-9+.-]*:)?\/\/)?([^/?#\\]*)/i.exec(given.trim())?.[1] ?? '');

const DOMAINS_MAX = 20_000;
const HOST_CHARACTERS_MAX = 253;
const domains = new BoundedMap<string, string | null>(DOMAINS_MAX);

function hostOf(authority: string): string {
  const afterUser = authority.slice(authority.lastIndexOf('@') + 1);
  return /^\[[^\]]*\]/.exec(afterUser)?.[0] ?? afterUser.replace(/:\d*$/, '');
}

/** User information may contain colons; a host name may contain neither `:` nor `@` (RFC 3986, 3.2). */
function encodeAuthority(authority: string): string {
  if (PLAIN_AUTHORITY.test(authority)) return authority;
  const at = authority.lastIndexOf('@');
  const user = at < 0 ? '' : `${encodePart(authority.slice(0, at)).replaceAll('@', '%40')}@`;
  const [, host = '', port = ''] = HOST_AND_PORT.exec(authority.slice(at + 1)) ?? [];
  // Without a zone: RFC 3986 does not allow one.
  const isLiteral6 = isIPv6(host.slice(1, -1)) && !host.includes('%');
  const isLiteral = host.startsWith('[') && (isLiteral6 || FUTURE_LITERAL.test(host));
  return user + (isLiteral ? host : encodePart(host).replaceAll(':', '%3A')) + port;
}

function encodePart(part: string): string {
  // encodeURIComponent encodes every character of such a run.
  return part.replace(UNCLEAN, encodeURIComponent);
}
