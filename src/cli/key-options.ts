/** How the values of `wirewatch key`'s options are written. */
import { InvalidArgumentError } from 'commander';
import { isKeyId, parseKey } from '../auth/key.ts';
import type { KeySubscription } from '../auth/keys.ts';
import { isScope, SCOPES, type Scope } from '../auth/scopes.ts';
import { isAddressOrNetwork } from '../config/format.ts';
import { CONTENT_TYPES, type ContentType, isContentType } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { type None, subscriptionIdValue } from './access.ts';
import { instantValue, listValue } from './options.ts';

const ADDRESSES_MAX = 100;
const SUBSCRIPTIONS_MAX = 1000;

/** Argument: the id of a key; a whole key names itself too, as what has leaked is what one has at hand. */
export function keyIdValue(value: string): string {
  const id = isKeyId(value) ? value : parseKey(value)?.id;
  // No InvalidArgumentError: its message repeats the value, which may be a mistyped secret.
  if (id === undefined) {
    throw new Refused(
      'usage',
      'expected the id of a key: 12 characters a-z and 2-7, as shown by: wirewatch key list',
    );
  }
  return id;
}

/** Option value: scopes with commas between them, in their one order. */
export function scopesValue(value: string): Scope[] {
  const scopes = listValue(value);
  if (!scopes.every(isScope)) {
    throw new InvalidArgumentError(`Expected some of ${SCOPES.join(',')}, with commas between them.`);
  }
  return SCOPES.filter((scope) => scopes.includes(scope));
}

/** Option value: `7001,7002:text`, one subscription with two types as `7001:text,7001:image`. */
export function subscriptionsValue(value: string): KeySubscription[] {
  const typesById = new Map<number, Set<ContentType> | null>();
  for (const item of listValue(value)) {
    const [idText = '', type, ...more] = item.split(':');
    const id = subscriptionIdValue(idText);
    if (more.length > 0 || (type !== undefined && !isContentType(type))) {
      throw new InvalidArgumentError('Expected subscriptions such as 7001 or 7001:text or 7001:image.');
    }
    const types = typesById.get(id);
    if (typesById.has(id) && (types === null || type === undefined)) {
      throw new InvalidArgumentError(`Subscription ${id} stands there both with and without a type.`);
    }
    typesById.set(id, type === undefined ? null : new Set(types).add(type));
  }
  if (typesById.size > SUBSCRIPTIONS_MAX) {
    throw new InvalidArgumentError(`Expected at most ${SUBSCRIPTIONS_MAX} subscriptions.`);
  }
  return [...typesById]
    .sort(([one], [other]) => one - other)
    .map(([id, types]) => ({ id, content_types: types && CONTENT_TYPES.filter((type) => types.has(type)) }));
}

/** Subscriptions as the option takes them. */
export function subscriptionsText(subscriptions: readonly KeySubscription[]): string {
  return subscriptions
    .flatMap(({ id, content_types }) => content_types?.map((type) => `${id}:${type}`) ?? [`${id}`])
    .join(',');
}

/** Option value: an instant in the future, epoch milliseconds, or `none`. */
export function expiresValue(value: string): number | None {
  if (value === 'none') return value;
  const ms = instantValue(value);
  if (ms <= Date.now()) throw new InvalidArgumentError('Expected an instant in the future.');
  return ms;
}

/** Option value, repeatable: addresses and networks; `none` alone is an empty list. */
export function addressesValue(value: string, previous: readonly string[] | undefined): string[] {
  if (value === 'none' && previous === undefined) return [];
  if (!isAddressOrNetwork(value) || previous?.length === 0) {
    throw new InvalidArgumentError(
      'Expected an address or a network such as 192.0.2.7, 10.0.0.0/8, fd00::/8; or only none.',
    );
  }
  const addresses = [...new Set([...(previous ?? []), value.toLowerCase()])];
  if (addresses.length > ADDRESSES_MAX)
    throw new InvalidArgumentError(`Expected at most ${ADDRESSES_MAX} addresses.`);
  return addresses;
}
