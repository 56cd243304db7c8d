/** Gauges by account: rows of the day, when a key was last used, how far behind its followers are. */
import { type Account, listAccounts } from '../auth/accounts.ts';
import { type KeyState, keyStatus, listKeyStates } from '../auth/keys.ts';
import { positionOfClock } from '../history/version-epoch.ts';
import { accountUsageId } from '../limits/daily-rows.ts';
import { type KeyUsage, readKeyUsage } from '../limits/usage.ts';
import { readStreamHead } from '../query/as-of.ts';
import { openDatabase } from '../store/database.ts';
import { SECOND_MS } from '../time.ts';
import { type GaugeReader, type GaugeSources, gauge, type Value } from './gauges.ts';

export function accountGauges(sources: GaugeSources): GaugeReader[] {
  const accounts = onceATurn(() => readAccounts(sources));
  return [
    gauge(
      'wirewatch_account_rows_today',
      'Rows that an account has read on this UTC day.',
      () => rowsToday(accounts(), sources),
      ['account'],
    ),
    gauge(
      'wirewatch_account_last_request_timestamp_seconds',
      'When a key of an account was last used.',
      () => lastRequests(accounts()),
      ['account'],
    ),
    gauge(
      'wirewatch_follower_lag_seconds',
      'How much older the last cursor of a key is than the newest change.',
      () => followerLags(accounts(), sources),
      ['account', 'key_id'],
    ),
  ];
}

/** All gauges of one answer to /metrics begin to read in the same turn of the event loop. */
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

function rowsToday({ accounts }: Accounts, { dailyRows, now }: GaugeSources): Value[] {
  return accounts.map((account) => ({
    labels: { account: account.id },
    value: dailyRows.used('account', accountUsageId(account), now()),
  }));
}

/** An account without requests has no value. */
function lastRequests({ keys, uses }: Accounts): Value[] {
  return [...Map.groupBy(keys, ({ account_id }) => account_id)].flatMap(([account, own]) => {
    const times = own.flatMap(({ id }) => uses.get(id)?.last_used_at ?? []);
    return times.length === 0 ? [] : [{ labels: { account }, value: Math.max(...times) / SECOND_MS }];
  });
}

/**
 * A key that never followed the stream has no value, nor does one that was revoked or has expired: its lag would only
 * grow. Each answer moves the cursor of a key, even one without rows.
 */
function followerLags({ keys, uses }: Accounts, { detections, now }: GaugeSources): Value[] {
  const { position: head } = readStreamHead(detections());
  const nowMs = now();
  return keys.flatMap((key) => {
    const position = uses.get(key.id)?.position ?? null;
    if (position === null || keyStatus(key, nowMs) !== 'active') return [];
    const value = Math.max(0, head - position) / positionOfClock(SECOND_MS);
    return [{ labels: { account: key.account_id, key_id: key.id }, value }];
  });
}

type Use = Pick<KeyUsage, 'last_used_at' | 'position'>;

interface Accounts {
  readonly accounts: readonly Account[];
  /** All that were ever created, but those of removed accounts. */
  readonly keys: readonly KeyState[];
  /** By the id of the key. */
  readonly uses: ReadonlyMap<string, Use>;
}

/** None while access.db cannot be read; an alert says why. */
function readAccounts({ folder, keyUses, now }: GaugeSources): Accounts {
  const uses = new Map<string, Use>(readKeyUsage(folder.usage, now()));
  for (const { key_id, last_used_at, position } of keyUses.unwritten())
    uses.set(key_id, { last_used_at, position: position ?? uses.get(key_id)?.position ?? null });
  try {
    using db = openDatabase(folder.access, 'inspect');
    return { accounts: listAccounts(db), keys: listKeyStates(db), uses };
  } catch {
    return { accounts: [], keys: [], uses };
  }
}
