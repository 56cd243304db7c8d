/** `wirewatch account`: the customers of this installation. Changes apply to the next request. */
import {
  accountDocument,
  addAccount,
  findAccount,
  getAccount,
  listAccounts,
  resumeAccount,
  setAccount,
  suspendAccount,
} from '../auth/accounts.ts';
import { listKeys } from '../auth/keys.ts';
import { removeAccount } from '../auth/removal.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { readAccountId, readDailyRows, readName, readSwitch } from '../config/option-values.ts';
import { counted, grouped } from '../counted.ts';
import type { Database } from '../store/database.ts';
import { requireChanges, withAccess } from './access.ts';
import { argument, commandGroup, option, requiredOption, subcommand, YES_OPTION } from './command.ts';
import { DROP_OPTION } from './options.ts';
import type { Column } from './output.ts';
import { resourceCommands } from './resource.ts';

const COLUMNS: readonly Column<ReturnType<typeof accountDocument>>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  {
    title: 'STATUS',
    value: ({ status, suspended_at }) => (suspended_at === null ? status : `${status} since ${suspended_at}`),
  },
  {
    title: 'DAILY ROWS',
    value: ({ daily_rows }) => (daily_rows === null ? 'default ([limits] daily_rows)' : grouped(daily_rows)),
    align: 'right',
  },
  { title: 'PRINT METADATA', value: ({ print_metadata }) => (print_metadata ? 'on' : 'off') },
  { title: 'CREATED', value: ({ created_at }) => created_at },
];

const ID = argument('<id>', 'account id', readAccountId);
const NAME = ['--name <name>', 'name of the customer', readName] as const;
const DAILY_ROWS = option(
  '--daily-rows <number>',
  'daily row allowance, or none to use the setting [limits] daily_rows',
  readDailyRows,
);

const { shown, changed, list, show } = resourceCommands({
  noun: 'account',
  id: ID,
  exampleId: 'acme',
  columns: COLUMNS,
  documents: () => accountDocument,
  all: listAccounts,
  get: getAccount,
  none: 'There are no accounts yet. Add one with: wirewatch account add ID --name NAME',
});

const add = subcommand('add', 'add an account', {
  arguments: [argument('<id>', 'account id: letters, digits, dots, dashes and underscores', readAccountId)],
  options: [requiredOption(...NAME), DAILY_ROWS],
  examples: ['account add acme --name "Acme News"', 'account add acme --name Acme --daily-rows 500000'],
  run({ id, name, dailyRows: daily_rows = null }, self) {
    const account = withAccess(self, (db) => addAccount(db, { id, name, daily_rows }, Date.now()), {
      create: true,
    });
    return shown(
      self,
      account,
      `Added account ${id}.`,
      `Next, with the number that its exports use: wirewatch subscription add NUMBER --account ${id}`,
    );
  },
});

const set = subcommand('set', 'change an account. Values that you do not give stay unchanged', {
  arguments: [ID],
  options: [
    option(...NAME),
    DAILY_ROWS,
    option(
      '--print-metadata <on|off>',
      'whether the account is licensed for print-publisher metadata',
      readSwitch,
    ),
  ],
  examples: ['account set acme --daily-rows 2000000', 'account set acme --print-metadata on'],
  run({ id, name, dailyRows: daily_rows, printMetadata: print_metadata }, self) {
    requireChanges(self);
    const change = (db: Database) => setAccount(db, id, { name, daily_rows, print_metadata });
    const replay =
      'This applies to rows read from now on. To apply it to existing detections: wirewatch ingest replay';
    return changed(self, change, `Changed account ${id}.`, print_metadata !== undefined && replay);
  },
});

const suspend = subcommand('suspend', 'refuse all keys of an account until it is resumed', {
  arguments: [ID],
  examples: ['account suspend acme'],
  run({ id }, self) {
    const account = withAccess(self, (db) => suspendAccount(db, id, Date.now()), { urgent: true });
    const next = `All its keys are refused with status 403. To accept them again: wirewatch account resume ${id}`;
    return shown(self, account, `Account ${id} is suspended.`, next);
  },
});

const resume = subcommand('resume', 'let the keys of a suspended account work again', {
  arguments: [ID],
  examples: ['account resume acme'],
  run: ({ id }, self) => changed(self, (db) => resumeAccount(db, id), `Account ${id} is active.`),
});

const remove = subcommand(
  'remove',
  'permanently remove an account with its keys, subscriptions and detections. Clients lose access at once, and the command waits until all rows are deleted',
  {
    arguments: [ID],
    options: [YES_OPTION, DROP_OPTION],
    examples: ['account remove acme', 'account remove acme --yes --json'],
    async run({ id, yes = false }, self) {
      const { finishOpenRemoval, removeWithRows } = await import('./removal.ts');
      if (withAccess(self, (db) => findAccount(db, id)) === null) {
        const finished = await finishOpenRemoval(self, id);
        if (finished !== null) return finished;
      }
      return removeWithRows(self, yes, {
        label: `account ${id}`,
        word: id,
        document: { account: id },
        describe: (db) => {
          const { name } = getAccount(db, id);
          const subscriptions = listSubscriptions(db).filter(({ account_id }) => account_id === id);
          const keys = listKeys(db).filter(({ account_id }) => account_id === id);
          return {
            subscriptions: subscriptions.map((one) => one.id),
            description: `account ${id} (${name}) with ${counted(keys.length, 'key')} and ${counted(subscriptions.length, 'subscription')}`,
          };
        },
        remove: (db) => removeAccount(db, id),
        isConfigured: ({ preseed }) => preseed.accounts.some((one) => one.id === id),
      });
    },
  },
);

export const register = commandGroup(add, list, show, set, suspend, resume, remove);
