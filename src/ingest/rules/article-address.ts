/**
 * Addresses in export rows, and the registrable domain an article appeared under.
 *
 * An address is kept as given; only what RFC 3986 does not allow in it is percent-encoded. It is not parsed by
 * the WHATWG rules, which would rewrite it (a backslash would become a slash, and with it the host another).
 */
import { isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import { getDomain } from 'tldts';
import { BoundedMap } from '../../bounded-map.ts';

const ADDRESS_BYTES_MAX = 8 * 1024;

/** Scheme, authority, path, query, fragment: the authority ends at the first of / ? # and backslash. */
const ADDRESS = /^(https?:\/\/)([^/?#\\]*)([^?#]*)(\?[^#]*)?(#.*)?$/is;
const BLANK_OR_CONTROL = /[\s\u0000-\u001f\u007f-\u009f]/;
/** An address of only these characters, with well-formed escapes, is one already (RFC 3986, appendix A). */
const CLEAN_PART = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*$/;
/** A percent sign that begins no escape, or a run of characters that may not stand there. */
const UNCLEAN = /%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+/g;
/** What nearly every address has. */
const PLAIN_AUTHORITY = /^[\w\-.~]+(?::\d*)?$/;
const HOST_AND_PORT = /^(\[[^\]]*\]|.*?)(:\d*)?$/s;
/** Of versions of the Internet Protocol that are yet to come. */
const FUTURE_LITERAL = /^\[v[0-9a-f]+\.[\w\-.~!$&'()*+,;=:]+\]$/i;

/** A value that cannot be taken. */
export class Bad {
  /** What was expected in its place, in words. */
  readonly expected: string;

  constructor(expected: string) {
    this.expected = expected;
  }
}

/** Checks an address of an export row. @returns it, with what must be encoded */
export function readAddress(given: string): string | Bad {
  if (given.length * 3 > ADDRESS_BYTES_MAX && Buffer.byteLength(given) > ADDRESS_BYTES_MAX) {
    return new Bad('a URL of at most 8 KiB');
  }
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
 *
 * @returns null where there is none: an address literal, a bare suffix, a single label
 */
export function registrableDomain(host: string): string | null {
  const cached = domains.get(host);
  if (cached !== undefined) return cached;
  const ascii = domainToASCII(host.trim().replace(/\.$/, ''));
  const domain = ascii === '' ? null : getDomain(ascii, { allowPrivateDomains: false, detectIp: true });
  domains.set(host, domain);
  return domain;
}

/** Reads the host from what an export gives as a domain, which may be an address. */
export function hostOfDomain(given: string): string {
  const authority = /^(?:(?:[a-z][a-z0-9+.-]*:)?\/\/)?([^/?#\\]*)/i.exec(given.trim())?.[1] ?? '';
  return hostOf(authority);
}

const DOMAINS_MAX = 20_000;
const domains = new BoundedMap<string, string | null>(DOMAINS_MAX);

function hostOf(authority: string): string {
  const afterUser = authority.slice(authority.lastIndexOf('@') + 1);
  const literal = /^\[[^\]]*\]/.exec(afterUser)?.[0];
  return literal ?? afterUser.replace(/:\d*$/, '');
}

/** A user may have colons, a host (RFC 3986, 3.2.2: an address literal or a name) neither these nor an @. */
function encodeAuthority(authority: string): string {
  if (PLAIN_AUTHORITY.test(authority)) return authority;
  const at = authority.lastIndexOf('@');
  const user = at < 0 ? '' : `${encodePart(authority.slice(0, at)).replaceAll('@', '%40')}@`;
  const [, host = '', port = ''] = HOST_AND_PORT.exec(authority.slice(at + 1)) ?? [];
  const isLiteral = host.startsWith('[') && (isLiteral6(host.slice(1, -1)) || FUTURE_LITERAL.test(host));
  return user + (isLiteral ? host : encodePart(host).replaceAll(':', '%3A')) + port;
}

/** Without a zone, which is of one machine: RFC 3986 has none. */
function isLiteral6(text: string): boolean {
  return isIPv6(text) && !text.includes('%');
}

function encodePart(part: string): string {
  if (CLEAN_PART.test(part)) return part;
  // None of the characters in such a run is left as it is by encodeURIComponent.
  return part.replace(UNCLEAN, encodeURIComponent);
}
