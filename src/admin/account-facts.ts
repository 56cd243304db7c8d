/** What each account used: rows of the day, when one of its keys was last used, and how far its followers are. */
import { type AccountKeys, listAccountKeys } from '../auth/accounts.ts';
import { positionOfClock } from '../history/lost-end.ts';
import { accountUsageId } from '../limits/daily-rows.ts';
import { type KeyUsage, readKeyUsage } from '../limits/usage.ts';
import { readStreamHead } from '../query/as-of.ts';
import { openInspector } from '../store/database.ts';
import { SECOND_MS } from '../time.ts';
import type { Fact, StandingSources, Value } from './status.ts';

type AccountSources = Pick<StandingSources, 'folder' | 'detections' | 'dailyRows' | 'keyUses' | 'now'>;

export function accountFacts(sources: AccountSources): Fact[] {
  const accounts = onceATurn(() => readAccounts(sources));
  return [
    {
      name: 'wirewatch_account_rows_today',
      help: 'Rows that an account has read on this UTC day.',
      labels: ['account'],
      read: () => rowsToday(accounts(), sources),
    },
    {
      name: 'wirewatch_account_last_request_timestamp_seconds',
      help: 'When a key of an account was last used.',
      labels: ['account'],
      read: () => lastRequests(accounts()),
    },
    {
      name: 'wirewatch_follower_lag_seconds',
      help: 'How much older than the newest change the cursor is that a key was given last.',
      labels: ['account', 'key_id'],
      read: () => followerLags(accounts(), sources.detections),
    },
  ];
}

/** One answer to /metrics begins to read all of its values in one turn of the event loop. */
function onceATurn<Value>(read: () => Value): () => Value {
  let known: { readonly value: Value } | null = null;
  return () => {
    if (known === null) {
      known = { value: read() };
      queueMicrotask(() => {
        known = null;
      });
    }
    return known.value;
  };
}

function rowsToday({ accounts }: Accounts, { dailyRows, now }: AccountSources): Value[] {
  return accounts.map((account) => ({
    labels: { account: account.id },
    value: dailyRows.used('account', accountUsageId(account), now()),
  }));
}

/** An account that never asked for anything has no value. */
function lastRequests({ accounts, uses }: Accounts): Value[] {
  return accounts.flatMap(({ id, key_ids }) => {
    const times = key_ids.flatMap((key) => uses.get(key)?.last_used_at ?? []);
    return times.length === 0 ? [] : [{ labels: { account: id }, value: Math.max(...times) / SECOND_MS }];
  });
}

/** A key that never followed the stream has no value. A cursor moves with every answer, also where nothing was new for it. */
function followerLags({ accounts, uses }: Accounts, detections: AccountSources['detections']): Value[] {
  const { position: head } = readStreamHead(detections());
  return accounts.flatMap(({ id, key_ids }) =>
    key_ids.flatMap((key) => {
      const position = uses.get(key)?.position ?? null;
      if (position === null) return [];
      const value = Math.max(0, head - position) / positionOfClock(SECOND_MS);
      return [{ labels: { account: id, key_id: key }, value }];
    }),
  );
}

interface Accounts {
  readonly accounts: readonly AccountKeys[];
  /** By the id of the key. */
  readonly uses: ReadonlyMap<string, Pick<KeyUsage, 'last_used_at' | 'position'>>;
}

/** None where access.db cannot be read, of which an alert tells. */
function readAccounts({ folder, keyUses, now }: AccountSources): Accounts {
  const uses = new Map<string, Pick<KeyUsage, 'last_used_at' | 'position'>>(
    readKeyUsage(folder.usage, now()),
  );
  for (const { key_id, last_used_at, position } of keyUses.unwritten())
    uses.set(key_id, { last_used_at, position: position ?? uses.get(key_id)?.position ?? null });
  try {
    const db = openInspector(folder.access);
    try {
      return { accounts: listAccountKeys(db), uses };
    } finally {
      db.close();
    }
  } catch {
    return { accounts: [], uses };
  }
}
