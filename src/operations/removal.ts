/**
 * Removes an account or a subscription with its rows. Clients lose access at once; the operation ends when all rows are
 * deleted. If it is interrupted, the ingest thread deletes the rest, and the same operation waits for that.
 */
import { findAccount, getAccount } from '../auth/accounts.ts';
import { noteOperation } from '../auth/audit.ts';
import { openRemovals, removeAccount, removeSubscription } from '../auth/removal.ts';
import { findSubscription, getSubscription, listSubscriptions } from '../auth/subscriptions.ts';
import { counted } from '../counted.ts';
import { type Database, writing } from '../store/database.ts';
import { countRows, type RowCounts } from '../store/subscription-rows.ts';
import { required } from './member.ts';
import { ACCOUNT_MEMBERS, SUBSCRIPTION_MEMBERS } from './members.ts';
import { act, type Context } from './operation.ts';
import type { Outcome } from './problem.ts';

/** `open`: its subscriptions that are removed already, whose rows are still being deleted; empty while it exists. */
function accountOf({ access, config, kind }: Context, id: string) {
  return {
    noun: 'account' as const,
    id,
    open: findAccount(access(), id) === null ? openRemovals(access(), id) : [],
    /** Those that lose their rows. @throws Refused if it does not exist */
    subscriptions(): readonly number[] {
      getAccount(access(), id);
      return listSubscriptions(access()).flatMap((own) => (own.account_id === id ? own.id : []));
    },
    remove: (db: Database) => removeAccount(db, id),
    /** Whether the configuration has an entry for it. */
    configured: kind === 'appliance' && config.preseed.accounts.some((account) => account.id === id),
  };
}

function subscriptionOf({ access, config, kind }: Context, id: number) {
  const isThere = findSubscription(access(), id) !== null;
  return {
    noun: 'subscription' as const,
    id,
    open: isThere ? [] : openRemovals(access()).filter((open) => open === id),
    subscriptions: (): readonly number[] => [getSubscription(access(), id).id],
    remove: (db: Database) => removeSubscription(db, id),
    configured: kind === 'appliance' && config.preseed.subscriptions.some((own) => own.id === id),
  };
}

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
    job: ({ id }) => id,
    confirmedBy: 'id',
    run: (context, { id }) => remove(context, accountOf(context, id)),
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
    job: ({ id }) => `${id}`,
    confirmedBy: 'id',
    run: (context, { id }) => remove(context, subscriptionOf(context, id)),
  }),
];

async function remove(
  context: Context,
  removable: ReturnType<typeof accountOf | typeof subscriptionOf>,
): Promise<Outcome> {
  const { noun, id, open, configured } = removable;
  // Null: it was removed before, and interrupted.
  const rows = open.length > 0 ? null : rowsOf(context.detections(), removable.subscriptions());
  const request = (subscriptions: readonly number[]) => ({ kind: 'remove', subscriptions }) as const;
  const removed = context.change((access) =>
    writing(access, () => {
      const result = rows === null ? null : removable.remove(access);
      noteOperation(access, request(result?.subscriptions ?? open));
      return result;
    }),
  );
  const answer = await context.ingest(request(removed?.subscriptions ?? open));
  /** Why the log, or the file of the database, may still contain the rows; null if they do not. */
  const left_in_log = 'left_in_log' in answer ? answer.left_in_log : null;
  if (rows === null || removed === null)
    return {
      value: { [noun]: id, subscriptions: open, left_in_log },
      done: `${noun === 'account' ? 'Account' : 'Subscription'} ${id} had already been removed. Now its rows are deleted, too. ${logText(left_in_log)}`,
    };
  const { keys_without_subscriptions: idle } = removed;
  return {
    value: { [noun]: id, ...removed, ...rows, left_in_log, configured },
    done: `Removed ${noun} ${id}: ${counted(rows.detections, 'detection')} in ${counted(rows.versions, 'version')}.`,
    next: [
      idle.length > 0 &&
        `These keys have no subscription left to read: ${idle.join(', ')}. Give them others (wirewatch key set ID --subscriptions LIST) or revoke them (wirewatch key revoke ID).`,
      `${logText(left_in_log)} Files in archive/ still contain them, and so does a further copy until the next backup into it (see: wirewatch manual backup). If later exports have rows of a removed subscription, the alert "rows skipped" opens.`,
      configured &&
        `${context.config.configFile} still has an entry for ${noun} ${id}: the next start will add it again, without detections. Remove the entry.`,
    ],
  };
}

function rowsOf(db: Database | null, subscriptions: readonly number[]): RowCounts {
  return db === null ? { detections: 0, versions: 0 } : countRows(db, subscriptions);
}

function logText(left: string | null): string {
  return left === null
    ? 'Log and database no longer contain them.'
    : `Log or database may still contain them: ${left}. Wirewatch tries again every hour and at each start.`;
}
