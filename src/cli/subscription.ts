/** `wirewatch subscription`: the subscriptions of accounts. Changes apply to the next request. */
import type { Command } from 'commander';
import { removeSubscription } from '../auth/removal.ts';
import {
  addSubscription,
  findSubscription,
  getSubscription,
  listSubscriptions,
  setSubscription,
  subscriptionDocument,
} from '../auth/subscriptions.ts';
import {
  read,
  readAccountId,
  readContentTypes,
  readName,
  readSubscriptionId,
  readZone,
} from '../config/option-values.ts';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { endedStreams } from '../history/detection-rows.ts';
import { requireChanges, withAccess } from './access.ts';
import { argument, commandGroup, option, requiredOption, subcommand, YES_OPTION } from './command.ts';
import { configOf, withDetections } from './installation.ts';
import { DROP_OPTION, listOf } from './options.ts';
import type { Column } from './output.ts';
import { resourceCommands } from './resource.ts';

const COLUMNS: readonly Column<ReturnType<typeof subscriptionDocument>>[] = [
  { title: 'ID', value: ({ id }) => id, align: 'right' },
  { title: 'ACCOUNT', value: ({ account }) => account },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'TIME ZONE', value: ({ time_zone }) => time_zone },
  { title: 'CONTENT TYPES', value: ({ content_types }) => content_types.join(',') },
  { title: 'CREATED', value: ({ created_at }) => created_at },
];

const ID = argument('<id>', 'subscription id: a number, as in the exports', readSubscriptionId);
const ZONE_HELP = 'IANA time zone of periods that clients give as dates';
const TYPES_HELP = 'content types: text, image or text,image';

const { shown, changed, list, show } = resourceCommands({
  noun: 'subscription',
  id: ID,
  exampleId: '7001',
  columns: COLUMNS,
  documents: () => subscriptionDocument,
  all: listSubscriptions,
  get: getSubscription,
  none: 'There are no subscriptions yet. Add one with: wirewatch subscription add ID --account ACCOUNT',
});

const add = subcommand('add', 'add a subscription to an account', {
  arguments: [ID],
  options: [
    requiredOption('--account <id>', 'account that the subscription belongs to', readAccountId),
    option('--name <name>', 'display name', readName),
    option('--time-zone <zone>', `${ZONE_HELP} (default: UTC)`, readZone),
    option('--content-types <types>', `${TYPES_HELP} (default: text,image)`, listOf(readContentTypes)),
  ],
  examples: [
    'subscription add 7001 --account acme',
    'subscription add 7002 --account acme --name Photos --time-zone Europe/Berlin --content-types image',
  ],
  run(values, self) {
    const { id, account: account_id, name = null, timeZone: time_zone = 'UTC' } = values;
    const content_types = values.contentTypes ?? CONTENT_TYPES;
    const added = { id, account_id, name, time_zone, content_types };
    const subscription = withAccess(self, (db) => addSubscription(db, added, Date.now()), { create: true });
    if (hadRows(self, id)) process.stderr.write(hadRowsText(id, account_id));
    const next = `Next: wirewatch key create --account ${account_id} --name NAME --scopes detections:read --subscriptions ${id}`;
    return shown(self, subscription, `Added subscription ${id}.`, next);
  },
});

/** Whether a removed subscription with this number had rows; false if the database cannot be read. */
function hadRows(command: Command, id: number): boolean {
  try {
    return withDetections(configOf(command), false, (db) => endedStreams(db, id).length > 0);
  } catch {
    // The subscription has been added all the same; the next start reports the database.
    return false;
  }
}

/** Rows in the archive have the number alone: they go to whoever has it when they are replayed. */
function hadRowsText(id: number, account: string): string {
  return `wirewatch: an earlier subscription ${id} was removed. Files in archive/ may still contain its rows, and ingest replay gives them to account ${account}. If they are another customer's, replay only files from after the removal: wirewatch ingest replay --from TIME. For the time, run: wirewatch log --access
`;
}

const set = subcommand('set', 'change a subscription. Values that you do not give stay unchanged', {
  arguments: [ID],
  options: [
    option(
      '--account <id>',
      'account of the subscription, as a check; a subscription cannot move to another account',
      readAccountId,
    ),
    option('--name <name>', 'display name, or "" for none', (text: string) =>
      text.trim() === '' ? read('') : readName(text),
    ),
    option('--time-zone <zone>', ZONE_HELP, readZone),
    option('--content-types <types>', TYPES_HELP, listOf(readContentTypes)),
  ],
  examples: ['subscription set 7001 --time-zone Europe/London'],
  run({ id, account: account_id, name, timeZone: time_zone, contentTypes: content_types }, self) {
    requireChanges(self);
    const changes = { account_id, name: name === '' ? null : name, time_zone, content_types };
    return changed(self, (db) => setSubscription(db, id, changes), `Changed subscription ${id}.`);
  },
});

const remove = subcommand(
  'remove',
  'permanently remove a subscription with its detections. Clients lose access at once, and the command waits until all rows are deleted',
  {
    arguments: [ID],
    options: [YES_OPTION, DROP_OPTION],
    examples: ['subscription remove 7001', 'subscription remove 7001 --yes --json'],
    async run({ id, yes = false }, self) {
      const { finishOpenRemoval, removeWithRows } = await import('./removal.ts');
      if (withAccess(self, (db) => findSubscription(db, id)) === null) {
        const finished = await finishOpenRemoval(self, id);
        if (finished !== null) return finished;
      }
      return removeWithRows(self, yes, {
        label: `subscription ${id}`,
        word: String(id),
        document: { subscription: id },
        describe: (db) => {
          const { name, account_id } = getSubscription(db, id);
          const named = name === null ? '' : ` (${name})`;
          return {
            subscriptions: [id],
            description: `subscription ${id}${named} of account ${account_id}`,
          };
        },
        remove: (db) => removeSubscription(db, id),
        isConfigured: ({ preseed }) => preseed.subscriptions.some((one) => one.id === id),
      });
    },
  },
);

export const register = commandGroup(add, list, show, set, remove);
