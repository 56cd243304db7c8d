/**
 * `[[accounts]]`, `[[subscriptions]]` and `[[keys]]` of the configuration file: a start creates those that are missing.
 * The members are the options of `account add`, `subscription add` and `key create`, with the same rules.
 *
 * Lists can be TOML arrays or text as in the options: `["text"]`, `"text,image"`.
 */
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { hashKey, KEY_PREFIX, KEY_PREFIX_FORM, parseKey } from '../auth/key-form.ts';
import type { Placed, SeedKey, SeedKeyTerms, Seeds } from '../auth/preseed.ts';
import { type Members, readEach, type ValuesOf, value } from '../operations/member.ts';
import { NEW_ACCOUNT, NEW_KEY_MEMBERS, NEW_SUBSCRIPTION } from '../operations/members.ts';
import { listed, misconfigured, reasonOf } from '../refused.ts';
import { isTable, KEY_ID, matching, type Reading, read, readKeyId, shown, wrong } from './option-values.ts';

export const PRESEED_TABLES = ['accounts', 'subscriptions', 'keys'] as const;

type Complain = (name: string, problem: string) => void;

interface KeyInFile extends SeedKeyTerms {
  readonly secret_file: string;
  /** Null: the file has it. */
  readonly id: string | null;
}

export interface Preseed extends Omit<Seeds, 'keys'> {
  readonly keys: readonly (SeedKey | KeyInFile)[];
}

/** Entries of each kind; larger installations use commands. */
const ENTRIES_MAX = 1000;

const PREFIX = new RegExp(`^${KEY_PREFIX}$`);
const KEY = {
  ...NEW_KEY_MEMBERS,
  // No message repeats these two, which may be a key.
  id: value(readKeyId, { hint: KEY_ID, isSecret: true }),
  hash: value(readHash, { hint: 'the SHA-256 of the key', isSecret: true }),
  secret_file: value(matching(/./s, 'the path of a file'), { hint: 'a file that contains the complete key' }),
  prefix: value(matching(PREFIX, KEY_PREFIX_FORM), { hint: KEY_PREFIX_FORM }),
};

/**
 * @param tables the parsed file @param prefix of keys that name none: the setting `[keys] prefix`
 * @param problems gets a line for each problem; the entries are valid only if there are none
 */
export function readPreseed(
  file: string,
  tables: Readonly<Record<string, unknown>>,
  prefix: string,
  problems: string[],
): Preseed {
  /** @param check finds what no member alone shows */
  function entriesOf<Own extends Members>(
    table: (typeof PRESEED_TABLES)[number],
    members: Own,
    check: (entry: object, complain: Complain) => void = () => {},
  ): (ValuesOf<Own> & Placed)[] {
    const given = tables[table] ?? [];
    // It is a section: TOML allows only one of [keys] and [[keys]] in a file.
    const entries = table === 'keys' && isTable(given) ? [] : given;
    const refuse = (place: string, expected: string, found: string) => {
      problems.push(`${file}, ${place}: expected ${expected}, found ${found}`);
      return [];
    };
    if (!Array.isArray(entries)) return refuse(table, `entries [[${table}]]`, shown(entries));
    if (entries.length > ENTRIES_MAX)
      return refuse(table, `at most ${ENTRIES_MAX} entries`, `${entries.length}`);
    return entries.flatMap((entry: unknown, at) => {
      if (!isTable(entry)) return refuse(`${table}[${at}]`, `an entry [[${table}]]`, shown(entry));
      const place = `${file}, ${table}[${at}]`;
      const before = problems.length;
      const complain: Complain = (name, problem) => problems.push(`${place}.${name}: ${problem}`);
      const values = readEach(members, entry, complain);
      check(entry, complain);
      return problems.length === before ? { ...values, place } : [];
    });
  }

  const accounts = entriesOf('accounts', NEW_ACCOUNT);
  const subscriptions = entriesOf('subscriptions', NEW_SUBSCRIPTION).map(
    ({ account: account_id, ...terms }) => ({ account_id, ...terms }),
  );
  const keys = entriesOf('keys', KEY, checkSource).map(
    ({ id = '', hash = Buffer.of(), secret_file, ...members }): SeedKey | KeyInFile => {
      const { account: account_id, expires: expires_at, allow_address: allow_addresses, ...terms } = members;
      const key = { account_id, expires_at, allow_addresses, ...terms };
      return secret_file === undefined
        ? { prefix, ...key, id, hash }
        : { ...key, id: id || null, secret_file: path.resolve(path.dirname(file), secret_file) };
    },
  );
  findDuplicates(accounts, problems);
  findDuplicates(subscriptions, problems);
  return { accounts, subscriptions, keys };
}

function findDuplicates(entries: readonly (Placed & { id: string | number })[], problems: string[]): void {
  const placeById = new Map<string | number, string>();
  for (const { id, place } of entries) {
    const before = placeById.get(id);
    if (before === undefined) placeById.set(id, place);
    else problems.push(`${place}.id: ${id} is already used by ${before.split(', ').at(-1)}`);
  }
}

/** How an entry gives its key. */
function checkSource(entry: object, complain: Complain): void {
  const has = (name: string) => Object.hasOwn(entry, name);
  if (has('hash') && has('secret_file')) complain('secret_file', 'give hash or secret_file, not both');
  else if (has('secret_file') && has('prefix'))
    complain('prefix', 'not allowed with secret_file, since the key in the file contains its prefix');
  else if (has('hash') && !has('id')) complain('id', `missing; expected ${KEY_ID}`);
  else if (!has('hash') && !has('secret_file'))
    complain(
      'hash',
      'missing: give the hash that "wirewatch key generate" prints, or secret_file, a file that contains the complete key',
    );
}

function readHash(text: string): Reading<Buffer> {
  if (/^[0-9a-f]{64}$/i.test(text)) return read(Buffer.from(text, 'hex'));
  const found =
    parseKey(text) === null ? '' : '; this is the key itself, which must not be in a configuration file';
  return wrong(
    `64 hexadecimal digits: the SHA-256 of the complete key, as "wirewatch key generate" prints it${found}`,
  );
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
    if (!('secret_file' in key)) return [key];
    const { secret_file: file, id: expected, ...terms } = key;
    try {
      const { mode, size } = statSync(file);
      if (size > FILE_BYTES_MAX)
        throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes, so it is not a key file`);
      if ((mode & READABLE_BY_ALL) !== 0) readable_by_all.push(file);
      const text = readFileSync(file, 'utf8').trim();
      return [{ ...terms, ...keyIn(text, expected) }];
    } catch (error) {
      problems.push(`${key.place}.secret_file: ${file}: ${reasonOf(error, file)}`);
      return [];
    }
  });
  findDuplicates(read, problems);
  if (problems.length > 0) throw misconfigured(listed(problems, 'keys of the configuration cannot be read'));
  const seeds: Seeds = { accounts, subscriptions, keys: read };
  return { seeds, readable_by_all };
}

/** @param expected the id that the entry names @throws Error that says what is wrong, but never repeats the content */
function keyIn(text: string, expected: string | null): Pick<SeedKey, 'id' | 'prefix' | 'hash'> {
  const key = parseKey(text);
  if (key === null)
    throw new Error(
      'it does not contain a complete key (PREFIX_live_ID_SECRET), or its checksum is wrong because it was copied badly',
    );
  if (expected !== null && expected !== key.id)
    throw new Error(`it contains key ${key.id}, but the entry names ${expected}`);
  return { id: key.id, prefix: key.prefix, hash: hashKey(text) };
}
