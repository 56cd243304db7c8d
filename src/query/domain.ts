/** A domain as the filters take it. */
import { domainToASCII } from 'node:url';

const DOMAIN_CHARACTERS_MAX = 253;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Reads a domain, or an http(s) address of nothing else (`https://example.com` or, as browsers copy it,
 * `https://example.com/`).
 *
 * @returns lower case and punycode; null for anything that is no host, or has a path, port, query, fragment or user
 */
export function parseDomain(text: string): string | null {
  const [, ofAddress] = /^https?:\/\/([^/]*)\/?$/i.exec(text) ?? [];
  const host = ofAddress ?? text;
  // Before the conversion, which drops tabs, decodes percent signs and reads a backslash as a slash.
  if (/[\s/\\:?#@%[\]]|\p{Cc}/u.test(host)) return null;
  const domain = domainToASCII(host);
  if (domain === '' || domain.length > DOMAIN_CHARACTERS_MAX) return null;
  return domain.split('.').every((label) => LABEL.test(label)) ? domain : null;
}
