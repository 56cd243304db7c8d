/** `wirewatch key`: the API keys of clients (contract: Authentication). Changes apply to the next request. */
import type { Command } from 'commander';
import { createKey, parseKey } from '../auth/key.ts';
import {
  addKey,
  getKey,
  type Key,
  keyDocument,
  listKeys,
  revokeKey,
  rotateKey,
  setKey,
  subscriptionsText,
} from '../auth/keys.ts';
import {
  OVERLAP_DEFAULT_MS,
  type Reading,
  readAccountId,
  readAddresses,
  readDailyRows,
  readExpires,
  readKeyId,
  readKeySubscriptions,
  readName,
  readOverlap,
  readScopes,
  wrong,
} from '../config/option-values.ts';
import { grouped } from '../counted.ts';
import { readKeyUsage } from '../limits/usage.ts';
import { Refused } from '../refused.ts';
import { DAY_MS, formatMs, HOUR_MS } from '../time.ts';
import { requireChanges, withAccess } from './access.ts';
import {
  argument,
  commandGroup,
  entryResult,
  option,
  requiredOption,
  subcommand,
  YES_OPTION,
} from './command.ts';
import { confirm } from './confirm.ts';
import { commandFolder, configOf, localUrl } from './installation.ts';
import { listOf } from './options.ts';
import { type Column, details, joined } from './output.ts';
import { resourceCommands } from './resource.ts';

/** A key as `--json` prints it, with its use so far. */
type UsedKey = ReturnType<ReturnType<typeof documentsOf>>;

const LIST_COLUMNS: readonly Column<UsedKey>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'ACCOUNT', value: ({ account }) => account },
  { title: 'NAME', value: ({ name }) => name },
  {
    title: 'STATUS',
    value: ({ status, revoked_at }) => (revoked_at === null ? status : `${status} at ${revoked_at}`),
  },
  { title: 'SCOPES', value: ({ scopes }) => scopes.join(',') },
  { title: 'SUBSCRIPTIONS', value: ({ subscriptions }) => subscriptionsText(subscriptions) },
  { title: 'EXPIRES', value: ({ expires_at }) => expires_at ?? 'never' },
  { title: 'LAST USED', value: ({ last_used_at }) => last_used_at ?? 'no recorded use' },
  {
    title: 'ROWS TODAY',
    value: ({ rows_today }) => (rows_today === null ? null : grouped(rows_today)),
    align: 'right',
  },
];

/** For one key: what a list has no room for, too. */
const COLUMNS: readonly Column<UsedKey>[] = [
  ...LIST_COLUMNS,
  { title: 'ADDRESSES', value: ({ allow_addresses }) => allow_addresses.join(', ') || 'any' },
  {
    title: 'DAILY ROWS',
    value: ({ daily_rows }) => (daily_rows === null ? 'only that of the account' : grouped(daily_rows)),
  },
  { title: 'CREATED', value: ({ created_at }) => created_at },
];

const ID = argument('<id>', 'key id: the 12 characters after "_live_"', readId);
const NAME = ['--name <name>', 'name of the key', readName] as const;
const SCOPES = [
  '--scopes <scopes>',
  'comma-separated scopes: detections:read (reports:read and exports:create are accepted, but no endpoint uses them yet)',
  listOf(readScopes),
] as const;
const SUBSCRIPTIONS = [
  '--subscriptions <list>',
  'subscriptions that the key may read, such as 7001,7002:text. Without a type, every content type the subscription has at the time',
  listOf(readKeySubscriptions),
] as const;
const LIMITS = [
  option('--expires <time>', 'when the key expires, such as 2027-01-01T00:00:00Z, or none', readFutureTime),
  option(
    '--allow-address <cidr>',
    'address or network that may use the key, or none for any; repeatable',
    readAddressAlso,
  ),
  option('--daily-rows <number>', 'daily row allowance of the key itself, or none', readDailyRows),
];

const { shown, changed, list, show } = resourceCommands({
  noun: 'key',
  id: ID,
  exampleId: 'abcdefghij23',
  columns: COLUMNS,
  listColumns: LIST_COLUMNS,
  documents: (command) => documentsOf(command, Date.now()),
  all: listKeys,
  get: getKey,
  none: 'There are no keys yet. To create one, see: wirewatch key create --help',
  showNote: ', without its secret',
});

const create = subcommand('create', 'create a key. It is shown only once', {
  options: [
    requiredOption('--account <id>', 'account that the key belongs to', readAccountId),
    requiredOption(...NAME),
    requiredOption(...SCOPES),
    requiredOption(...SUBSCRIPTIONS),
    ...LIMITS,
  ],
  examples: [
    'key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001',
    'key create --account acme --name Partner --scopes detections:read --subscriptions 7001:text,7002 --expires 2027-01-01T00:00:00Z --allow-address 192.0.2.0/24',
  ],
  run(values, self) {
    const config = configOf(self);
    const { key, ...stored } = createKey(config.keys.prefix);
    const nowMs = Date.now();
    const added = {
      ...stored,
      account_id: values.account,
      name: values.name,
      scopes: values.scopes,
      subscriptions: values.subscriptions,
      expires_at: values.expires ?? null,
      allow_addresses: values.allowAddress ?? [],
      daily_rows: values.dailyRows ?? null,
    };
    const created = withAccess(self, (db) => addKey(db, added, nowMs));
    const { base_url } = config.server;
    const url = base_url !== '' ? base_url : (localUrl(config) ?? 'http://127.0.0.1:PORT');
    const document = { ...documentsOf(self, nowMs)(created), key };
    return entryResult(
      document,
      COLUMNS,
      `Created key ${created.id}.`,
      scopesNote(created),
      `The key. It is shown only once:\n\n  ${key}`,
      `Try it:\n\n  curl -H 'Authorization: Bearer ${key}' '${url}/v1/detections/changes?since=${formatMs(nowMs - HOUR_MS)}'`,
    );
  },
});

const set = subcommand(
  'set',
  'change a key, but not its secret. Values that you do not give stay unchanged',
  {
    arguments: [ID],
    options: [
      option(
        '--account <id>',
        'account of the key, as a check; a key cannot move to another account',
        readAccountId,
      ),
      option(...NAME),
      option(...SCOPES),
      option(...SUBSCRIPTIONS),
      ...LIMITS,
    ],
    examples: [
      'key set abcdefghij23 --expires 2027-01-01T00:00:00Z',
      'key set abcdefghij23 --allow-address none --daily-rows none',
    ],
    run({ id, ...values }, self) {
      requireChanges(self);
      const changes = {
        account_id: values.account,
        name: values.name,
        scopes: values.scopes,
        subscriptions: values.subscriptions,
        expires_at: values.expires,
        allow_addresses: values.allowAddress,
        daily_rows: values.dailyRows,
      };
      return changed(self, (db) => setKey(db, id, changes), `Changed key ${id}.`);
    },
  },
);

const rotate = subcommand(
  'rotate',
  'replace a key: create one with the same rights, shown only once, while the old one keeps working for a while',
  {
    arguments: [ID],
    options: [
      option(
        '--overlap <time>',
        `how long the old key keeps working, such as 7d, 12h, 30m or 0 (default: ${OVERLAP_DEFAULT_MS / DAY_MS}d)`,
        readOverlap,
      ),
      option(
        '--expires <time>',
        'when the new key expires, or none (default: when the old key would have expired)',
        readFutureTime,
      ),
    ],
    examples: ['key rotate abcdefghij23', 'key rotate abcdefghij23 --overlap 12h --json'],
    run({ id, overlap, expires }, self) {
      const config = configOf(self);
      const { key, ...stored } = createKey(config.keys.prefix);
      const nowMs = Date.now();
      const replacement = { ...stored, overlapMs: overlap ?? OVERLAP_DEFAULT_MS, expires_at: expires };
      const { added, old } = withAccess(self, (db) => rotateKey(db, id, replacement, nowMs));
      const replaced_expires_at = formatMs(old.expires_at ?? 0);
      const isConfigured = config.preseed.keys.some(({ source }) => source.id === id);
      const document = documentsOf(self, nowMs)(added);
      return {
        value: { ...document, key, replaces: id, replaced_expires_at },
        text: joined('\n\n', [
          `Created key ${added.id} with the rights of ${id}. The old key expires at ${replaced_expires_at}.`,
          `The key. It is shown only once:\n\n  ${key}`,
          'Give it to the client. The cursors of the client stay valid, so it continues where it was.',
          added.expires_at !== null && `The new key expires at ${formatMs(added.expires_at)}.`,
          `To check that the old key is no longer used: wirewatch key show ${id}`,
          isConfigured &&
            `${config.configFile} still has an entry for ${id}. It does not restore the old key; remove it.`,
        ]),
      };
    },
  },
);

const revoke = subcommand('revoke', 'revoke a key permanently', {
  arguments: [ID],
  options: [YES_OPTION],
  examples: ['key revoke abcdefghij23', 'key revoke abcdefghij23 --yes'],
  async run({ id, yes = false }, self) {
    const nowMs = Date.now();
    const { name, account_id, revoked_at } = withAccess(self, (db) => getKey(db, id));
    if (!yes && revoked_at === null)
      await confirm(`This permanently revokes key ${id} (${name}) of account ${account_id}.`, id);
    const { key, wasRevoked } = withAccess(self, (db) => revokeKey(db, id, nowMs), { urgent: true });
    return shown(self, key, wasRevoked ? `Key ${id} was already revoked.` : `Revoked key ${id}.`);
  },
});

const generate = subcommand('generate', 'generate a key and its hash offline, without storing them', {
  options: [option(...NAME)],
  examples: ['key generate', 'key generate --json'],
  run({ name }, self) {
    const { prefix } = configOf(self).keys;
    const { id, key, ...stored } = createKey(prefix);
    const hash = stored.hash.toString('hex');
    const generated = { id, ...(name === undefined ? {} : { name }), key, hash };
    // The entry has the hash alone, so that a copy of the file gives no access.
    const toml = [
      `[[keys]]\nid = "${id}"\nhash = "${hash}"\nprefix = "${prefix}"\naccount = "ACCOUNT"`,
      `name = ${JSON.stringify(name ?? 'NAME')}\nscopes = ["detections:read"]\nsubscriptions = [7001]\n`,
    ].join('\n');
    return {
      value: { ...generated, toml },
      text: [
        details(Object.entries(generated)),
        'The key is not stored anywhere: keep it safe. For the configuration file, with your own account and subscriptions:',
        toml.trimEnd(),
      ].join('\n\n'),
    };
  },
});

export const register = commandGroup(create, list, show, set, rotate, revoke, generate);

/** A key id. A complete key is accepted, too: after a leak it is what the operator has at hand. */
function readId(text: string): Reading<string> {
  const reading = readKeyId(parseKey(text)?.id ?? text);
  if (reading.kind === 'read') return reading;
  // Not as a wrong value: commander's message repeats it, and it may be a mistyped secret.
  throw new Refused('usage', `expected ${reading.expected}. To list the ids of all keys: wirewatch key list`);
}

/** A time in the future, epoch milliseconds; null for `none`. */
function readFutureTime(text: string): Reading<number | null> {
  const reading = readExpires(text);
  const isPast = reading.kind === 'read' && reading.value !== null && reading.value <= Date.now();
  return isPast ? wrong('a time in the future') : reading;
}

/** Repeatable: addresses and networks; `none` alone is an empty list. */
function readAddressAlso(text: string, previous: readonly string[] | undefined): Reading<readonly string[]> {
  // An empty list is what "none" became.
  const before = previous?.length === 0 ? ['none'] : (previous ?? []);
  return readAddresses([...before, text]);
}

/** Must follow withAccess: only then does the command act as the owner of the data folder. */
function documentsOf(command: Command, nowMs: number) {
  // By key id; null if usage.db cannot be read.
  const usage = readKeyUsage(commandFolder(command).usage, nowMs);
  return (key: Key) => {
    const { last_used_at = null, rows_today = 0 } = usage?.get(key.id) ?? {};
    return {
      ...keyDocument(key, nowMs),
      last_used_at: last_used_at === null ? null : formatMs(last_used_at),
      rows_today: usage === null ? null : rows_today,
    };
  };
}

/** Of scopes that have no effect; false if there are none. */
function scopesNote({ scopes }: Key): string | false {
  const idle = scopes.filter((scope) => scope !== 'detections:read');
  const unused = `No endpoint of this version uses ${idle.join(' or ')}.`;
  const useless = idle.length === scopes.length && 'Without detections:read, the key cannot read detections.';
  return idle.length > 0 && joined(' ', [unused, useless]);
}
