/**
 * Accounts, subscriptions and keys that the configuration names: what is missing of them is created at a start, and
 * what exists is neither altered nor revived.
 *
 * An operator's command of yesterday outweighs a file of last year: a key that was revoked stays revoked, and an
 * account that was suspended or changed stays as it is. Differences are reported, so that the file can be corrected.
 */
import { isDeepStrictEqual } from 'node:util';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { listed, Refused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { addAccount, findAccount, setAccount } from './accounts.ts';
import { addKey, findKey, isRemoved, type KeyTerms, keyHash, keyStatus, listKeys } from './keys.ts';
import { addSubscription, findSubscription, openRemoval, type Subscription } from './subscriptions.ts';

/** Where an entry stands, for a message: `FILE, keys[1]`. */
interface Placed {
  readonly place: string;
}

/** What is undefined was not given: it gets its default, and is not compared. */
export interface SeedAccount extends Placed {
  readonly id: string;
  readonly name: string;
  readonly daily_rows: number | null | undefined;
  readonly print_metadata: boolean | undefined;
}

export interface SeedSubscription extends Placed {
  readonly id: number;
  readonly account_id: string;
  readonly name: string | undefined;
  readonly time_zone: string | undefined;
  readonly content_types: Subscription['content_types'] | undefined;
}

export interface SeedKeyTerms extends Placed {
  readonly account_id: string;
  readonly name: string;
  readonly scopes: KeyTerms['scopes'];
  readonly subscriptions: KeyTerms['subscriptions'];
  readonly expires_at: number | null | undefined;
  readonly allow_addresses: readonly string[] | undefined;
  readonly daily_rows: number | null | undefined;
}

export interface SeedKey extends SeedKeyTerms {
  readonly id: string;
  readonly prefix: string;
  /** SHA-256 of the whole key. */
  readonly hash: Buffer;
}

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
  /** What is there and differs, and in what: `account acme: name, suspended`. */
  readonly differences: readonly string[];
  /** Keys that still work, though the configuration has another one in their place. */
  readonly replaced: readonly ReplacedKey[];
}

export interface ReplacedKey {
  readonly id: string;
  /** The entry that has another key: `FILE, keys[1]`. */
  readonly place: string;
}

/**
 * Creates what is missing, in one transaction.
 *
 * @param db a writer on access.db, or a copy of it, which may be thrown away to try this out
 * @throws Refused `configuration` with every entry that cannot be created; nothing is, then
 */
export function preseed(db: Database, seeds: Seeds, nowMs: number): Preseeded {
  return writing(db, () => createAll(db, seeds, nowMs));
}

function createAll(db: Database, seeds: Seeds, nowMs: number): Preseeded {
  const accounts = createMissing(seeds.accounts, accountSteps(db, nowMs));
  // Of these rows are still being deleted: they, and what names them, have to wait for another start.
  const isLeft = (id: number) => openRemoval(db, id) !== null;
  const [laterSubscriptions, subscriptionsNow] = divided(seeds.subscriptions, ({ id }) => isLeft(id));
  const [laterKeys, keysNow] = divided(seeds.keys, (key) => key.subscriptions.some(({ id }) => isLeft(id)));
  const later = [
    ...laterSubscriptions.map(({ id }) => `subscription ${id}: being removed`),
    ...laterKeys.map(({ id }) => `key ${id}: its subscription is being removed`),
  ];
  const subscriptions = createMissing(subscriptionsNow, subscriptionSteps(db, nowMs));
  const keys = createMissing(keysNow, keySteps(db, nowMs));
  const outcomes = [accounts, subscriptions, keys];
  const problems = outcomes.flatMap((outcome) => outcome.problems);
  if (problems.length > 0)
    throw new Refused('configuration', listed(problems, 'entries in the configuration cannot be created'));
  const created = {
    accounts: accounts.created.map(({ id }) => id),
    subscriptions: subscriptions.created.map(({ id }) => id),
    keys: keys.created.map(({ id }) => id),
  };
  const differences = [...outcomes.flatMap((outcome) => outcome.differences), ...later];
  return { created, differences, replaced: replacedKeys(db, seeds.keys, nowMs) };
}

/**
 * Whoever puts another key into an entry mostly means to end the one before, which nothing here does: a key of the same
 * id with another secret, or one of the same account and name that no entry has.
 */
function replacedKeys(db: Database, seeds: readonly SeedKey[], nowMs: number): ReplacedKey[] {
  const configured = new Set(seeds.map(({ id }) => id));
  const working = listKeys(db).filter((key) => keyStatus(key, nowMs) === 'active');
  return working.flatMap(({ id, account_id, name }) => {
    const seed = seeds.find((one) =>
      configured.has(id) ? one.id === id : one.account_id === account_id && one.name === name,
    );
    if (seed === undefined || keyHash(db, id)?.equals(seed.hash) === true) return [];
    return [{ id, place: seed.place }];
  });
}

function divided<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

interface Steps<Seed> {
  readonly label: (seed: Seed) => string;
  /** In what an existing one differs; null when there is none. */
  readonly differences: (seed: Seed) => string[] | null;
  /** @throws Refused when it cannot be */
  readonly create: (seed: Seed) => void;
  /** The member to blame when it cannot be. */
  readonly blamed: (seed: Seed) => string;
}

function createMissing<Seed extends Placed>(seeds: readonly Seed[], steps: Steps<Seed>) {
  const created: Seed[] = [];
  const differences: string[] = [];
  const problems: string[] = [];
  for (const seed of seeds) {
    const found = steps.differences(seed);
    if (found !== null) {
      if (found.length > 0) differences.push(`${steps.label(seed)}: ${found.join(', ')}`);
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

function accountSteps(db: Database, nowMs: number): Steps<SeedAccount> {
  return {
    label: ({ id }) => `account ${id}`,
    differences(seed) {
      const found = findAccount(db, seed.id);
      if (found === null) return null;
      const suspended = found.suspended_at === null ? [] : ['suspended'];
      return [...differing(seed, found, ['name', 'daily_rows', 'print_metadata']), ...suspended];
    },
    create({ id, name, daily_rows, print_metadata }) {
      addAccount(db, { id, name, daily_rows: daily_rows ?? null }, nowMs);
      if (print_metadata === true) setAccount(db, id, { print_metadata });
    },
    blamed: () => 'id',
  };
}

function subscriptionSteps(db: Database, nowMs: number): Steps<SeedSubscription> {
  return {
    label: ({ id }) => `subscription ${id}`,
    differences(seed) {
      const found = findSubscription(db, seed.id);
      return found && differing(seed, found, ['account_id', 'name', 'time_zone', 'content_types']);
    },
    create({ id, account_id, name, time_zone, content_types }) {
      const terms = { name: name ?? null, time_zone: time_zone ?? 'UTC' };
      addSubscription(db, { id, account_id, ...terms, content_types: content_types ?? CONTENT_TYPES }, nowMs);
    },
    blamed: () => 'account',
  };
}

function keySteps(db: Database, nowMs: number): Steps<SeedKey> {
  return {
    label: ({ id }) => `key ${id}`,
    differences(seed) {
      const found = findKey(db, seed.id);
      if (found === null) return isRemoved(db, seed.id) ? ['removed with its account'] : null;
      const hash = keyHash(db, seed.id)?.equals(seed.hash) === true ? [] : ['hash'];
      const revoked = found.revoked_at === null ? [] : ['revoked'];
      return [...hash, ...differing(seed, found, KEY_TERMS), ...revoked];
    },
    create(seed) {
      const { id, account_id, prefix, hash, name, scopes, subscriptions } = seed;
      const expires_at = seed.expires_at ?? null;
      const allow_addresses = seed.allow_addresses ?? [];
      const terms = {
        name,
        scopes,
        subscriptions,
        expires_at,
        allow_addresses,
        daily_rows: seed.daily_rows ?? null,
      };
      addKey(db, { id, account_id, prefix, hash, ...terms }, nowMs);
    },
    blamed: ({ account_id }) => (findAccount(db, account_id) === null ? 'account' : 'subscriptions'),
  };
}

const KEY_TERMS = [
  'account_id',
  'name',
  'scopes',
  'subscriptions',
  'expires_at',
  'allow_addresses',
  'daily_rows',
] as const;

/** The members that were given and are different, by the names that the configuration has for them. */
function differing<Member extends string>(
  seed: Readonly<Record<Member, unknown>>,
  found: Readonly<Record<Member, unknown>>,
  members: readonly Member[],
): string[] {
  return members
    .filter((member) => seed[member] !== undefined && !isDeepStrictEqual(seed[member], found[member]))
    .map((member) => MEMBER_NAMES.get(member) ?? member);
}

const MEMBER_NAMES = new Map<string, string>([
  ['account_id', 'account'],
  ['expires_at', 'expires'],
  ['allow_addresses', 'allow_address'],
]);
