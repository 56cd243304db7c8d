/**
 * Which Host headers the administration accepts. A foreign web page can let its own name resolve to this machine (DNS
 * rebinding), and then read what is served here through the browser of somebody who can reach it. Such a name is in the
 * public DNS, so only addresses are accepted, and names that the public DNS cannot have. Pure.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/**
 * Reserved for use within a network (RFC 6761, RFC 8375; ICANN for `internal`). Not `local` (RFC 6762): any machine on
 * the network can answer for such a name.
 */
const PRIVATE_NAME = /(^[^.]+|\.(localhost|internal|home\.arpa))$/;

/** The names of this machine, and `[admin] host`. */
export const ownNames = (host: string, machine: string) => [host, machine, `${machine}.local`];

/**
 * The names in a certificate. They are safe over TLS: the certificate is not valid for a foreign name. A suffix begins
 * with a dot.
 * @param altNames of X509Certificate.subjectAltName
 */
export function certificateNames(altNames: string | undefined): string[] {
  const entries = (altNames ?? '').split(', ').filter((entry) => entry.startsWith('DNS:'));
  return entries.map((entry) => entry.slice('DNS:'.length).replace(/^\*\./, '.'));
}

/** @param host the header; @param own of {@link ownNames} */
export function isHostAccepted(host: string | undefined, own: readonly string[]): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d{1,5})?$/.exec(host ?? '') ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = (plain ?? '').toLowerCase().replace(/\.$/, '');
  if (!/^[a-z0-9._-]+$/.test(name)) return false;
  // Browsers read a name that ends in a number as an address, `1.2` and `0x7f.1` too.
  if (/(^|\.)(\d+|0x[0-9a-f]*)$/.test(name)) return isIP(name) === 4;
  if (PRIVATE_NAME.test(name)) return true;
  return own.some((one) => (one.startsWith('.') ? name.endsWith(one) : one.toLowerCase() === name));
}

/**
 * Whether a page of another origin sent it, by `Sec-Fetch-Site`, or else by `Origin` against `Host` (OWASP, Cross-Site
 * Request Forgery Prevention: Fetch Metadata).
 */
export function isForeign({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const { host, origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined) return site !== 'same-origin';
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host);
}
