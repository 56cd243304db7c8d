/** What each account used: rows of the day, when one of its keys was last used, and how far its followers are. */
import { type AccountKeys, listAccountKeys } from '../auth/accounts.ts';
import { positionOfClock } from '../history/lost-end.ts';
import { accountUsageId } from '../limits/daily-rows.ts';
import { type KeyUsage, readKeyUsage } from '../limits/usage.ts';
import { readStanding } from '../query/as-of.ts';
import { openInspector } from '../store/database.ts';
import { SECOND_MS } from '../time.ts';
import type { Fact, StandingSources, Value } from './standing.ts';

type AccountSources = Pick<StandingSources, 'folder' | 'detections' | 'dailyRows' | 'keyUses' | 'now'>;

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
    {
      name: 'wirewatch_follower_lag_seconds',
      help: 'How much older than the newest change the cursor is that a key was given last.',
      labels: ['account', 'key_id'],
      read: () => followerLags(sources),
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
function lastRequests(sources: AccountSources): Value[] {
  const uses = readUses(sources);
  return readAccounts(sources.folder.access).flatMap(({ id, key_ids }) => {
    const times = key_ids.flatMap((key) => uses.get(key)?.last_used_at ?? []);
    return times.length === 0 ? [] : [{ labels: { account: id }, value: Math.max(...times) / SECOND_MS }];
  });
}

/** A key that never followed the stream has no value. A cursor moves with every answer, also where nothing was new for it. */
function followerLags(sources: AccountSources): Value[] {
  const uses = readUses(sources);
  const { head } = readStanding(sources.detections());
  return readAccounts(sources.folder.access).flatMap(({ id, key_ids }) =>
    key_ids.flatMap((key) => {
      const position = uses.get(key)?.position ?? null;
      if (position === null) return [];
      const value = Math.max(0, head - position) / positionOfClock(SECOND_MS);
      return [{ labels: { account: id, key_id: key }, value }];
    }),
  );
}

function readUses({
  folder,
  keyUses,
  now,
}: AccountSources): Map<string, Pick<KeyUsage, 'last_used_at' | 'position'>> {
  const uses: ReturnType<typeof readUses> = new Map(readKeyUsage(folder.usage, now()));
  for (const { key_id, last_used_at, position } of keyUses.unwritten())
    uses.set(key_id, { last_used_at, position: position ?? uses.get(key_id)?.position ?? null });
  return uses;
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
