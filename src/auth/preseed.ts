/**
 * Accounts, subscriptions and keys of the configuration: a start creates those that are missing, and never changes an
 * existing one or brings a revoked key back: an operator's command from yesterday outweighs a file from last year.
 * Differences are reported, so that the file can be corrected.
 */
import { isDeepStrictEqual } from 'node:util';
import { listed, misconfigured, Refused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { addAccount, findAccount, type NewAccount } from './accounts.ts';
import { addKey, findKey, isRemoved, keyHash, type NewKey, type NewKeyTerms } from './keys.ts';
import { addSubscription, findSubscription, isBeingRemoved, type NewSubscription } from './subscriptions.ts';

interface Placed {
  /** Place of the entry, for a message: `FILE, keys[1]`. */
  readonly place: string;
}

/** Undefined members get their default, and are not compared. */
export type SeedAccount = Placed & NewAccount;
export type SeedSubscription = Placed & NewSubscription;
export type SeedKeyTerms = Placed & NewKeyTerms & Pick<NewKey, 'account_id'>;
export type SeedKey = Placed & NewKey;

export interface Seeds {
  readonly accounts: readonly SeedAccount[];
  readonly subscriptions: readonly SeedSubscription[];
  readonly keys: readonly SeedKey[];
}

export interface Preseeded {
  readonly created: {
    readonly accounts: readonly string[];
    readonly subscriptions: readonly number[];
    readonly keys: readonly string[];
  };
  /** Existing entries that differ, and how: `account acme: name, suspended`. */
  readonly differences: readonly string[];
}

/** Creates what is missing, in one transaction. @throws Refused `configuration` with every problem; then nothing is */
export function preseed(db: Database, seeds: Seeds, nowMs: number): Preseeded {
  return writing(db, () => createAll(db, seeds, nowMs));
}

function createAll(db: Database, seeds: Seeds, nowMs: number): Preseeded {
  const accounts = createMissing(seeds.accounts, {
    label: 'account',
    differences(seed) {
      const found = findAccount(db, seed.id);
      return found && [...differing(seed, found), ...(found.suspended_at === null ? [] : ['suspended'])];
    },
    create: (seed) => addAccount(db, seed, nowMs),
    blamed: () => 'id',
  });
  // Rows of removed subscriptions may still be being deleted: they, and their keys, wait for a later start.
  const isLeft = (id: number) => isBeingRemoved(db, id);
  const [laterSubscriptions, subscriptionsNow] = divided(seeds.subscriptions, ({ id }) => isLeft(id));
  const [laterKeys, keysNow] = divided(seeds.keys, (key) => key.subscriptions.some(({ id }) => isLeft(id)));
  const later = [
    ...laterSubscriptions.map(({ id }) => `subscription ${id}: being removed`),
    ...laterKeys.map(({ id }) => `key ${id}: its subscription is being removed`),
  ];
  const subscriptions = createMissing(subscriptionsNow, {
    label: 'subscription',
    differences(seed) {
      const found = findSubscription(db, seed.id);
      return found && differing(seed, found);
    },
    create: (seed) => addSubscription(db, seed, nowMs),
    blamed: () => 'account',
  });
  const keys = createMissing(keysNow, {
    label: 'key',
    differences: (seed) => keyDifferences(db, seed),
    create: (seed) => addKey(db, seed, nowMs),
    blamed: ({ account_id }) => (findAccount(db, account_id) === null ? 'account' : 'subscriptions'),
  });
  const outcomes = [accounts, subscriptions, keys];
  const problems = outcomes.flatMap((outcome) => outcome.problems);
  if (problems.length > 0)
    throw misconfigured(listed(problems, 'entries in the configuration cannot be created'));
  const created = {
    accounts: accounts.created.map(({ id }) => id),
    subscriptions: subscriptions.created.map(({ id }) => id),
    keys: keys.created.map(({ id }) => id),
  };
  const differences = [...outcomes.flatMap((outcome) => outcome.differences), ...later];
  return { created, differences };
}

function divided<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

interface Steps<Seed> {
  readonly label: string;
  readonly differences: (seed: Seed) => string[] | null;
  readonly create: (seed: Seed) => unknown;
  readonly blamed: (seed: Seed) => string;
}

function createMissing<Seed extends Placed & { readonly id: string | number }>(
  seeds: readonly Seed[],
  steps: Steps<Seed>,
) {
  const created: Seed[] = [];
  const differences: string[] = [];
  const problems: string[] = [];
  for (const seed of seeds) {
    const found = steps.differences(seed);
    if (found !== null) {
      if (found.length > 0) differences.push(`${steps.label} ${seed.id}: ${found.join(', ')}`);
      continue;
    }
    const blamed = steps.blamed(seed);
    try {
      steps.create(seed);
      created.push(seed);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      problems.push(`${seed.place}.${blamed}: ${error.message}`);
    }
  }
  return { created, differences, problems };
}

function keyDifferences(db: Database, seed: SeedKey): string[] | null {
  const found = findKey(db, seed.id);
  if (found === null) return isRemoved(db, seed.id) ? ['removed with its account'] : null;
  const hash = keyHash(db, seed.id)?.equals(seed.hash) === true ? [] : ['hash'];
  const revoked = found.revoked_at === null ? [] : ['revoked'];
  return [...hash, ...differing(seed, found), ...revoked];
}

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
