/**
 * `wirewatch account`: the customers of this installation. Works while Wirewatch is running, and takes effect with
 * its next request.
 */
import type { Command } from 'commander';
import {
  type Account,
  accountDocument,
  addAccount,
  getAccount,
  listAccounts,
  resumeAccount,
  setAccount,
  suspendAccount,
} from '../auth/accounts.ts';
import { listKeys } from '../auth/keys.ts';
import { removeAccount } from '../auth/removal.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { counted, grouped } from '../counted.ts';
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
import { addDropOption, addExamples, commonOptions, switchValue } from './options.ts';
import { print, table } from './output.ts';

export function register(account: Command): void {
  registerAdd(account);
  registerList(account);
  registerShow(account);
  registerSet(account);
  registerSuspend(account);
  registerResume(account);
  registerRemove(account);
}

function registerAdd(account: Command): void {
  const command = account
    .command('add')
    .description('add an account')
    .argument('<id>', 'account id: letters, digits, dots, dashes and underscores', accountIdValue)
    .requiredOption('--name <name>', 'name of the customer', nameValue)
    .option(
      '--daily-rows <number>',
      'daily row allowance, or none to use the setting [limits] daily_rows',
      dailyRowsValue,
    )
    .action((id: string, options: { name: string; dailyRows?: number | None }, self: Command) => {
      const { name } = options;
      const daily_rows = orNull(options.dailyRows) ?? null;
      const added = withAccess(self, (db) => addAccount(db, { id, name, daily_rows }, Date.now()), {
        create: true,
      });
      const next = `Next: wirewatch subscription add 7001 --account ${id}`;
      printAccount(self, added, `Added account ${id}.`, next);
    });
  addExamples(command, [
    'account add acme --name "Acme News"',
    'account add acme --name Acme --daily-rows 500000',
  ]);
}

function registerList(account: Command): void {
  const command = account
    .command('list')
    .description('list all accounts')
    .action((_options: unknown, self: Command) => {
      const accounts = withAccess(self, listAccounts).map(accountDocument);
      print(accounts, {
        json: commonOptions(self).json,
        text: () =>
          accounts.length === 0
            ? 'There are no accounts yet. Add one with: wirewatch account add ID --name NAME'
            : table(accounts, [
                { title: 'ID', value: (one) => one.id },
                { title: 'NAME', value: (one) => one.name },
                { title: 'STATUS', value: (one) => one.status },
                {
                  title: 'DAILY ROWS',
                  value: (one) => (one.daily_rows === null ? null : grouped(one.daily_rows)),
                  align: 'right',
                },
                { title: 'PRINT METADATA', value: (one) => (one.print_metadata ? 'on' : 'off') },
                { title: 'CREATED', value: (one) => one.created_at },
              ]),
      });
    });
  addExamples(command, ['account list', 'account list --json']);
}

function registerShow(account: Command): void {
  const command = account
    .command('show')
    .description('show one account')
    .argument('<id>', 'account id', accountIdValue)
    .action((id: string, _options: unknown, self: Command) => {
      printAccount(
        self,
        withAccess(self, (db) => getAccount(db, id)),
      );
    });
  addExamples(command, ['account show acme']);
}

type SetOptions = { name?: string; dailyRows?: number | None; printMetadata?: boolean };

function registerSet(account: Command): void {
  const command = account
    .command('set')
    .description('change an account. Values that you do not give stay unchanged')
    .argument('<id>', 'account id', accountIdValue)
    .option('--name <name>', 'name of the customer', nameValue)
    .option(
      '--daily-rows <number>',
      'daily row allowance, or none to use the setting [limits] daily_rows',
      dailyRowsValue,
    )
    .option(
      '--print-metadata <on|off>',
      'whether the account is licensed for print-publisher metadata',
      switchValue,
    )
    .action((id: string, options: SetOptions, self: Command) => {
      requireChanges(self);
      const { name, dailyRows, printMetadata } = options;
      const changes = { name, daily_rows: orNull(dailyRows), print_metadata: printMetadata };
      const licence =
        printMetadata === undefined
          ? ''
          : 'This applies to rows read from now on. To apply it to existing detections: wirewatch ingest replay';
      printAccount(
        self,
        withAccess(self, (db) => setAccount(db, id, changes)),
        `Changed account ${id}.`,
        licence,
      );
    });
  addExamples(command, ['account set acme --daily-rows 2000000', 'account set acme --print-metadata on']);
}

function registerSuspend(account: Command): void {
  const command = account
    .command('suspend')
    .description('refuse all keys of an account until it is resumed')
    .argument('<id>', 'account id', accountIdValue)
    .action((id: string, _options: unknown, self: Command) => {
      const suspended = withAccess(self, (db) => suspendAccount(db, id, Date.now()), { urgent: true });
      const next = `All its keys are refused with status 403. To accept them again: wirewatch account resume ${id}`;
      printAccount(self, suspended, `Account ${id} is suspended.`, next);
    });
  addExamples(command, ['account suspend acme']);
}

function registerResume(account: Command): void {
  const command = account
    .command('resume')
    .description('let the keys of a suspended account work again')
    .argument('<id>', 'account id', accountIdValue)
    .action((id: string, _options: unknown, self: Command) => {
      printAccount(
        self,
        withAccess(self, (db) => resumeAccount(db, id)),
        `Account ${id} is active.`,
      );
    });
  addExamples(command, ['account resume acme']);
}

function registerRemove(account: Command): void {
  const command = account
    .command('remove')
    .description(
      'permanently remove an account with its keys, subscriptions and detections. Clients lose access at once, and the command waits until all rows are deleted',
    )
    .argument('<id>', 'account id', accountIdValue)
    .option('--yes', 'do not ask for confirmation')
    .action(async (id: string, options: { yes?: boolean }, self: Command) => {
      const { removeWithRows } = await import('./removal.ts');
      await removeWithRows(self, options.yes === true, {
        label: `account ${id}`,
        word: id,
        document: { account: id },
        look: (db) => {
          const { name } = getAccount(db, id);
          const subscriptions = listSubscriptions(db).filter(({ account_id }) => account_id === id);
          const keys = listKeys(db).filter(({ account_id }) => account_id === id);
          return {
            subscriptions: subscriptions.map((one) => one.id),
            described: `account ${id} (${name}) with ${counted(keys.length, 'key')} and ${counted(subscriptions.length, 'subscription')}`,
          };
        },
        remove: (db) => removeAccount(db, id),
        isConfigured: ({ preseed }) => preseed.accounts.some((one) => one.id === id),
      });
    });
  addDropOption(command);
  addExamples(command, ['account remove acme', 'account remove acme --yes --json']);
}

/** Prints one account, between what was done and what comes next. */
function printAccount(command: Command, account: Account, done = '', next = ''): void {
  const shown = accountDocument(account);
  const lines = () =>
    details([
      ['id', shown.id],
      ['name', shown.name],
      ['status', shown.suspended_at === null ? shown.status : `${shown.status} since ${shown.suspended_at}`],
      [
        'daily rows',
        shown.daily_rows === null ? 'default: the setting [limits] daily_rows' : grouped(shown.daily_rows),
      ],
      ['print metadata', shown.print_metadata ? 'on' : 'off'],
      ['created', shown.created_at],
    ]);
  print(shown, {
    json: commonOptions(command).json,
    text: () => [done, lines(), next].filter((part) => part !== '').join('\n\n'),
  });
}
