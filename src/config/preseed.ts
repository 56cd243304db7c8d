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
import {
  KEY_ID,
  listItems,
  type Reading,
  read,
  readAccountId,
  readAddresses,
  readContentTypes,
  readDailyRows,
  readExpires,
  readKeyId,
  readKeySubscriptions,
  readName,
  readScopes,
  readSubscriptionId,
  readSwitch,
  readZone,
  wrong,
} from './option-values.ts';
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
  const entriesOf = <Entry>(table: PreseedTable, entry: (members: Members) => Entry | null): Entry[] =>
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

function accountOf(members: Members): SeedAccount | null {
  const { place } = members;
  const id = members.required('id', readAccountId);
  const name = members.required('name', readName);
  const daily_rows = members.optional('daily_rows', readDailyRows);
  const print_metadata = members.optional('print_metadata', readSwitch);
  members.refuseOthers();
  return id === undefined || name === undefined ? null : { place, id, name, daily_rows, print_metadata };
}

function subscriptionOf(members: Members): SeedSubscription | null {
  const { place } = members;
  const id = members.required('id', readSubscriptionId);
  const account_id = members.required('account', readAccountId);
  const name = members.optional('name', readName);
  const time_zone = members.optional('time_zone', readZone);
  const content_types = members.optionalList('content_types', readContentTypes);
  members.refuseOthers();
  if (id === undefined || account_id === undefined) return null;
  return { place, id, account_id, name, time_zone, content_types };
}

function keyOf(members: Members, { file, prefix }: PreseedSource): ConfiguredKey | null {
  const { place } = members;
  const source = keySourceOf(members, path.dirname(file), prefix);
  const account_id = members.required('account', readAccountId);
  const name = members.required('name', readName);
  const scopes = members.requiredList('scopes', readScopes);
  const subscriptions = members.requiredList('subscriptions', readKeySubscriptions);
  const expires_at = members.optional('expires', readExpires);
  const allow_addresses = members.optionalList('allow_address', readAddresses);
  const daily_rows = members.optional('daily_rows', readDailyRows);
  members.refuseOthers();
  if (source === null || account_id === undefined || name === undefined) return null;
  if (scopes === undefined || subscriptions === undefined) return null;
  const terms = { place, account_id, name, scopes, subscriptions };
  return { ...terms, expires_at, allow_addresses, daily_rows, source };
}

function keySourceOf(
  members: Members,
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

function membersOf({ file, tables }: PreseedSource, table: PreseedTable, problems: string[]): Members[] {
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
    if (isTable(entry)) return new Members(place, entry, problems);
    problems.push(`${place}: expected an entry [[${table}]], found ${shown(plainValue(entry))}`);
    return [];
  });
}

/** The members of one entry, read one by one; members that were not read are unknown. */
class Members {
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
    return this.#readMember(name, (value) => {
      const text = textOf(value);
      return text === null ? wrong('text') : readText(text);
    });
  }

  required<Value>(name: string, read: (text: string) => Reading<Value>): Value | undefined {
    this.#require(name, () => read(''));
    return this.optional(name, read);
  }

  optionalList<Value>(
    name: string,
    readItems: (items: readonly string[]) => Reading<Value>,
  ): Value | undefined {
    return this.#readMember(name, (value) => {
      const items = itemsOf(value);
      return items === null ? wrong('a list') : readItems(items);
    });
  }

  requiredList<Value>(name: string, read: (items: readonly string[]) => Reading<Value>): Value | undefined {
    this.#require(name, () => read([]));
    return this.optionalList(name, read);
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

/** A value as text for the option; null for a list or a table. */
function textOf(value: unknown): string | null {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? value : null;
}

/** The items of a list, or of a text with commas; null for anything else. */
function itemsOf(value: unknown): string[] | null {
  if (!Array.isArray(value)) {
    const text = textOf(value);
    return text === null ? null : listItems(text);
  }
  const texts = value.map((item) => textOf(plainValue(item)));
  return texts.every((text) => text !== null) ? texts : null;
}
