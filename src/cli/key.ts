/**
 * `wirewatch key`: the keys with which clients read (contract: Authentication). Works beside a running
 * appliance, and holds from its next request on.
 */
import type { Command } from 'commander';
import { createKey, hashKey } from '../auth/key.ts';
import { addKey, getKey, type Key, keyDocument, listKeys, revokeKey, setKey } from '../auth/keys.ts';
import type { Config } from '../config/load.ts';
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
import { listeningUrl } from './local-address.ts';
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
  'what it may do, with commas between them: detections:read; reports:read and exports:create are for later versions, no endpoint asks for them yet';
const SUBSCRIPTIONS_HELP =
  'what it reads: 7001,7002:text; without a type, those the subscription has when used';

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
    .description('make a key; it is shown this one time')
    .requiredOption('--account <id>', 'account to which it belongs', accountIdValue)
    .requiredOption('--name <name>', 'name of the key', nameValue)
    .requiredOption('--scopes <scopes>', SCOPES_HELP, scopesValue)
    .requiredOption('--subscriptions <list>', SUBSCRIPTIONS_HELP, subscriptionsValue);
  addTermOptions(command).action((options: KeyOptions, self: Command) => {
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
            `The key, shown this one time; it cannot be shown again:\n\n  ${key}`,
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
            ? 'There is no key yet. Make one with: wirewatch key create (see wirewatch key create --help)'
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
                  value: (one) => one.rows_today?.toLocaleString('en-US'),
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
    .description('change a key; what is not named stays as it is, and so does the secret')
    .argument('<id>', ID_HELP, keyIdValue)
    .option('--account <id>', 'may repeat its account; it cannot move to another', accountIdValue)
    .option('--name <name>', 'name of the key', nameValue)
    .option('--scopes <scopes>', SCOPES_HELP, scopesValue)
    .option('--subscriptions <list>', SUBSCRIPTIONS_HELP, subscriptionsValue);
  addTermOptions(command).action((id: string, options: Partial<KeyOptions>, self: Command) => {
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
    .description('end a key for good')
    .argument('<id>', ID_HELP, keyIdValue)
    .option('--yes', 'do not ask')
    .action(async (id: string, { yes }: { yes?: boolean }, self: Command) => {
      const nowMs = Date.now();
      const found = withAccess(self, (db) => getKey(db, id));
      if (yes !== true && found.revoked_at === null) {
        const { name, account } = keyDocument(found, nowMs);
        await confirm(`This ends key ${id} (${name}, of account ${account}) for good.`, id);
      }
      const { key, wasRevoked } = withAccess(self, (db) => revokeKey(db, id, nowMs), { urgent: true });
      printKey(self, key, wasRevoked ? `Key ${id} was revoked already.` : `Revoked key ${id}.`);
    });
  addExamples(command, ['key revoke abcdefghij23', 'key revoke abcdefghij23 --yes']);
}

function registerGenerate(key: Command): void {
  const command = key
    .command('generate')
    .description('make a key and its hash, offline: nothing is stored')
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
              'The key is stored nowhere: keep it. For the configuration, with your own account and subscriptions:',
              toml.trimEnd(),
            ].join('\n\n'),
        },
      );
    });
  addExamples(command, ['key generate', 'key generate --json']);
}

/** The key as the configuration takes it. Only its hash goes there, so that a copy of the file opens nothing. */
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

function addTermOptions(command: Command): Command {
  return command
    .option('--expires <instant>', 'when it ends, such as 2027-01-01T00:00:00Z, or none', expiresValue)
    .option(
      '--allow-address <cidr>',
      'address or network it may come from, repeatable, or none for any',
      addressesValue,
    )
    .option('--daily-rows <number>', 'rows a day of its own, or none', dailyRowsValue);
}

/** What is to be known of scopes that do nothing. */
function scopesNotes({ scopes }: Key): string[] {
  const idle = scopes.filter((scope) => scope !== 'detections:read');
  const notes = [
    ...(idle.length === 0 ? [] : [`No endpoint of this version asks for ${idle.join(' or ')}.`]),
    ...(idle.length < scopes.length ? [] : ['Without detections:read the key can read no detections.']),
  ];
  return notes.length === 0 ? [] : [notes.join(' ')];
}

/** Where a client finds the appliance. */
function baseUrl(config: Config): string {
  const { base_url } = config.server;
  return base_url !== '' ? base_url : (listeningUrl(config) ?? 'http://127.0.0.1:PORT');
}

/** Prints one key, below what was done. */
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
    ['daily rows', shown.daily_rows ?? "as the account's"],
    ['created', shown.created_at],
    ['last used', shown.last_used_at ?? 'no use is known'],
    ['rows today', shown.rows_today?.toLocaleString('en-US') ?? null],
  ]);
}
