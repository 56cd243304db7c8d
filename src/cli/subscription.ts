/**
 * `wirewatch subscription`: the subscriptions of accounts. Works while Wirewatch is running, and takes effect with its
 * next request.
 */
import type { Command } from 'commander';
import { removeSubscription } from '../auth/removal.ts';
import {
  addSubscription,
  findSubscription,
  getSubscription,
  listSubscriptions,
  type Subscription,
  setSubscription,
  subscriptionDocument,
} from '../auth/subscriptions.ts';
import { CONTENT_TYPES, type ContentType } from '../detection/content-type.ts';
import {
  accountIdValue,
  contentTypesValue,
  details,
  nameValue,
  requireChanges,
  subscriptionIdValue,
  withAccess,
  zoneValue,
} from './access.ts';
import { addDropOption, addExamples, commonOptions } from './options.ts';
import { print, table } from './output.ts';

type SubscriptionOptions = {
  account?: string;
  name?: string;
  timeZone?: string;
  contentTypes?: ContentType[];
};

const ID_HELP = 'subscription id: a number, as in the exports';
const ZONE_HELP = 'IANA time zone of periods that clients give as dates';
const TYPES_HELP = 'content types: text, image or text,image';

export function register(subscription: Command): void {
  registerAdd(subscription);
  registerList(subscription);
  registerShow(subscription);
  registerSet(subscription);
  registerRemove(subscription);
}

function registerAdd(subscription: Command): void {
  const command = subscription
    .command('add')
    .description('add a subscription to an account')
    .argument('<id>', ID_HELP, subscriptionIdValue)
    .requiredOption('--account <id>', 'account that the subscription belongs to', accountIdValue)
    .option('--name <name>', 'display name', nameValue)
    .option('--time-zone <zone>', `${ZONE_HELP} (default: UTC)`, zoneValue)
    .option('--content-types <types>', `${TYPES_HELP} (default: text,image)`, contentTypesValue)
    .action((id: number, options: SubscriptionOptions & { account: string }, self: Command) => {
      const added = {
        id,
        account_id: options.account,
        name: options.name ?? null,
        time_zone: options.timeZone ?? 'UTC',
        content_types: options.contentTypes ?? CONTENT_TYPES,
      };
      const subscription = withAccess(self, (db) => addSubscription(db, added, Date.now()), { create: true });
      const next = `Next: wirewatch key create --account ${options.account} --name NAME --scopes detections:read --subscriptions ${id}`;
      printSubscription(self, subscription, `Added subscription ${id}.`, next);
    });
  addExamples(command, [
    'subscription add 7001 --account acme',
    'subscription add 7002 --account acme --name Photos --time-zone Europe/Berlin --content-types image',
  ]);
}

function registerList(subscription: Command): void {
  const command = subscription
    .command('list')
    .description('list all subscriptions')
    .action((_options: unknown, self: Command) => {
      const subscriptions = withAccess(self, listSubscriptions).map(subscriptionDocument);
      print(subscriptions, {
        json: commonOptions(self).json,
        text: () =>
          subscriptions.length === 0
            ? 'There are no subscriptions yet. Add one with: wirewatch subscription add ID --account ACCOUNT'
            : table(subscriptions, [
                { title: 'ID', value: (one) => one.id, align: 'right' },
                { title: 'ACCOUNT', value: (one) => one.account },
                { title: 'NAME', value: (one) => one.name },
                { title: 'TIME ZONE', value: (one) => one.time_zone },
                { title: 'CONTENT TYPES', value: (one) => one.content_types.join(',') },
                { title: 'CREATED', value: (one) => one.created_at },
              ]),
      });
    });
  addExamples(command, ['subscription list', 'subscription list --json']);
}

function registerShow(subscription: Command): void {
  const command = subscription
    .command('show')
    .description('show one subscription')
    .argument('<id>', ID_HELP, subscriptionIdValue)
    .action((id: number, _options: unknown, self: Command) => {
      printSubscription(
        self,
        withAccess(self, (db) => getSubscription(db, id)),
      );
    });
  addExamples(command, ['subscription show 7001']);
}

function registerSet(subscription: Command): void {
  const command = subscription
    .command('set')
    .description('change a subscription. Values that you do not give stay unchanged')
    .argument('<id>', ID_HELP, subscriptionIdValue)
    .option(
      '--account <id>',
      'account of the subscription, as a check; a subscription cannot move to another account',
      accountIdValue,
    )
    .option('--name <name>', 'display name, or "" for none', nameOrNoneValue)
    .option('--time-zone <zone>', ZONE_HELP, zoneValue)
    .option('--content-types <types>', TYPES_HELP, contentTypesValue)
    .action((id: number, options: SubscriptionOptions, self: Command) => {
      requireChanges(self);
      const changes = {
        account_id: options.account,
        name: options.name === '' ? null : options.name,
        time_zone: options.timeZone,
        content_types: options.contentTypes,
      };
      const changed = withAccess(self, (db) => setSubscription(db, id, changes));
      printSubscription(self, changed, `Changed subscription ${id}.`);
    });
  addExamples(command, ['subscription set 7001 --time-zone Europe/London']);
}

function registerRemove(subscription: Command): void {
  const command = subscription
    .command('remove')
    .description(
      'permanently remove a subscription with its detections. Clients lose access at once, and the command waits until all rows are deleted',
    )
    .argument('<id>', ID_HELP, subscriptionIdValue)
    .option('--yes', 'do not ask for confirmation')
    .action(async (id: number, options: { yes?: boolean }, self: Command) => {
      const { awaitOpenRemoval, removeWithRows } = await import('./removal.ts');
      const isThere = withAccess(self, (db) => findSubscription(db, id)) !== null;
      if (!isThere && (await awaitOpenRemoval(self, id))) return;
      await removeWithRows(self, options.yes === true, {
        label: `subscription ${id}`,
        word: String(id),
        document: { subscription: id },
        look: (db) => {
          const { name, account_id } = getSubscription(db, id);
          const named = name === null ? '' : ` (${name})`;
          return { subscriptions: [id], described: `subscription ${id}${named} of account ${account_id}` };
        },
        remove: (db) => removeSubscription(db, id),
        isConfigured: ({ preseed }) => preseed.subscriptions.some((one) => one.id === id),
      });
    });
  addDropOption(command);
  addExamples(command, ['subscription remove 7001', 'subscription remove 7001 --yes --json']);
}

/** Option value: a name, or an empty one to clear it. */
function nameOrNoneValue(value: string): string {
  return value.trim() === '' ? '' : nameValue(value);
}

/** Prints one subscription, between what was done and what comes next. */
function printSubscription(command: Command, subscription: Subscription, done = '', next = ''): void {
  const shown = subscriptionDocument(subscription);
  const lines = () =>
    details([
      ['id', shown.id],
      ['account', shown.account],
      ['name', shown.name],
      ['time zone', shown.time_zone],
      ['content types', shown.content_types.join(', ')],
      ['created', shown.created_at],
    ]);
  print(shown, {
    json: commonOptions(command).json,
    text: () => [done, lines(), next].filter((part) => part !== '').join('\n\n'),
  });
}
