/**
 * Removes an account or a subscription with its rows. Clients lose access at once; the operation ends when all rows are
 * deleted. If it is interrupted, the ingest thread deletes the rest, and the same operation waits for that.
 */
import { findAccount, getAccount } from '../auth/accounts.ts';
import { noteOperation } from '../auth/audit.ts';
import { listKeys } from '../auth/keys.ts';
import { openRemovals, type Removed, removeAccount, removeSubscription } from '../auth/removal.ts';
import { findSubscription, getSubscription, listSubscriptions } from '../auth/subscriptions.ts';
import type { Config } from '../config/load.ts';
import { counted } from '../counted.ts';
import { countRows, type RemovedRows } from '../ingest/apply/remove-rows.ts';
import { type Database, writing } from '../store/database.ts';
import { required } from './member.ts';
import { ACCOUNT_MEMBERS, SUBSCRIPTION_MEMBERS } from './members.ts';
import { act, type Context, type Question } from './operation.ts';
import type { Outcome } from './outcome.ts';

/** What can be removed. */
interface Removable<Id extends string | number> {
  readonly noun: 'account' | 'subscription';
  readonly isThere: (access: Database, id: Id) => boolean;
  /** The subscriptions that lose their rows, and everything to remove, in words. @throws Refused if it does not exist */
  readonly describe: (
    access: Database,
    id: Id,
  ) => { readonly subscriptions: readonly number[]; readonly description: string };
  readonly remove: (access: Database, id: Id) => Removed;
  /** The removed subscriptions of it whose rows are still being deleted. */
  readonly open: (access: Database, id: Id) => readonly number[];
  /** Whether the configuration has an entry for it. */
  readonly isConfigured: (preseed: Config['preseed'], id: Id) => boolean;
}

const ACCOUNT: Removable<string> = {
  noun: 'account',
  isThere: (access, id) => findAccount(access, id) !== null,
  describe(access, id) {
    const { name } = getAccount(access, id);
    const subscriptions = listSubscriptions(access).filter(({ account_id }) => account_id === id);
    const keys = listKeys(access).filter(({ account_id }) => account_id === id);
    return {
      subscriptions: subscriptions.map((one) => one.id),
      description: `account ${id} (${name}) with ${counted(keys.length, 'key')} and ${counted(subscriptions.length, 'subscription')}`,
    };
  },
  remove: removeAccount,
  open: openRemovals,
  isConfigured: ({ accounts }, id) => accounts.some((one) => one.id === id),
};

const SUBSCRIPTION: Removable<number> = {
  noun: 'subscription',
  isThere: (access, id) => findSubscription(access, id) !== null,
  describe(access, id) {
    const { name, account_id } = getSubscription(access, id);
    const named = name === null ? '' : ` (${name})`;
    return { subscriptions: [id], description: `subscription ${id}${named} of account ${account_id}` };
  },
  remove: removeSubscription,
  open: (access, id) => openRemovals(access).filter((open) => open === id),
  isConfigured: ({ subscriptions }, id) => subscriptions.some((one) => one.id === id),
};

const WAITS = 'Clients lose access at once, and the command waits until all rows are deleted';

export const REMOVALS = [
  act('account remove', {
    summary: `permanently remove an account with its keys, subscriptions and detections. ${WAITS}`,
    members: { id: required(ACCOUNT_MEMBERS.id) },
    operands: ['id'],
    examples: ['account remove acme', 'account remove acme --yes --json'],
    readsDrop: true,
    form: {
      label: 'Remove',
      title: 'Remove account',
      will: 'The account, its keys, its subscriptions and their detections are removed. Its clients are refused from now on (401). This cannot be undone.',
      isGrave: true,
    },
    job: ({ id }) => id,
    question: (context, { id }) => questionOf(context, ACCOUNT, id),
    run: (context, { id }) => remove(context, ACCOUNT, id),
  }),
  act('subscription remove', {
    summary: `permanently remove a subscription with its detections. ${WAITS}`,
    members: { id: required(SUBSCRIPTION_MEMBERS.id) },
    operands: ['id'],
    examples: ['subscription remove 7001', 'subscription remove 7001 --yes --json'],
    readsDrop: true,
    form: {
      label: 'Remove',
      title: 'Remove subscription',
      will: 'The subscription and its detections are removed. No client can read it from now on. This cannot be undone.',
      isGrave: true,
    },
    job: ({ id }) => `${id}`,
    question: (context, { id }) => questionOf(context, SUBSCRIPTION, id),
    run: (context, { id }) => remove(context, SUBSCRIPTION, id),
  }),
];

function questionOf<Id extends string | number>(
  context: Context,
  removable: Removable<Id>,
  id: Id,
): Question | null {
  const access = context.access();
  if (openOf(access, removable, id).length > 0) return null;
  const { subscriptions, description } = removable.describe(access, id);
  const rows = rowsOf(context, subscriptions);
  return { text: `This permanently removes ${description}, including ${rowsText(rows)}.`, word: `${id}` };
}

async function remove<Id extends string | number>(
  context: Context,
  removable: Removable<Id>,
  id: Id,
): Promise<Outcome> {
  const open = openOf(context.access(), removable, id);
  if (open.length > 0) return finish(context, removable, id, open);
  const { noun } = removable;
  const { subscriptions } = removable.describe(context.access(), id);
  const rows = rowsOf(context, subscriptions);
  const removed = context.change((access) =>
    writing(access, () => {
      const result = removable.remove(access, id);
      noteOperation(access, requestFor(result.subscriptions));
      return result;
    }),
  );
  const left_in_log = await deleteRows(context, removed.subscriptions);
  const configured = removable.isConfigured(context.config.preseed, id);
  const { keys_without_subscriptions: idle } = removed;
  return {
    value: { [noun]: id, ...removed, ...rows, left_in_log, configured },
    done: `Removed ${noun} ${id}: ${rowsText(rows)}.`,
    next: [
      idle.length > 0 &&
        `These keys have no subscription left to read: ${idle.join(', ')}. Give them others (wirewatch key set ID --subscriptions LIST) or revoke them (wirewatch key revoke ID).`,
      `${logText(left_in_log)} Files in archive/ and backups still contain them; the next backup deletes them from its folder (see: wirewatch manual backup). If later exports have rows of a removed subscription, the alert "rows skipped" opens. The freed space in detections.db is reused; the file does not shrink.`,
      configured &&
        `${context.config.configFile} still has an entry for ${noun} ${id}: the next start will add it again, without detections. Remove the entry.`,
    ],
  };
}

/** Waits for a removal that was interrupted. */
async function finish<Id extends string | number>(
  context: Context,
  { noun }: Removable<Id>,
  id: Id,
  subscriptions: readonly number[],
): Promise<Outcome> {
  context.change((access) => noteOperation(access, requestFor(subscriptions)));
  const left_in_log = await deleteRows(context, subscriptions);
  return {
    value: { [noun]: id, subscriptions, left_in_log },
    done: `${noun === 'account' ? 'Account' : 'Subscription'} ${id} had already been removed. Now its rows are deleted, too. ${logText(left_in_log)}`,
  };
}

/** Of something that is removed already; empty while it exists. */
function openOf<Id extends string | number>(
  access: Database,
  { isThere, open }: Removable<Id>,
  id: Id,
): readonly number[] {
  return isThere(access, id) ? [] : open(access, id);
}

function requestFor(subscriptions: readonly number[]) {
  return { kind: 'remove', subscriptions } as const;
}

/** @returns why the log still contains the rows; null if it does not */
async function deleteRows({ ingest }: Context, subscriptions: readonly number[]): Promise<string | null> {
  const answer = await ingest(requestFor(subscriptions));
  return 'left_in_log' in answer ? answer.left_in_log : null;
}

function rowsOf({ detections }: Context, subscriptions: readonly number[]): RemovedRows {
  const db = detections();
  return db === null ? { detections: 0, versions: 0 } : countRows(db, subscriptions);
}

function logText(left: string | null): string {
  return left === null
    ? 'The log no longer contains them.'
    : `The log still contains them: ${left}. Wirewatch tries again every hour and at each start.`;
}

function rowsText({ detections, versions }: RemovedRows): string {
  return `${counted(detections, 'detection')} in ${counted(versions, 'version')}`;
}
