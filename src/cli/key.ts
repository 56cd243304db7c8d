/**
 * `wirewatch key`: the API keys of clients (contract: Authentication). Works while Wirewatch is running, and takes effect
 * with its next request.
 */
import type { Command } from 'commander';
import { createKey, hashKey } from '../auth/key.ts';
import { addKey, getKey, type Key, keyDocument, listKeys, revokeKey, setKey } from '../auth/keys.ts';
import type { Config } from '../config/load.ts';
import { grouped } from '../counted.ts';
import { formatMs, HOUR_MS } from '../time.ts';
import {
  accountIdValue,
  dailyRowsValue,
  details,
  type None,
  nameValue,
  orNull,
  requireChanges,
  withAccess,
} from './access.ts';
import { configOf } from './config.ts';
import { confirm } from './confirm.ts';
import {
  addressesValue,
  expiresValue,
  ID_HELP,
  keyIdValue,
  scopesValue,
  subscriptionsText,
  subscriptionsValue,
} from './key-options.ts';
import { registerRotate } from './key-rotate.ts';
import { type UsageOfKeys, usageOfKeys, usedKeyDocument } from './key-usage.ts';
import { localUrl } from './local-address.ts';
import { addExamples, commonOptions } from './options.ts';
import { print, table } from './output.ts';

/** The options of `create` and `set`, read. */
type KeyOptions = {
  account: string;
  name: string;
  scopes: Key['scopes'];
  subscriptions: Key['subscriptions'];
  expires?: number | None;
  allowAddress?: Key['allow_addresses'];
  dailyRows?: number | None;
};

const SCOPES_HELP =
  'comma-separated scopes: detections:read (reports:read and exports:create are accepted, but no endpoint uses them yet)';
const SUBSCRIPTIONS_HELP =
  'subscriptions that the key may read, such as 7001,7002:text. Without a type, every content type the subscription has at the time';

export function register(key: Command): void {
  registerCreate(key);
  registerList(key);
  registerShow(key);
  registerSet(key);
  registerRotate(key);
  registerRevoke(key);
  registerGenerate(key);
}

function registerCreate(key: Command): void {
  const command = key
    .command('create')
    .description('create a key. It is shown only once')
    .requiredOption('--account <id>', 'account that the key belongs to', accountIdValue)
    .requiredOption('--name <name>', 'name of the key', nameValue)
    .requiredOption('--scopes <scopes>', SCOPES_HELP, scopesValue)
    .requiredOption('--subscriptions <list>', SUBSCRIPTIONS_HELP, subscriptionsValue);
  addLimitOptions(command).action((options: KeyOptions, self: Command) => {
    const config = configOf(self);
    const { id, key } = createKey(config.keys.prefix);
    const added = {
      id,
      prefix: config.keys.prefix,
      hash: hashKey(key),
      account_id: options.account,
      name: options.name,
      scopes: options.scopes,
      subscriptions: options.subscriptions,
      expires_at: orNull(options.expires) ?? null,
      allow_addresses: options.allowAddress ?? [],
      daily_rows: orNull(options.dailyRows) ?? null,
    };
    const nowMs = Date.now();
    const created = withAccess(self, (db) => addKey(db, added, nowMs));
    const usage = usageOfKeys(self, nowMs);
    print(
      { ...usedKeyDocument(created, usage, nowMs), key },
      {
        json: commonOptions(self).json,
        text: () =>
          [
            `Created key ${id}.`,
            keyText(created, usage, nowMs),
            ...scopesNotes(created),
            `The key. It is shown only once:\n\n  ${key}`,
            `Try it:\n\n  curl -H 'Authorization: Bearer ${key}' '${baseUrl(config)}/v1/detections/changes?since=${formatMs(nowMs - HOUR_MS)}'`,
          ].join('\n\n'),
      },
    );
  });
  addExamples(command, [
    'key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001',
    'key create --account acme --name Partner --scopes detections:read --subscriptions 7001:text,7002 --expires 2027-01-01T00:00:00Z --allow-address 192.0.2.0/24',
  ]);
}

function registerList(key: Command): void {
  const command = key
    .command('list')
    .description('list all keys')
    .action((_options: unknown, self: Command) => {
      const nowMs = Date.now();
      const found = withAccess(self, listKeys);
      const usage = usageOfKeys(self, nowMs);
      const keys = found.map((one) => usedKeyDocument(one, usage, nowMs));
      print(keys, {
        json: commonOptions(self).json,
        text: () =>
          keys.length === 0
            ? 'There are no keys yet. To create one, see: wirewatch key create --help'
            : table(keys, [
                { title: 'ID', value: (one) => one.id },
                { title: 'ACCOUNT', value: (one) => one.account },
                { title: 'NAME', value: (one) => one.name },
                { title: 'STATUS', value: (one) => one.status },
                { title: 'SCOPES', value: (one) => one.scopes.join(',') },
                { title: 'SUBSCRIPTIONS', value: (one) => subscriptionsText(one.subscriptions) },
                { title: 'EXPIRES', value: (one) => one.expires_at },
                { title: 'LAST USED', value: (one) => one.last_used_at },
                {
                  title: 'ROWS TODAY',
                  value: (one) => (one.rows_today === null ? null : grouped(one.rows_today)),
                  align: 'right',
                },
              ]),
      });
    });
  addExamples(command, ['key list', 'key list --json']);
}

function registerShow(key: Command): void {
  const command = key
    .command('show')
    .description('show one key, without its secret')
    .argument('<id>', ID_HELP, keyIdValue)
    .action((id: string, _options: unknown, self: Command) => {
      printKey(
        self,
        withAccess(self, (db) => getKey(db, id)),
      );
    });
  addExamples(command, ['key show abcdefghij23']);
}

function registerSet(key: Command): void {
  const command = key
    .command('set')
    .description('change a key, but not its secret. Values that you do not give stay unchanged')
    .argument('<id>', ID_HELP, keyIdValue)
    .option(
      '--account <id>',
      'account of the key, as a check; a key cannot move to another account',
      accountIdValue,
    )
    .option('--name <name>', 'name of the key', nameValue)
    .option('--scopes <scopes>', SCOPES_HELP, scopesValue)
    .option('--subscriptions <list>', SUBSCRIPTIONS_HELP, subscriptionsValue);
  addLimitOptions(command).action((id: string, options: Partial<KeyOptions>, self: Command) => {
    requireChanges(self);
    const changes = {
      account_id: options.account,
      name: options.name,
      scopes: options.scopes,
      subscriptions: options.subscriptions,
      expires_at: orNull(options.expires),
      allow_addresses: options.allowAddress,
      daily_rows: orNull(options.dailyRows),
    };
    printKey(
      self,
      withAccess(self, (db) => setKey(db, id, changes)),
      `Changed key ${id}.`,
    );
  });
  addExamples(command, [
    'key set abcdefghij23 --expires 2027-01-01T00:00:00Z',
    'key set abcdefghij23 --allow-address none --daily-rows none',
  ]);
}

function registerRevoke(key: Command): void {
  const command = key
    .command('revoke')
    .description('revoke a key permanently')
    .argument('<id>', ID_HELP, keyIdValue)
    .option('--yes', 'do not ask for confirmation')
    .action(async (id: string, { yes }: { yes?: boolean }, self: Command) => {
      const nowMs = Date.now();
      const found = withAccess(self, (db) => getKey(db, id));
      if (yes !== true && found.revoked_at === null) {
        const { name, account } = keyDocument(found, nowMs);
        await confirm(`This permanently revokes key ${id} (${name}) of account ${account}.`, id);
      }
      const { key, wasRevoked } = withAccess(self, (db) => revokeKey(db, id, nowMs), { urgent: true });
      printKey(self, key, wasRevoked ? `Key ${id} was already revoked.` : `Revoked key ${id}.`);
    });
  addExamples(command, ['key revoke abcdefghij23', 'key revoke abcdefghij23 --yes']);
}

function registerGenerate(key: Command): void {
  const command = key
    .command('generate')
    .description('generate a key and its hash offline, without storing them')
    .option('--name <name>', 'name of the key', nameValue)
    .action((options: { name?: string }, self: Command) => {
      const { prefix } = configOf(self).keys;
      const { id, key } = createKey(prefix);
      const hash = hashKey(key).toString('hex');
      const named = options.name === undefined ? {} : { name: options.name };
      const toml = tomlOf({ id, hash, prefix, name: options.name ?? 'NAME' });
      print(
        { id, ...named, key, hash, toml },
        {
          json: commonOptions(self).json,
          text: () =>
            [
              details(Object.entries({ id, ...named, key, hash })),
              'The key is not stored anywhere: keep it safe. For the configuration file, with your own account and subscriptions:',
              toml.trimEnd(),
            ].join('\n\n'),
        },
      );
    });
  addExamples(command, ['key generate', 'key generate --json']);
}

/** The key as an entry of the configuration. It has only the hash, so that a copy of the file gives no access. */
function tomlOf({
  id,
  hash,
  prefix,
  name,
}: Readonly<Record<'id' | 'hash' | 'prefix' | 'name', string>>): string {
  const members = {
    id,
    hash,
    prefix,
    account: 'ACCOUNT',
    name,
    scopes: ['detections:read'],
    subscriptions: [7001],
  };
  const lines = Object.entries(members).map(([member, value]) => `${member} = ${JSON.stringify(value)}\n`);
  return `[[keys]]\n${lines.join('')}`;
}

function addLimitOptions(command: Command): Command {
  return command
    .option('--expires <time>', 'when the key expires, such as 2027-01-01T00:00:00Z, or none', expiresValue)
    .option(
      '--allow-address <cidr>',
      'address or network that may use the key, or none for any; repeatable',
      addressesValue,
    )
    .option('--daily-rows <number>', 'daily row allowance of the key itself, or none', dailyRowsValue);
}

/** Notes on scopes that have no effect. */
function scopesNotes({ scopes }: Key): string[] {
  const idle = scopes.filter((scope) => scope !== 'detections:read');
  const notes = [
    ...(idle.length === 0 ? [] : [`No endpoint of this version uses ${idle.join(' or ')}.`]),
    ...(idle.length < scopes.length ? [] : ['Without detections:read, the key cannot read detections.']),
  ];
  return notes.length === 0 ? [] : [notes.join(' ')];
}

/** The address that clients use. */
function baseUrl(config: Config): string {
  const { base_url } = config.server;
  return base_url !== '' ? base_url : (localUrl(config) ?? 'http://127.0.0.1:PORT');
}

/** Prints one key, after what was done. */
function printKey(command: Command, key: Key, done = ''): void {
  const nowMs = Date.now();
  const usage = usageOfKeys(command, nowMs);
  print(usedKeyDocument(key, usage, nowMs), {
    json: commonOptions(command).json,
    text: () => [done, keyText(key, usage, nowMs)].filter((part) => part !== '').join('\n\n'),
  });
}

function keyText(key: Key, usage: UsageOfKeys, nowMs: number): string {
  const shown = usedKeyDocument(key, usage, nowMs);
  return details([
    ['id', shown.id],
    ['name', shown.name],
    ['account', shown.account],
    ['status', shown.revoked_at === null ? shown.status : `${shown.status} at ${shown.revoked_at}`],
    ['scopes', shown.scopes.join(', ')],
    ['subscriptions', subscriptionsText(shown.subscriptions)],
    ['expires', shown.expires_at ?? 'never'],
    ['addresses', shown.allow_addresses.join(', ') || 'any'],
    ['daily rows', shown.daily_rows === null ? 'only that of the account' : grouped(shown.daily_rows)],
    ['created', shown.created_at],
    ['last used', shown.last_used_at ?? 'no recorded use'],
    ['rows today', shown.rows_today === null ? null : grouped(shown.rows_today)],
  ]);
}
