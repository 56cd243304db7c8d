/**
 * Accounts, subscriptions and keys as the commands print them with --json, with their usage, their followers and the
 * possible actions (api-records.ts).
 */
import { type Account, accountDocument, listAccounts } from '../../auth/accounts.ts';
import { type Key, keyDocument, keyStatus, listKeys } from '../../auth/keys.ts';
import { listSubscriptions, type Subscription, subscriptionDocument } from '../../auth/subscriptions.ts';
import { accountUsageId } from '../../limits/daily-rows.ts';
import {
  type KeyUsage,
  keyUsage,
  NO_USAGE,
  readUsage,
  refusalsByKey,
  rowsToday,
} from '../../limits/usage.ts';
import { followerState, streamsOfKey } from '../../operations/followers.ts';
import { readParameters } from '../../query/parameters.ts';
import type { Database } from '../../store/database.ts';
import { formatMs } from '../../time.ts';
import type { Action } from './api.ts';
import type { AccountEntry, Customers, Follower, KeyEntry } from './api-records.ts';
import type { Read } from './sources.ts';
import { readableOrNull, type Sources } from './sources.ts';

interface Known {
  readonly usage: ReadonlyMap<string, KeyUsage>;
  readonly refusals: ReturnType<typeof refusalsByKey>;
  readonly subscriptions: ReadonlyMap<number, Subscription>;
  /** Null: followers are left out. */
  readonly detections: Database | null;
  readonly mayAct: boolean;
  readonly nowMs: number;
}

export function readCustomers(sources: Sources, { query, mayAct }: Read, nowMs: number): Customers {
  readParameters(query, {});
  const written = readUsage(sources.folder.usage) ?? NO_USAGE;
  const access = sources.access();
  const subscriptions = listSubscriptions(access);
  const keys = Map.groupBy(listKeys(access), (key) => key.account_id);
  const rows = rowsToday(written, 'account', nowMs);
  const known: Known = {
    usage: keyUsage(written, nowMs),
    refusals: refusalsByKey(written),
    subscriptions: new Map(subscriptions.map((one) => [one.id, one])),
    detections: readableOrNull(sources),
    mayAct,
    nowMs,
  };
  const entryOf = (account: Account): AccountEntry => ({
    ...accountDocument(account),
    allowance: account.daily_rows,
    daily_rows: account.daily_rows ?? sources.settings.config.limits.daily_rows,
    rows_today: rows.get(accountUsageId(account)) ?? 0,
    subscriptions: subscriptions
      .filter(({ account_id }) => account_id === account.id)
      .map((one) => ({ ...subscriptionDocument(one), actions: mayAct ? subscriptionActions(one) : [] })),
    keys: (keys.get(account.id) ?? []).map((key) => keyEntry(key, known)),
    actions: mayAct ? accountActions(account) : [],
  });
  return { at: formatMs(nowMs), accounts: listAccounts(access).map(entryOf) };
}

function keyEntry(key: Key, known: Known): KeyEntry {
  const { usage, refusals, mayAct, nowMs } = known;
  const used = usage.get(key.id);
  return {
    ...keyDocument(key, nowMs),
    subscriptions: key.subscriptions.flatMap(
      ({ id, content_types }) => content_types?.map((type) => `${id}:${type}`) ?? [`${id}`],
    ),
    last_used_at: used === undefined || used.last_used_at === null ? null : formatMs(used.last_used_at),
    rows_today: used?.rows_today ?? 0,
    refused: (refusals.get(key.id) ?? []).map(({ code, count, last_at }) => ({
      code,
      count,
      last_at: formatMs(last_at),
    })),
    follower: followerOf(key, used, known),
    actions: mayAct ? keyActions(key, nowMs) : [],
  };
}

function followerOf(key: Key, used: KeyUsage | undefined, known: Known): Follower | null {
  const { detections, subscriptions, nowMs } = known;
  if (detections === null || used === undefined || used.position === null) return null;
  const state = followerState(detections, streamsOfKey(key, subscriptions), used.position, nowMs);
  return { ...state, silent_since: formatMs(used.last_used_at ?? nowMs) };
}

function accountActions({ id, suspended_at }: Account): Action[] {
  const names = ['set', suspended_at === null ? 'suspend' : 'resume', 'remove'];
  return names.map((name) => ({ operation: `account ${name}`, given: { id } }));
}

function subscriptionActions({ id }: Subscription): Action[] {
  return ['set', 'remove'].map((name) => ({ operation: `subscription ${name}`, given: { id } }));
}

function keyActions(key: Key, nowMs: number): Action[] {
  const { id } = key;
  const status = keyStatus(key, nowMs);
  const names = { active: ['set', 'rotate', 'revoke'], expired: ['set', 'revoke'], revoked: [] }[status];
  return names.map((name) => ({ operation: `key ${name}`, given: { id } }));
}
