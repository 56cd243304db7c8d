/**
 * Removes an account or a subscription with its rows. Clients lose access at once; the operation ends when all rows are
 * deleted. If it is interrupted, the ingest thread deletes the rest, and the same operation waits for that.
 */
import { findAccount } from '../auth/accounts.ts';
import { noteOperation } from '../auth/audit.ts';
import { openRemovals, type Removed, removeAccount, removeSubscription } from '../auth/removal.ts';
import { findSubscription } from '../auth/subscriptions.ts';
import { counted } from '../counted.ts';
import { type Database, writing } from '../store/database.ts';
import { countRows } from '../store/subscription-rows.ts';
import { required } from './member.ts';
import { ACCOUNT_MEMBERS, SUBSCRIPTION_MEMBERS } from './members.ts';
import { act, type Context } from './operation.ts';
import type { Outcome } from './problem.ts';

const NO_ROWS = { detections: 0, versions: 0 };
const WAITS = 'Clients lose access at once, and the command waits until all rows are deleted';

export const REMOVALS = [
  act('account remove', {
    summary: `permanently remove an account with its keys, subscriptions and detections. ${WAITS}`,
    members: { id: required(ACCOUNT_MEMBERS.id) },
    examples: ['account remove acme', 'account remove acme --yes --json'],
    readsDrop: true,
    form: {
      label: 'Remove',
      title: 'Remove account',
      will: 'The account, its keys, its subscriptions and their detections are removed. Its clients are refused from now on (401). This cannot be undone.',
      isGrave: true,
    },
    job: ({ id }) => [id],
    confirmedBy: 'id',
    run(context, { id }) {
      const access = context.access();
      const open = findAccount(access, id) === null ? openRemovals(access, id) : [];
      return remove(context, 'account', id, open, (db) => removeAccount(db, id));
    },
  }),
  act('subscription remove', {
    summary: `permanently remove a subscription with its detections. ${WAITS}`,
    members: { id: required(SUBSCRIPTION_MEMBERS.id) },
    examples: ['subscription remove 7001', 'subscription remove 7001 --yes --json'],
    readsDrop: true,
    form: {
      label: 'Remove',
      title: 'Remove subscription',
      will: 'The subscription and its detections are removed. No client can read it from now on. This cannot be undone.',
      isGrave: true,
    },
    job: ({ id }) => [`${id}`],
    confirmedBy: 'id',
    run(context, { id }) {
      const access = context.access();
      const isOpen = findSubscription(access, id) === null && openRemovals(access).includes(id);
      return remove(context, 'subscription', id, isOpen ? [id] : [], (db) => removeSubscription(db, id));
    },
  }),
];

/**
 * @param open the subscriptions of one that is removed already, whose rows are still being deleted; empty while it exists
 * @param work throws Refused if it does not exist
 */
async function remove(
  context: Context,
  noun: 'account' | 'subscription',
  id: string | number,
  open: readonly number[],
  work: (access: Database) => Removed,
): Promise<Outcome> {
  const request = (subscriptions: readonly number[]) => ({ kind: 'remove', subscriptions }) as const;
  // Null: it was removed before, and interrupted.
  const removed = context.change((access) =>
    writing(access, () => {
      const result = open.length > 0 ? null : work(access);
      noteOperation(access, request(result?.subscriptions ?? open));
      // Counted before the ingest thread can delete them.
      const db = context.detections();
      return result && { ...result, ...(db === null ? NO_ROWS : countRows(db, result.subscriptions)) };
    }),
  );
  const { left_in_log } = await context.ingest(request(removed?.subscriptions ?? open));
  if (removed === null)
    return {
      value: { [noun]: id, subscriptions: open, left_in_log },
      done: `${noun === 'account' ? 'Account' : 'Subscription'} ${id} had already been removed. Now its rows are deleted, too. ${logText(left_in_log)}`,
    };
  const configured =
    context.kind === 'appliance' && context.config.preseed[`${noun}s`].some((entry) => entry.id === id);
  const { keys_without_subscriptions: idle } = removed;
  return {
    value: { [noun]: id, ...removed, left_in_log, configured },
    done: `Removed ${noun} ${id}: ${counted(removed.detections, 'detection')} in ${counted(removed.versions, 'version')}.`,
    next: [
      idle.length > 0 &&
        `These keys have no subscription left to read: ${idle.join(', ')}. Give them others (wirewatch key set ID --subscriptions LIST) or revoke them (wirewatch key revoke ID).`,
      `${logText(left_in_log)} Files in archive/ still contain them, and so does a further copy until the next backup into it (see: wirewatch manual backup). If later exports have rows of a removed subscription, the alert "rows skipped" opens.`,
      configured &&
        `${context.config.configFile} still has an entry for ${noun} ${id}: the next start will add it again, without detections. Remove the entry.`,
    ],
  };
}

function logText(left: string | null): string {
  return left === null
    ? 'Log and database no longer contain them.'
    : `Log or database may still contain them: ${left}. Wirewatch tries again every hour and at each start.`;
}
