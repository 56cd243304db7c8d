/**
 * `[[accounts]]`, `[[subscriptions]]` and `[[keys]]` of the configuration file: a start creates those that are missing.
 * The members are the options of `account add`, `subscription add` and `key create`, with the same rules.
 *
 * Lists can be TOML arrays or text as in the options: `["text"]`, `"text,image"`.
 */
import path from 'node:path';
import { KEY_PREFIX, KEY_PREFIX_FORM, parseKey } from '../auth/key.ts';
import type { SeedAccount, SeedKeyTerms, SeedSubscription } from '../auth/preseed.ts';
import { nearest } from '../nearest.ts';
import { type Members, required, type ValuesOf } from '../operations/member.ts';
import { ACCOUNT_MEMBERS, KEY_MEMBERS, SUBSCRIPTION_MEMBERS } from '../operations/members.ts';
import { KEY_ID, type Reading, read, readKeyId, wrong } from './option-values.ts';
import { isTable, plainValue, shown } from './raw-value.ts';

export const PRESEED_TABLES = ['accounts', 'subscriptions', 'keys'] as const;
export type PreseedTable = (typeof PRESEED_TABLES)[number];

/** A key before its secret file is read. */
export interface ConfiguredKey extends SeedKeyTerms {
  readonly source:
    | { readonly kind: 'hash'; readonly id: string; readonly prefix: string; readonly hash: Buffer }
    /** `id` null: the file contains it. */
    | { readonly kind: 'secret_file'; readonly id: string | null; readonly file: string };
}

export interface Preseed {
  readonly accounts: readonly SeedAccount[];
  readonly subscriptions: readonly SeedSubscription[];
  readonly keys: readonly ConfiguredKey[];
}

/** Entries of each kind; larger installations use commands. */
const ENTRIES_MAX = 1000;

export interface PreseedSource {
  /** The configuration file, absolute. */
  readonly file: string;
  /** The parsed values of `accounts`, `subscriptions` and `keys`; absent if there are none. */
  readonly tables: Readonly<Partial<Record<PreseedTable, unknown>>>;
  /** The default prefix of keys: the setting `[keys] prefix`. */
  readonly prefix: string;
}

/** @param problems gets a line for each problem; the entries are valid only if there are none */
export function readPreseed(source: PreseedSource, problems: string[]): Preseed {
  const entriesOf = <Seed>(table: PreseedTable, entry: (members: ConfigEntry) => Seed | null): Seed[] =>
    membersOf(source, table, problems).flatMap((members) => entry(members) ?? []);
  const preseed = {
    accounts: entriesOf('accounts', accountOf),
    subscriptions: entriesOf('subscriptions', subscriptionOf),
    keys: entriesOf('keys', (members) => keyOf(members, source)),
  };
  for (const table of ['accounts', 'subscriptions'] as const) findDuplicates(preseed[table], problems);
  return preseed;
}

/** Reports entries with an id that an earlier one has. */
export function findDuplicates(
  entries: readonly { readonly id: string | number; readonly place: string }[],
  problems: string[],
): void {
  const placeById = new Map<string | number, string>();
  for (const { id, place } of entries) {
    const before = placeById.get(id);
    if (before === undefined) placeById.set(id, place);
    else problems.push(`${place}.id: ${id} is already used by ${before.split(', ').at(-1)}`);
  }
}

function accountOf(members: ConfigEntry): SeedAccount | null {
  const { id, name } = ACCOUNT_MEMBERS;
  const values = members.read({ ...ACCOUNT_MEMBERS, id: required(id), name: required(name) });
  members.refuseOthers();
  return values && { place: members.place, ...values };
}

function subscriptionOf(members: ConfigEntry): SeedSubscription | null {
  const { id, account } = SUBSCRIPTION_MEMBERS;
  const values = members.read({ ...SUBSCRIPTION_MEMBERS, id: required(id), account: required(account) });
  members.refuseOthers();
  if (values === null) return null;
  const { account: account_id, ...terms } = values;
  return { place: members.place, account_id, ...terms };
}

function keyOf(members: ConfigEntry, { file, prefix }: PreseedSource): ConfiguredKey | null {
  const { account, name, scopes, subscriptions } = KEY_MEMBERS;
  const source = keySourceOf(members, path.dirname(file), prefix);
  const values = members.read({
    ...KEY_MEMBERS,
    account: required(account),
    name: required(name),
    scopes: required(scopes),
    subscriptions: required(subscriptions),
  });
  members.refuseOthers();
  if (source === null || values === null) return null;
  const { account: account_id, expires: expires_at, allow_address: allow_addresses, ...terms } = values;
  return { place: members.place, account_id, expires_at, allow_addresses, ...terms, source };
}

function keySourceOf(
  members: ConfigEntry,
  folder: string,
  defaultPrefix: string,
): ConfiguredKey['source'] | null {
  const id = members.secretly('id', readKeyId);
  const hash = members.secretly('hash', readHash);
  const file = members.optional('secret_file', readPath);
  const prefix = members.optional('prefix', readPrefix);
  if (members.has('hash') === members.has('secret_file')) {
    members.complain(
      members.has('hash') ? 'secret_file' : 'hash',
      members.has('hash')
        ? 'give hash or secret_file, not both'
        : 'missing: give the hash that "wirewatch key generate" prints, or secret_file, a file that contains the complete key',
    );
    return null;
  }
  if (file !== undefined) {
    if (prefix !== undefined)
      members.complain(
        'prefix',
        'not allowed with secret_file, since the key in the file contains its prefix',
      );
    return { kind: 'secret_file', id: id ?? null, file: path.resolve(folder, file) };
  }
  if (!members.has('id')) members.complain('id', `missing; expected ${KEY_ID}`);
  if (id === undefined || hash === undefined) return null;
  return { kind: 'hash', id, prefix: prefix ?? defaultPrefix, hash };
}

function readHash(text: string): Reading<Buffer> {
  if (/^[0-9a-f]{64}$/i.test(text)) return read(Buffer.from(text, 'hex'));
  const found =
    parseKey(text) === null ? '' : '; this is the key itself, which must not be in a configuration file';
  return wrong(
    `64 hexadecimal digits: the SHA-256 of the complete key, as "wirewatch key generate" prints it${found}`,
  );
}

function readPath(text: string): Reading<string> {
  return text === '' ? wrong('the path of a file') : read(text);
}

function readPrefix(text: string): Reading<string> {
  return new RegExp(`^${KEY_PREFIX}$`).test(text) ? read(text) : wrong(KEY_PREFIX_FORM);
}

function membersOf({ file, tables }: PreseedSource, table: PreseedTable, problems: string[]): ConfigEntry[] {
  const entries = tables[table];
  if (entries === undefined) return [];
  if (!Array.isArray(entries)) {
    problems.push(`${file}, ${table}: expected entries [[${table}]], found ${shown(plainValue(entries))}`);
    return [];
  }
  if (entries.length > ENTRIES_MAX) {
    problems.push(`${file}, ${table}: expected at most ${ENTRIES_MAX} entries, found ${entries.length}`);
    return [];
  }
  return entries.flatMap((entry: unknown, at) => {
    const place = `${file}, ${table}[${at}]`;
    if (isTable(entry)) return new ConfigEntry(place, entry, problems);
    problems.push(`${place}: expected an entry [[${table}]], found ${shown(plainValue(entry))}`);
    return [];
  });
}

/** The members of one entry, read one by one; members that were not read are unknown. */
class ConfigEntry {
  readonly place: string;
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #problems: string[];
  readonly #known: string[] = [];

  constructor(place: string, entry: object, problems: string[]) {
    this.place = place;
    this.#values = new Map(Object.entries(entry));
    this.#problems = problems;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  complain(name: string, problem: string): void {
    this.#problems.push(`${this.place}.${name}: ${problem}`);
  }

  optional<Value>(name: string, readText: (text: string) => Reading<Value>): Value | undefined {
    return this.#readMember(name, (value) => (typeof value === 'string' ? readText(value) : wrong('text')));
  }

  /** @returns null if one is wrong or missing */
  read<Own extends Members>(members: Own): ValuesOf<Own> | null {
    const before = this.#problems.length;
    const values: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(members)) {
      if (member.isRequired) this.#require(name, () => member.read(member.several === 'no' ? '' : []));
      const value = this.#readMember(name, member.read);
      if (value !== undefined) values[name] = value;
    }
    return this.#problems.length === before ? (values as ValuesOf<Own>) : null;
  }

  /** As {@link optional}, but the message does not repeat the value, which may be a key. */
  secretly<Value>(name: string, read: (text: string) => Reading<Value>): Value | undefined {
    this.#known.push(name);
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    const reading = read(typeof value === 'string' ? value : '');
    if (reading.kind === 'read') return reading.value;
    this.complain(name, `expected ${reading.expected}`);
    return undefined;
  }

  refuseOthers(): void {
    for (const name of this.#values.keys()) {
      if (this.#known.includes(name)) continue;
      const near = nearest(name, this.#known, 3);
      this.complain(name, `unknown${near === null ? '' : `; did you mean ${near}?`}`);
    }
  }

  #require(name: string, readNothing: () => Reading<unknown>): void {
    if (this.has(name)) return;
    const nothing = readNothing();
    this.complain(name, `missing${nothing.kind === 'wrong' ? `; expected ${nothing.expected}` : ''}`);
  }

  #readMember<Value>(name: string, read: (value: unknown) => Reading<Value>): Value | undefined {
    this.#known.push(name);
    if (!this.has(name)) return undefined;
    const value = plainValue(this.#values.get(name));
    const reading = read(value);
    if (reading.kind === 'read') return reading.value;
    this.complain(name, `expected ${reading.expected}, found ${shown(value)}`);
    return undefined;
  }
}
