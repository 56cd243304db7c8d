/** The formats of some settings and options: host names, the base address, instants, whole numbers. No I/O. */
import { isIP } from 'node:net';
import { parseInstant } from '../time.ts';

/** In [server] trusted_proxies: trust no proxy, not even on this machine. */
export const NO_PROXY = 'none';

/** An IP address or a host name, without a port. */
export function isAddress(text: string): boolean {
  if (isIP(text) !== 0) return true;
  if (text.length > 253 || /^[\d.]*$/.test(text)) return false;
  return text.split('.').every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label));
}

/** An absolute http(s) address to which a path can be appended. */
export function isBaseUrl(text: string): boolean {
  // Checks the text too: the parser would correct spaces, a missing slash, an empty query or fragment.
  if (text.length > 2048 || !/^https?:\/\/[^/\s?#\\]/i.test(text) || /[\s?#\\]/.test(text)) return false;
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return url.username === '' && url.password === '' && !text.includes('@');
}

/** Scheme, host and port as a browser sends them in Origin: without a path, in lower case. */
export function isOrigin(text: string): boolean {
  return isBaseUrl(text) && new URL(text).origin === text;
}

/** A base address normalized, without a slash at its end. */
export function normalBaseUrl(text: string): string {
  const url = new URL(text);
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

export function isUtcInstant(text: string): boolean {
  return text.endsWith('Z') && parseInstant(text) !== null;
}

/** A whole number from `min` to `max` in plain digits; null for any other text. */
export function wholeNumber(text: string, min: number, max: number): number | null {
  if (!/^-?(0|[1-9]\d{0,15})$/.test(text)) return null;
  const number = Number(text);
  return Number.isSafeInteger(number) && number >= min && number <= max ? number : null;
}
