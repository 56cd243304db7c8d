/**
 * `[[accounts]]`, `[[subscriptions]]` and `[[keys]]` of the configuration file: a start creates those that are missing.
 * The members are the options of `account add`, `subscription add` and `key create`, with the same rules.
 *
 * Lists can be TOML arrays or text as in the options: `["text"]`, `"text,image"`.
 */
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { hashKey, KEY_PREFIX, KEY_PREFIX_FORM, type ParsedKey, parseKey } from '../auth/key-form.ts';
import type { Placed, SeedAccount, SeedKey, SeedKeyTerms, SeedSubscription, Seeds } from '../auth/preseed.ts';
import { type Members, readEach, type ValuesOf, value } from '../operations/member.ts';
import { NEW_ACCOUNT, NEW_KEY_MEMBERS, NEW_SUBSCRIPTION } from '../operations/members.ts';
import { listed, misconfigured, reasonOf } from '../refused.ts';
import { isTable, KEY_ID, plainValue, type Reading, read, readKeyId, shown, wrong } from './option-values.ts';

export const PRESEED_TABLES = ['accounts', 'subscriptions', 'keys'] as const;
type PreseedTable = (typeof PRESEED_TABLES)[number];

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

interface PreseedSource {
  readonly file: string;
  /** The parsed values of `accounts`, `subscriptions` and `keys`; absent if there are none. */
  readonly tables: Readonly<Partial<Record<PreseedTable, unknown>>>;
  /** The default prefix of keys: the setting `[keys] prefix`. */
  readonly prefix: string;
}

const PREFIX = new RegExp(`^${KEY_PREFIX}$`);
const KEY = {
  ...NEW_KEY_MEMBERS,
  // No message repeats these two, which may be a key.
  id: value(readKeyId, { hint: KEY_ID, isSecret: true }),
  hash: value(readHash, { hint: 'the SHA-256 of the key', isSecret: true }),
  secret_file: value((text) => (text === '' ? wrong<string>('the path of a file') : read(text)), {
    hint: 'a file that contains the complete key',
  }),
  prefix: value((text) => (PREFIX.test(text) ? read(text) : wrong<string>(KEY_PREFIX_FORM)), {
    hint: KEY_PREFIX_FORM,
  }),
};

/** @param problems gets a line for each problem; the entries are valid only if there are none */
export function readPreseed(source: PreseedSource, problems: string[]): Preseed {
  const preseed = {
    accounts: entriesOf(source, 'accounts', NEW_ACCOUNT, problems),
    subscriptions: entriesOf(source, 'subscriptions', NEW_SUBSCRIPTION, problems).map(
      ({ account: account_id, ...terms }) => ({ account_id, ...terms }),
    ),
    keys: entriesOf(source, 'keys', KEY, problems, wrongSource).map((entry) => keyOf(entry, source)),
  };
  for (const table of ['accounts', 'subscriptions'] as const) findDuplicates(preseed[table], problems);
  return preseed;
}

function findDuplicates(
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

/** What is wrong with how an entry gives its key; null: nothing. */
function wrongSource(entry: object): readonly [name: string, problem: string] | null {
  const has = (name: string) => Object.hasOwn(entry, name);
  if (has('hash') && has('secret_file')) return ['secret_file', 'give hash or secret_file, not both'];
  if (has('secret_file'))
    return has('prefix')
      ? ['prefix', 'not allowed with secret_file, since the key in the file contains its prefix']
      : null;
  if (has('hash')) return has('id') ? null : ['id', `missing; expected ${KEY_ID}`];
  return [
    'hash',
    'missing: give the hash that "wirewatch key generate" prints, or secret_file, a file that contains the complete key',
  ];
}

function keyOf(entry: ValuesOf<typeof KEY> & Placed, { file, prefix: usual }: PreseedSource): ConfiguredKey {
  const { id = '', hash = Buffer.of(), secret_file, prefix = usual, ...terms } = entry;
  const { account: account_id, expires: expires_at, allow_address: allow_addresses, ...others } = terms;
  const key = { account_id, expires_at, allow_addresses, ...others };
  if (secret_file === undefined) return { ...key, source: { kind: 'hash', id, prefix, hash } };
  const secret = path.resolve(path.dirname(file), secret_file);
  return { ...key, source: { kind: 'secret_file', id: entry.id ?? null, file: secret } };
}

function readHash(text: string): Reading<Buffer> {
  if (/^[0-9a-f]{64}$/i.test(text)) return read(Buffer.from(text, 'hex'));
  const found =
    parseKey(text) === null ? '' : '; this is the key itself, which must not be in a configuration file';
  return wrong(
    `64 hexadecimal digits: the SHA-256 of the complete key, as "wirewatch key generate" prints it${found}`,
  );
}

/** The entries of a table that have no problem. @param wrongIn finds what no member alone shows */
function entriesOf<Own extends Members>(
  { file, tables }: PreseedSource,
  table: PreseedTable,
  members: Own,
  problems: string[],
  wrongIn: (entry: object) => readonly [name: string, problem: string] | null = () => null,
): (ValuesOf<Own> & Placed)[] {
  const entries = tables[table] ?? [];
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
    if (isTable(entry)) {
      const before = problems.length;
      const complain = (name: string, problem: string) => problems.push(`${place}.${name}: ${problem}`);
      const values = readEach(members, entry, complain);
      const wrong = wrongIn(entry);
      if (wrong !== null) complain(...wrong);
      return problems.length === before ? { ...values, place } : [];
    }
    problems.push(`${place}: expected an entry [[${table}]], found ${shown(plainValue(entry))}`);
    return [];
  });
}

/** Far more than a key has: a longer file is not a key file. */
const FILE_BYTES_MAX = 4096;
const READABLE_BY_ALL = 0o004;

/**
 * @returns also the secret files that every user of the machine may read
 * @throws Refused `configuration` with every file that cannot be read, or contains no key or the wrong one
 */
export function readSecretFiles({ accounts, subscriptions, keys }: Preseed) {
  const problems: string[] = [];
  const readable_by_all: string[] = [];
  const read = keys.flatMap((key): SeedKey[] => {
    const { source, ...terms } = key;
    if (source.kind === 'hash')
      return [{ ...terms, id: source.id, prefix: source.prefix, hash: source.hash }];
    try {
      const { text, mode } = readSmall(source.file);
      if ((mode & READABLE_BY_ALL) !== 0) readable_by_all.push(source.file);
      const { id, prefix } = keyIn(text, key);
      return [{ ...terms, id, prefix, hash: hashKey(text) }];
    } catch (error) {
      problems.push(`${key.place}.secret_file: ${source.file}: ${reasonOf(error, source.file)}`);
      return [];
    }
  });
  findDuplicates(read, problems);
  if (problems.length > 0) throw misconfigured(listed(problems, 'keys of the configuration cannot be read'));
  const seeds: Seeds = { accounts, subscriptions, keys: read };
  return { seeds, readable_by_all };
}

/** @throws Error that says what is wrong, but never repeats the content */
function keyIn(text: string, { source }: ConfiguredKey): ParsedKey {
  const key = parseKey(text);
  if (key === null)
    throw new Error(
      'it does not contain a complete key (PREFIX_live_ID_SECRET), or its checksum is wrong because it was copied badly',
    );
  const expected = source.kind === 'secret_file' ? source.id : null;
  if (expected !== null && expected !== key.id)
    throw new Error(`it contains key ${key.id}, but the entry names ${expected}`);
  return key;
}

function readSmall(path: string): { text: string; mode: number } {
  const { mode, size } = statSync(path);
  if (size > FILE_BYTES_MAX)
    throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes, so it is not a key file`);
  return { text: readFileSync(path, 'utf8').trim(), mode };
}
