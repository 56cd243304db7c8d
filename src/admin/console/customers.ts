/** Accounts, subscriptions and keys as the commands print them with --json, with their usage and their followers. */
import { type Account, accountDocument, listAccounts } from '../../auth/accounts.ts';
import { type Key, keyStatus, listKeys, rightsOf } from '../../auth/keys.ts';
import { listSubscriptions, subscriptionDocument } from '../../auth/subscriptions.ts';
import { accountUsageId } from '../../limits/daily-rows.ts';
import { NO_USAGE, readUsage, refusalsByKey, rowsToday } from '../../limits/usage.ts';
import { followersOf, readActiveKeys } from '../../operations/followers.ts';
import { keyDocuments } from '../../operations/keys.ts';
import { unlessError } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import type { Sources } from './sources.ts';
import type { Action } from './windows.ts';

const KEY_VERBS = { active: ['set', 'rotate', 'revoke'], expired: ['set', 'revoke'], revoked: [] };

/** The acts that can be done now. @param verbs of operations on it */
const actionsOn = (noun: string, id: string | number, verbs: readonly string[]): Action[] =>
  verbs.map((verb) => ({ operation: `${noun} ${verb}`, given: { id } }));

export function readCustomers(sources: Sources) {
  const { folder, config, nowMs } = sources;
  const access = sources.access();
  const usage = readUsage(folder.usage) ?? NO_USAGE;
  const rows = rowsToday(usage, 'account', nowMs);
  const refusals = refusalsByKey(usage);
  const subscriptions = Map.groupBy(listSubscriptions(access), ({ account_id }) => account_id);
  const keys = Map.groupBy(listKeys(access), ({ account_id }) => account_id);
  const followers = unlessError([], () => followersOf(sources.detections(), readActiveKeys(sources), nowMs));
  const followerOf = new Map(followers.map((follower) => [follower.key_id, follower]));
  const documentOf = keyDocuments(sources);
  const keyEntry = (key: Key) => ({
    ...documentOf(key),
    actions: actionsOn('key', key.id, KEY_VERBS[keyStatus(key, nowMs)]),
    subscriptions: rightsOf(key.subscriptions),
    /** Refused requests of the last seven days, by reason, the most frequent first. */
    refused: (refusals.get(key.id) ?? []).map(({ key_id: _, ...counts }) => {
      return { ...counts, last_at: formatMs(counts.last_at) };
    }),
    /** Null: it never followed the change stream, or has ended. */
    follower: followerOf.get(key.id) ?? null,
  });
  const entryOf = (account: Account) => ({
    ...accountDocument(account),
    /** Its own allowance; null: that of the settings. */
    allowance: account.daily_rows,
    daily_rows: account.daily_rows ?? config.limits.daily_rows,
    rows_today: rows.get(accountUsageId(account)) ?? 0,
    actions: actionsOn('account', account.id, [
      'set',
      account.suspended_at === null ? 'suspend' : 'resume',
      'remove',
    ]),
    subscriptions: (subscriptions.get(account.id) ?? []).map((one) => {
      return { ...subscriptionDocument(one), actions: actionsOn('subscription', one.id, ['set', 'remove']) };
    }),
    keys: (keys.get(account.id) ?? []).map(keyEntry),
  });
  return { accounts: listAccounts(access).map(entryOf) };
}
