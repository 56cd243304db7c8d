/** The option values of `wirewatch account`, `subscription` and `key`, by the rules of the configuration. */
import { InvalidArgumentError } from 'commander';
import { parseKey } from '../auth/key.ts';
import {
  readAccountId,
  readAddresses,
  readContentTypes,
  readDailyRows,
  readExpires,
  readKeyId,
  readKeySubscriptions,
  readName,
  readOverlap,
  readScopes,
  readSubscriptionId,
  readZone,
} from '../config/option-values.ts';
import { Refused } from '../refused.ts';
import { listValue, optionValue } from './options.ts';

export const accountIdValue = (text: string) => optionValue(readAccountId(text));
export const subscriptionIdValue = (text: string) => optionValue(readSubscriptionId(text));
/** A name for people. */
export const nameValue = (text: string) => optionValue(readName(text));
/** A daily row allowance; null for `none`. */
export const dailyRowsValue = (text: string) => optionValue(readDailyRows(text));
/** An IANA time zone. */
export const zoneValue = (text: string) => optionValue(readZone(text));
export const contentTypesValue = (text: string) => optionValue(readContentTypes(listValue(text)));
export const scopesValue = (text: string) => optionValue(readScopes(listValue(text)));
/** `7001,7002:text`; one subscription with two types as `7001:text,7001:image`. */
export const keySubscriptionsValue = (text: string) => optionValue(readKeySubscriptions(listValue(text)));
/** A duration such as `7d`, `12h`, `30m` or `0`; milliseconds. */
export const overlapValue = (text: string) => optionValue(readOverlap(text));

/** A key id. A complete key is accepted, too: after a leak it is what the operator has at hand. */
export function keyIdValue(text: string): string {
  const reading = readKeyId(parseKey(text)?.id ?? text);
  if (reading.kind === 'read') return reading.value;
  // No InvalidArgumentError: its message repeats the value, which may be a mistyped secret.
  throw new Refused('usage', `expected ${reading.expected}. To list the ids of all keys: wirewatch key list`);
}

/** A time in the future, epoch milliseconds; null for `none`. */
export function expiresValue(text: string): number | null {
  const ms = optionValue(readExpires(text));
  if (ms !== null && ms <= Date.now()) throw new InvalidArgumentError('Expected a time in the future.');
  return ms;
}

/** Repeatable: addresses and networks; `none` alone is an empty list. */
export function addressesValue(text: string, previous: readonly string[] | undefined): readonly string[] {
  // An empty list is what "none" became.
  const before = previous?.length === 0 ? ['none'] : (previous ?? []);
  return optionValue(readAddresses([...before, text]));
}
