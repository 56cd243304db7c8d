/**
 * The members of accounts, subscriptions and keys: what commands, requests, forms and the configuration give them. A new
 * one is described here, and stored in auth/.
 */
import { Type } from '@sinclair/typebox';
import { isAddressOrNetwork } from '../addresses.ts';
import type { KeySubscription } from '../auth/keys.ts';
import { SCOPES } from '../auth/scopes.ts';
import { matching, type Reading, read, readInstant, readName, wrong } from '../config/option-values.ts';
import { CONTENT_TYPES, type ContentType, isContentType, NUMBER_MAX } from '../detection/content-type.ts';
import { zoneName } from '../time-zone.ts';
import { list, onOrOff, required, value, whole } from './member.ts';

/** Practically unlimited. */
const DAILY_ROWS_MAX = 1_000_000_000_000;
const ADDRESSES_MAX = 100;
const KEY_SUBSCRIPTIONS_MAX = 1000;
/** Clears an optional value. */
const NONE = 'none';
const ROWS_OR_NULL = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]);
export const TIME = Type.String({ format: 'date-time' });
const TIME_OR_NULL = Type.Union([TIME, Type.Null()]);
const TEXT_OR_NULL = Type.Union([Type.String(), Type.Null()]);
const CONTENT_TYPE = Type.Union(CONTENT_TYPES.map((type) => Type.Literal(type)));
export const ZONE_HINT = 'IANA time zone of periods that clients give as dates';
export const TYPES_HINT = 'content types: text, image or text,image';

/** What `readText` reads, or `none`. */
function orNone<Value>(readText: (text: string) => Reading<Value>) {
  return (text: string): Reading<Value | null> => {
    const reading = text === NONE ? read(null) : readText(text);
    return reading.kind === 'wrong' ? wrong(`${reading.expected}, or none`) : reading;
  };
}

/** One or more of some words, in their order. */
function someOf<Word extends string>(
  words: readonly Word[],
  expected: string,
  described: { readonly hint: string; readonly placeholder: string },
) {
  const readWords = (items: readonly string[]): Reading<Word[]> => {
    const found = words.filter((word) => items.includes(word));
    return found.length > 0 && found.length === new Set(items).size ? read(found) : wrong(expected);
  };
  const schema = Type.Array(Type.Union(words.map((word) => Type.Literal(word))));
  return list(readWords, { ...described, schema });
}

/** @param hint what it limits, and what `none` means */
function dailyRows(hint: string) {
  const rows = whole(1, DAILY_ROWS_MAX, hint);
  return value(orNone(rows.read), { ...rows, schema: ROWS_OR_NULL, none: NONE });
}

export const ACCOUNT_MEMBERS = {
  id: value(
    matching(/^[A-Za-z0-9._-]{1,64}$/, 'an account id: 1 to 64 letters, digits, dots, dashes or underscores'),
    { hint: 'account id: letters, digits, dots, dashes and underscores', placeholder: 'id' },
  ),
  name: value(readName, { hint: 'name of the customer', placeholder: 'name' }),
  daily_rows: dailyRows('daily row allowance, or none to use the setting [limits] daily_rows'),
  print_metadata: onOrOff({
    hint: 'whether the account is licensed for print-publisher metadata',
    placeholder: 'on|off',
  }),
};

/** Of `account add`, and of the configuration. */
export const NEW_ACCOUNT = {
  ...ACCOUNT_MEMBERS,
  id: required(ACCOUNT_MEMBERS.id),
  name: required(ACCOUNT_MEMBERS.name),
};

export const SUBSCRIPTION_MEMBERS = {
  id: whole(1, NUMBER_MAX, 'subscription id: a number, as in the exports', 'id'),
  account: { ...ACCOUNT_MEMBERS.id, hint: 'account that the subscription belongs to' },
  name: value(readName, { hint: 'display name', placeholder: 'name' }),
  time_zone: value(
    (text): Reading<string> => {
      const zone = zoneName(text);
      return zone === null ? wrong('an IANA time zone such as Europe/Berlin or UTC') : read(zone);
    },
    { hint: `${ZONE_HINT} (default: UTC)`, placeholder: 'zone' },
  ),
  content_types: someOf(CONTENT_TYPES, 'text, image or text,image', {
    hint: `${TYPES_HINT} (default: text,image)`,
    placeholder: 'types',
  }),
};

/** Of `subscription add`, and of the configuration. */
export const NEW_SUBSCRIPTION = {
  ...SUBSCRIPTION_MEMBERS,
  id: required(SUBSCRIPTION_MEMBERS.id),
  account: required(SUBSCRIPTION_MEMBERS.account),
};

export const KEY_MEMBERS = {
  account: { ...ACCOUNT_MEMBERS.id, hint: 'account that the key belongs to' },
  name: value(readName, { hint: 'name of the key', placeholder: 'name' }),
  scopes: someOf(SCOPES, `one or more of ${SCOPES.join(', ')}`, {
    hint: 'comma-separated scopes: detections:read (reports:read and exports:create are accepted, but no endpoint uses them yet)',
    placeholder: 'scopes',
  }),
  subscriptions: list(readKeySubscriptions, {
    hint: 'subscriptions that the key may read, such as 7001,7002:text. Without a type, every content type the subscription has at the time',
    schema: Type.Array(Type.Union([Type.Integer(), Type.String()])),
  }),
  expires: value(orNone(readInstant), {
    hint: 'when the key expires, such as 2027-01-01T00:00:00Z, or none',
    placeholder: 'time',
    schema: TIME_OR_NULL,
    none: NONE,
  }),
  allow_address: list(
    (items): Reading<string[]> => {
      if (items.length === 1 && items[0] === NONE) return read([]);
      if (!items.every(isAddressOrNetwork))
        return wrong('addresses or networks such as 192.0.2.7, 10.0.0.0/8 or fd00::/8, or none');
      const addresses = [...new Set(items.map((item) => item.toLowerCase()))];
      return addresses.length > ADDRESSES_MAX ? wrong(`at most ${ADDRESSES_MAX} addresses`) : read(addresses);
    },
    {
      hint: 'address or network that may use the key, or none for any; repeatable',
      placeholder: 'cidr',
      several: 'repeated',
    },
  ),
  daily_rows: dailyRows('daily row allowance of the key itself, or none'),
};

/** Of `key create`, and of the configuration. */
export const NEW_KEY_MEMBERS = {
  ...KEY_MEMBERS,
  account: required(KEY_MEMBERS.account),
  name: required(KEY_MEMBERS.name),
  scopes: required(KEY_MEMBERS.scopes),
  subscriptions: required(KEY_MEMBERS.subscriptions),
};

/** `7001`, `7002:text`; `7001:text`, `7001:image` for one subscription with two types. Sorted by id. */
export function readKeySubscriptions(items: readonly string[]): Reading<KeySubscription[]> {
  const typesById = new Map<number, Set<ContentType> | null>();
  for (const item of items) {
    const [idText = '', type, ...more] = item.split(':');
    const number = SUBSCRIPTION_MEMBERS.id.read(idText);
    if (number.kind === 'wrong' || more.length > 0 || (type !== undefined && !isContentType(type)))
      return wrong('subscriptions such as 7001, 7001:text or 7001:image');
    const id = number.value;
    const types = typesById.get(id);
    if (typesById.has(id) && (types === null) !== (type === undefined))
      return wrong(`subscription ${id} either with or without a type, not both`);
    typesById.set(id, type === undefined ? null : new Set(types).add(type));
  }
  if (typesById.size === 0) return wrong('at least one subscription, such as 7001 or 7001:text');
  if (typesById.size > KEY_SUBSCRIPTIONS_MAX) return wrong(`at most ${KEY_SUBSCRIPTIONS_MAX} subscriptions`);
  return read(
    [...typesById]
      .sort(([first], [other]) => first - other)
      .map(([id, types]) => ({ id, content_types: types && CONTENT_TYPES.filter((one) => types.has(one)) })),
  );
}

export const ACCOUNT = Type.Object({
  id: Type.String(),
  name: Type.String(),
  daily_rows: ROWS_OR_NULL,
  print_metadata: Type.Boolean(),
  status: Type.Union([Type.Literal('active'), Type.Literal('suspended')]),
  suspended_at: TIME_OR_NULL,
  created_at: TIME,
});
export const SUBSCRIPTION = Type.Object({
  id: Type.Integer(),
  account: Type.String(),
  name: TEXT_OR_NULL,
  time_zone: Type.String(),
  content_types: Type.Array(CONTENT_TYPE),
  created_at: TIME,
});
export const KEY = Type.Object({
  id: Type.String(),
  name: Type.String(),
  account: Type.String(),
  scopes: Type.Array(Type.String()),
  subscriptions: Type.Array(
    Type.Object({ id: Type.Integer(), content_types: Type.Union([Type.Array(CONTENT_TYPE), Type.Null()]) }),
  ),
  expires_at: TIME_OR_NULL,
  status: Type.Union([Type.Literal('active'), Type.Literal('expired'), Type.Literal('revoked')]),
  revoked_at: TIME_OR_NULL,
  allow_addresses: Type.Array(Type.String()),
  daily_rows: ROWS_OR_NULL,
  created_at: TIME,
  last_used_at: TIME_OR_NULL,
  rows_today: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Null where the count is not known.',
  }),
});
export const NEW_KEY = Type.Composite([KEY, Type.Object({ key: Type.String() })]);
