/** What each account used: rows of the day, and when one of its keys was last used. Never a key's id. */
import { type AccountKeys, listAccountKeys } from '../auth/accounts.ts';
import { accountUsageId } from '../limits/daily-rows.ts';
import { readKeyUsage } from '../limits/usage.ts';
import { openInspector } from '../store/database.ts';
import { SECOND_MS } from '../time.ts';
import type { Fact, StandingSources, Value } from './standing.ts';

type AccountSources = Pick<StandingSources, 'folder' | 'dailyRows' | 'keyUses' | 'now'>;

export function accountFacts(sources: AccountSources): Fact[] {
  return [
    {
      name: 'wirewatch_account_rows_today',
      help: 'Rows that an account has read on this UTC day.',
      labels: ['account'],
      read: () => rowsToday(sources),
    },
    {
      name: 'wirewatch_account_last_request_timestamp_seconds',
      help: 'When a key of an account was last used.',
      labels: ['account'],
      read: () => lastRequests(sources),
    },
  ];
}

function rowsToday({ folder, dailyRows, now }: AccountSources): Value[] {
  return readAccounts(folder.access).map((account) => ({
    labels: { account: account.id },
    value: dailyRows.used('account', accountUsageId(account), now()),
  }));
}

/** An account that never asked for anything has no value. */
function lastRequests({ folder, keyUses, now }: AccountSources): Value[] {
  const written = readKeyUsage(folder.usage, now());
  const unwritten = new Map(keyUses.unwritten().map(({ key_id, last_used_at }) => [key_id, last_used_at]));
  return readAccounts(folder.access).flatMap(({ id, key_ids }) => {
    const times = key_ids.flatMap((key) => unwritten.get(key) ?? written?.get(key)?.last_used_at ?? []);
    return times.length === 0 ? [] : [{ labels: { account: id }, value: Math.max(...times) / SECOND_MS }];
  });
}

/** None where access.db cannot be read, of which an alert tells. */
function readAccounts(path: string): AccountKeys[] {
  try {
    const db = openInspector(path);
    try {
      return listAccountKeys(db);
    } finally {
      db.close();
    }
  } catch {
    return [];
  }
}
