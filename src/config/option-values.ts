/**
 * The values of accounts, subscriptions and keys: one rule for each, used for command options, the configuration and the
 * console. No I/O.
 *
 * A value is read from its text, a list from its items.
 */
import { isAddressOrNetwork } from '../addresses.ts';
import { isKeyId } from '../auth/key.ts';
import type { KeySubscription } from '../auth/keys.ts';
import { isScope, SCOPES, type Scope } from '../auth/scopes.ts';
import { grouped } from '../counted.ts';
import { CONTENT_TYPES, type ContentType, isContentType, NUMBER_MAX } from '../detection/content-type.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, parseInstant, parseWindowStart, WINDOW_MS } from '../time.ts';
import { zoneName } from '../time-zone.ts';
import { wholeNumber } from './format.ts';

/** The value of a text, or a description of what was expected. */
export type Reading<Value> =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'wrong'; readonly expected: string };

const DAILY_ROWS_MAX = 1_000_000_000_000;
const ADDRESSES_MAX = 100;
const KEY_SUBSCRIPTIONS_MAX = 1000;
export const OVERLAP_DEFAULT_MS = 7 * DAY_MS;
const OVERLAP_MS_MAX = 366 * DAY_MS;
const UNITS: Readonly<Record<string, number>> = { d: DAY_MS, h: HOUR_MS, m: MINUTE_MS };
const NONE = 'none';
const ACCOUNT_ID = /^[A-Za-z0-9._-]{1,64}$/;
const NAME_CHARACTERS_MAX = 200;

export function readAccountId(text: string): Reading<string> {
  return ACCOUNT_ID.test(text)
    ? read(text)
    : wrong('an account id: 1 to 64 letters, digits, dots, dashes or underscores');
}

export const KEY_ID = 'a key id: 12 characters from a to z and 2 to 7';

export function readKeyId(text: string): Reading<string> {
  return isKeyId(text) ? read(text) : wrong(KEY_ID);
}

/** A name for people, without control characters; spaces around it are removed. */
export function readName(text: string): Reading<string> {
  const name = text.trim();
  const { length } = [...name];
  const isName = length >= 1 && length <= NAME_CHARACTERS_MAX && !/\p{Cc}/u.test(name) && name.isWellFormed();
  return isName ? read(name) : wrong(`1 to ${NAME_CHARACTERS_MAX} characters`);
}

export function readSubscriptionId(text: string): Reading<number> {
  const id = wholeNumber(text, 1, NUMBER_MAX);
  return id === null ? wrong(`a whole number from 1 to ${grouped(NUMBER_MAX)}`) : read(id);
}

/** A daily row allowance; null for `none`. */
export function readDailyRows(text: string): Reading<number | null> {
  if (text === NONE) return read(null);
  const rows = wholeNumber(text, 1, DAILY_ROWS_MAX);
  return rows === null ? wrong(`a whole number from 1 to ${grouped(DAILY_ROWS_MAX)}, or none`) : read(rows);
}

export function readSwitch(text: string): Reading<boolean> {
  return text === 'on' || text === 'off' ? read(text === 'on') : wrong('on or off');
}

export function readZone(text: string): Reading<string> {
  const zone = zoneName(text);
  return zone === null ? wrong('an IANA time zone such as Europe/Berlin or UTC') : read(zone);
}

/** Content types, in the order of CONTENT_TYPES. */
export function readContentTypes(items: readonly string[]): Reading<ContentType[]> {
  return items.length > 0 && items.every(isContentType)
    ? read(CONTENT_TYPES.filter((type) => items.includes(type)))
    : wrong('text, image or text,image');
}

/** Scopes, in the order of SCOPES. */
export function readScopes(items: readonly string[]): Reading<Scope[]> {
  return items.length > 0 && items.every(isScope)
    ? read(SCOPES.filter((scope) => items.includes(scope)))
    : wrong(`one or more of ${SCOPES.join(', ')}`);
}

/** `7001`, `7002:text`; `7001:text`, `7001:image` for one subscription with two types. Sorted by id. */
export function readKeySubscriptions(items: readonly string[]): Reading<KeySubscription[]> {
  const typesById = new Map<number, Set<ContentType> | null>();
  for (const item of items) {
    const [idText = '', type, ...more] = item.split(':');
    const id = wholeNumber(idText, 1, NUMBER_MAX);
    if (id === null || more.length > 0 || (type !== undefined && !isContentType(type)))
      return wrong('subscriptions such as 7001, 7001:text or 7001:image');
    const types = typesById.get(id);
    if (typesById.has(id) && (types === null) !== (type === undefined))
      return wrong(`subscription ${id} either with or without a type, not both`);
    typesById.set(id, type === undefined ? null : new Set(types).add(type));
  }
  if (typesById.size === 0) return wrong('at least one subscription, such as 7001 or 7001:text');
  if (typesById.size > KEY_SUBSCRIPTIONS_MAX) return wrong(`at most ${KEY_SUBSCRIPTIONS_MAX} subscriptions`);
  return read(
    [...typesById]
      .sort(([one], [other]) => one - other)
      .map(([id, types]) => ({
        id,
        content_types: types && CONTENT_TYPES.filter((type) => types.has(type)),
      })),
  );
}

/** The expiry of a key, epoch milliseconds, possibly in the past; null for never. */
export function readExpires(text: string): Reading<number | null> {
  if (text === NONE) return read(null);
  const ms = parseInstant(text);
  return ms === null ? wrong('a time such as 2027-01-01T00:00:00Z, or none') : read(ms);
}

/** How long an old key remains valid beside its new one, in milliseconds. */
export function readOverlap(text: string): Reading<number> {
  const [, count = '', unit = ''] = /^(0|[1-9]\d{0,5})([dhm]?)$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? 0);
  const isRead = count !== '' && (unit !== '' || count === '0') && ms <= OVERLAP_MS_MAX;
  return isRead ? read(ms) : wrong('a duration of at most 366 days, such as 7d, 12h, 30m or 0');
}

/** Addresses and networks; a single `none` is an empty list. */
export function readAddresses(items: readonly string[]): Reading<string[]> {
  if (items.length === 1 && items[0] === NONE) return read([]);
  if (!items.every(isAddressOrNetwork))
    return wrong('addresses or networks such as 192.0.2.7, 10.0.0.0/8 or fd00::/8, or none');
  const addresses = [...new Set(items.map((item) => item.toLowerCase()))];
  return addresses.length > ADDRESSES_MAX ? wrong(`at most ${ADDRESSES_MAX} addresses`) : read(addresses);
}

/** The items of a comma-separated text, without duplicates; null if one is empty. */
export function listItems(text: string): string[] | null {
  const items = text.split(',').map((item) => item.trim());
  return items.includes('') ? null : [...new Set(items)];
}

export function read<Value>(value: Value): Reading<Value> {
  return { kind: 'read', value };
}

/** @param expected follows "expected" in the message */
export function wrong<Value>(expected: string): Reading<Value> {
  return { kind: 'wrong', expected };
}

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
    const number = wholeNumber(text, min, max);
    return number === null ? wrong(`a whole number from ${grouped(min)} to ${grouped(max)}`) : read(number);
  };
}
