/** Accounts: the customers of this installation. Changes apply to the next request. */
import { Type } from '@sinclair/typebox';
import {
  accountDocument,
  addAccount,
  getAccount,
  listAccounts,
  resumeAccount,
  setAccount,
  suspendAccount,
} from '../auth/accounts.ts';
import { listText } from '../text-layout.ts';
import { required } from './member.ts';
import { ACCOUNT, ACCOUNT_MEMBERS, NEW_ACCOUNT } from './members.ts';
import { act, reading, requireChange } from './operation.ts';
import { endNow, readEnding } from './urgent.ts';

const { name, daily_rows, print_metadata } = ACCOUNT_MEMBERS;
const ID = required(ACCOUNT_MEMBERS.id);

export const ACCOUNTS = [
  act('account add', {
    summary: 'add an account',
    members: NEW_ACCOUNT,
    result: ACCOUNT,
    examples: ['account add acme --name "Acme News"', 'account add acme --name Acme --daily-rows 500000'],
    creates: true,
    form: { label: 'Add an account', will: 'A customer is added. Then it needs a subscription, and a key.' },
    run(context, { id, ...terms }) {
      const account = context.change((db) => addAccount(db, { id, ...terms }, context.nowMs));
      return {
        value: accountDocument(account),
        done: `Added account ${id}.`,
        next: [
          `Next, with the number that its exports use: wirewatch subscription add NUMBER --account ${id}`,
        ],
      };
    },
  }),
  reading('account list', {
    summary: 'list all accounts',
    result: Type.Array(ACCOUNT),
    examples: ['account list', 'account list --json'],
    run: ({ access }) => ({ value: listAccounts(access()).map(accountDocument) }),
    text: listText('There are no accounts yet. Add one with: wirewatch account add ID --name NAME'),
  }),
  reading('account show', {
    summary: 'show one account',
    members: { id: ID },
    result: ACCOUNT,
    examples: ['account show acme'],
    run: ({ access }, { id }) => ({ value: accountDocument(getAccount(access(), id)) }),
  }),
  act('account set', {
    summary: 'change an account. Values that you do not give stay unchanged',
    members: { id: ID, name, daily_rows, print_metadata },
    result: ACCOUNT,
    examples: ['account set acme --daily-rows 2000000', 'account set acme --print-metadata on'],
    form: { label: 'Change', title: 'Change account', will: 'The changes apply from the next request on.' },
    run(context, { id, ...changes }) {
      requireChange('account set', changes);
      const account = context.change((db) => setAccount(db, id, changes));
      const replay =
        'This applies to rows read from now on. To apply it to existing detections: wirewatch ingest replay';
      const next = [changes.print_metadata !== undefined && replay];
      return { value: accountDocument(account), done: `Changed account ${id}.`, next };
    },
  }),
  act('account suspend', {
    summary: 'refuse all keys of an account until it is resumed',
    members: { id: ID },
    result: ACCOUNT,
    examples: ['account suspend acme'],
    form: {
      label: 'Suspend account',
      will: 'Every request with one of its keys is refused (403) until the account is resumed. Its detections are still recorded.',
      isGrave: true,
    },
    run(context, { id }) {
      let account = readEnding(() => getAccount(context.access(), id));
      const said = { what: `account ${id} is suspended`, again: `wirewatch account suspend ${id}` };
      const ending = endNow(context, { kind: 'account', id }, said, (db) => {
        account = suspendAccount(db, id, context.nowMs);
      });
      return {
        value:
          account === null
            ? { id, status: 'suspended' }
            : accountDocument({ ...account, suspended_at: account.suspended_at ?? context.nowMs }),
        done: `Account ${id} is suspended.`,
        next: [
          `All its keys are refused with status 403. To accept them again: wirewatch account resume ${id}`,
        ],
        ...ending,
      };
    },
  }),
  act('account resume', {
    summary: 'let the keys of a suspended account work again',
    members: { id: ID },
    result: ACCOUNT,
    examples: ['account resume acme'],
    form: {
      label: 'Resume account',
      will: 'Its keys work again at once. Nothing was lost: clients continue from their cursors.',
    },
    run(context, { id }) {
      const account = context.change((db) => resumeAccount(db, id));
      return { value: accountDocument(account), done: `Account ${id} is active.` };
    },
  }),
];
