/**
 * Accounts, subscriptions and keys of the configuration: a start creates those that are missing, and never changes an
 * existing one or brings a revoked key back. Differences are reported, so that the file can be corrected.
 */
import { isDeepStrictEqual } from 'node:util';
import { listed, misconfigured, reasonIfRefused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { addAccount, findAccount, type NewAccount } from './accounts.ts';
import { addKey, findKey, isRemoved, keyHash, type NewKey, type NewKeyTerms } from './keys.ts';
import { addSubscription, findSubscription, isBeingRemoved, type NewSubscription } from './subscriptions.ts';

/** `place`: that of the entry, for a message: `FILE, keys[1]`. */
export type Placed = Readonly<{ place: string }>;

/** Undefined members get their default, and are not compared. */
export type SeedKeyTerms = Placed & NewKeyTerms & Pick<NewKey, 'account_id'>;
export type SeedKey = Placed & NewKey;

export interface Seeds {
  readonly accounts: readonly (Placed & NewAccount)[];
  readonly subscriptions: readonly (Placed & NewSubscription)[];
  readonly keys: readonly SeedKey[];
}

/**
 * Creates what is missing, in one transaction.
 * @returns also how existing entries differ: `account acme: name, suspended`
 * @throws Refused `configuration` with every problem; then nothing is created
 */
export const preseed = (db: Database, seeds: Seeds, nowMs: number) =>
  writing(db, () => {
    const created = { accounts: [] as string[], subscriptions: [] as number[], keys: [] as string[] };
    const differences: string[] = [];
    const problems: string[] = [];
    const differs = (what: string, ...how: readonly (string | false)[]) => {
      const named = how.filter((one) => one !== false);
      if (named.length > 0) differences.push(`${what}: ${named.join(', ')}`);
    };
    /** @param blamed the member that is wrong if it cannot be created */
    const create = ({ place }: Placed, blamed: string, add: () => unknown) => {
      try {
        add();
      } catch (error) {
        problems.push(`${place}.${blamed}: ${reasonIfRefused(error)}`);
      }
    };
    for (const seed of seeds.accounts) {
      const found = findAccount(db, seed.id);
      if (found === null) created.accounts.push(addAccount(db, seed, nowMs).id);
      else
        differs(`account ${seed.id}`, ...differing(seed, found), found.suspended_at !== null && 'suspended');
    }
    // Rows of removed subscriptions may still be being deleted: they, and their keys, wait for a later start.
    const isLeft = ({ id }: { readonly id: number }) => isBeingRemoved(db, id);
    for (const seed of seeds.subscriptions) {
      const found = findSubscription(db, seed.id);
      if (found !== null) differs(`subscription ${seed.id}`, ...differing(seed, found));
      else if (isLeft(seed)) differs(`subscription ${seed.id}`, 'being removed');
      else create(seed, 'account', () => created.subscriptions.push(addSubscription(db, seed, nowMs).id));
    }
    for (const seed of seeds.keys) {
      const found = findKey(db, seed.id);
      const blamed = findAccount(db, seed.account_id) === null ? 'account' : 'subscriptions';
      const what = `key ${seed.id}`;
      if (found !== null) {
        const isOther = keyHash(db, seed.id)?.equals(seed.hash) !== true;
        differs(what, isOther && 'hash', ...differing(seed, found), found.revoked_at !== null && 'revoked');
      } else if (isRemoved(db, seed.id)) differs(what, 'removed with its account');
      else if (seed.subscriptions.some(isLeft)) differs(what, 'its subscription is being removed');
      else create(seed, blamed, () => created.keys.push(addKey(db, seed, nowMs).id));
    }
    if (problems.length > 0)
      throw misconfigured(listed(problems, 'entries in the configuration cannot be created'));
    return { created, differences };
  });

/** The members that the seed gives and that differ, by their names in the configuration. */
function differing(seed: object, found: object): string[] {
  const stored = new Map(Object.entries(found));
  return Object.entries(seed)
    .filter(([member, value]) => value !== undefined && stored.has(member))
    .filter(([member, value]) => !isDeepStrictEqual(value, stored.get(member)))
    .map(([member]) => MEMBER_NAMES[member] ?? member);
}

const MEMBER_NAMES: Readonly<Record<string, string>> = {
  account_id: 'account',
  expires_at: 'expires',
  allow_addresses: 'allow_address',
};
