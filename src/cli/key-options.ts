/** Reads the option values of `wirewatch key`. */
import { InvalidArgumentError } from 'commander';
import { isKeyId, parseKey } from '../auth/key.ts';
import type { KeySubscription } from '../auth/keys.ts';
import type { Scope } from '../auth/scopes.ts';
import { readAddresses, readExpires, readKeySubscriptions, readScopes } from '../config/option-values.ts';
import { Refused } from '../refused.ts';
import type { None } from './access.ts';
import { listValue, optionValue } from './options.ts';

export const ID_HELP = 'key id: the 12 characters after "_live_"';

/** Argument: a key id. A complete key is accepted, too: after a leak it is what the operator has at hand. */
export function keyIdValue(value: string): string {
  const id = isKeyId(value) ? value : parseKey(value)?.id;
  // No InvalidArgumentError: its message repeats the value, which may be a mistyped secret.
  if (id === undefined) {
    throw new Refused(
      'usage',
      'expected a key id: 12 characters from a to z and 2 to 7. To list the ids of all keys: wirewatch key list',
    );
  }
  return id;
}

/** Option value: comma-separated scopes. */
export function scopesValue(value: string): Scope[] {
  return optionValue(readScopes(listValue(value)));
}

/** Option value: `7001,7002:text`, one subscription with two types as `7001:text,7001:image`. */
export function subscriptionsValue(value: string): KeySubscription[] {
  return optionValue(readKeySubscriptions(listValue(value)));
}

/** Subscriptions as the option takes them. */
export function subscriptionsText(subscriptions: readonly KeySubscription[]): string {
  return subscriptions
    .flatMap(({ id, content_types }) => content_types?.map((type) => `${id}:${type}`) ?? [`${id}`])
    .join(',');
}

/** Option value: a time in the future, epoch milliseconds, or `none`. */
export function expiresValue(value: string): number | None {
  const ms = optionValue(readExpires(value));
  if (ms !== null && ms <= Date.now()) throw new InvalidArgumentError('Expected a time in the future.');
  return ms ?? 'none';
}

/** Option value, repeatable: addresses and networks; `none` alone is an empty list. */
export function addressesValue(value: string, previous: readonly string[] | undefined): string[] {
  // An empty list is what "none" became.
  const before = previous?.length === 0 ? ['none'] : (previous ?? []);
  return optionValue(readAddresses([...before, value]));
}
