/** Values of options, requests, variables and the configuration file: how they are read, and how a message shows them. No I/O. */
import { isIP } from 'node:net';
import { isKeyId } from '../auth/key-form.ts';
import { grouped } from '../counted.ts';
import { parseInstant, parseWindowStart, WINDOW_MS } from '../time.ts';

/** The value of a text, or a description of what was expected. */
export type Reading<Value> =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'wrong'; readonly expected: string };

const NAME_CHARACTERS_MAX = 200;

export const KEY_ID = 'a key id: 12 characters from a to z and 2 to 7';

export const readKeyId = (text: string): Reading<string> => (isKeyId(text) ? read(text) : wrong(KEY_ID));

/** A name for people, without control characters; spaces around it are removed. */
export function readName(text: string): Reading<string> {
  const name = text.trim();
  const { length } = [...name];
  const isName = length >= 1 && length <= NAME_CHARACTERS_MAX && !/\p{Cc}/u.test(name) && name.isWellFormed();
  return isName ? read(name) : wrong(`1 to ${NAME_CHARACTERS_MAX} characters`);
}

/** The items of a comma-separated text, without duplicates; null if one is empty. */
export function listItems(text: string): string[] | null {
  const items = text.split(',').map((item) => item.trim());
  return items.includes('') ? null : [...new Set(items)];
}

export const read = <Value>(value: Value): Reading<Value> => ({ kind: 'read', value });

/** @param expected follows "expected" in the message */
export const wrong = <Value>(expected: string): Reading<Value> => ({ kind: 'wrong', expected });

/** Reads a text of this form as it is. */
export const matching =
  (form: RegExp, expected: string) =>
  (text: string): Reading<string> =>
    form.test(text) ? read(text) : wrong(expected);

/** An instant with `Z` or an offset; epoch milliseconds. */
export function readInstant(text: string): Reading<number> {
  const ms = parseInstant(text);
  return ms === null ? wrong('a time with Z or an offset, such as 2026-11-21T10:00:00Z') : read(ms);
}

/** The start of a window, as in file names or as a time; epoch milliseconds. */
export function readWindowStart(text: string): Reading<number> {
  const ms = parseWindowStart(text) ?? parseInstant(text);
  return ms === null || ms % WINDOW_MS !== 0
    ? wrong('the start of a ten-minute window, such as 20261121T1010Z or 2026-11-21T10:10:00Z')
    : read(ms);
}

/** A whole number from `min` to `max`, in plain digits. */
export function integer(min: number, max: number) {
  return (text: string): Reading<number> => {
    const number = /^-?(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
    return Number.isSafeInteger(number) && number >= min && number <= max
      ? read(number)
      : wrong(`a whole number from ${grouped(min)} to ${grouped(max)}`);
  };
}

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
  return URL.canParse(text) && !text.includes('@');
}

/** Scheme, host and port as a browser sends them in Origin: without a path, in lower case. */
export const isOrigin = (text: string): boolean => isBaseUrl(text) && new URL(text).origin === text;

/** A base address normalized, without a slash at its end. */
export function normalBaseUrl(text: string): string {
  const url = new URL(text);
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

const FOUND_CHARACTERS_MAX = 80;

/** TOML has a type for times: a time may be written with or without quotes, also in a table. */
export function plainValue(value: unknown): unknown {
  if (isTable(value))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainValue(member)]));
  return value instanceof Date ? value.toISOString().replace('.000Z', 'Z') : value;
}

export const isTable = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** A value for a message: short, on one line, without a password in an address. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isTable(value)) return 'a section';
  const text = (JSON.stringify(plainValue(value)) ?? String(value)).replace(/\/\/[^/@]*@/, '//…@');
  return text.length <= FOUND_CHARACTERS_MAX ? text : `${text.slice(0, FOUND_CHARACTERS_MAX)}…`;
}
