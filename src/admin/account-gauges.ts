/** Gauges by account: rows of the day, when a key was last used. What memory has is newer than the status document. */
import { type Account, listAccounts } from '../auth/accounts.ts';
import { type KeyState, listKeyStates } from '../auth/keys.ts';
import { accountUsageId } from '../limits/daily-rows.ts';
import { openDatabase } from '../store/database.ts';
import { SECOND_MS } from '../time.ts';
import { type GaugeReader, type GaugeSources, gauge, onceATurn, type Value } from './gauges.ts';

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
  ];
}

function rowsToday({ accounts }: Accounts, { dailyRows, now }: GaugeSources): Value[] {
  return accounts.map((account) => ({
    labels: { account: account.id },
    value: dailyRows.used('account', accountUsageId(account), now()),
  }));
}

/** An account without requests has no value. */
function lastRequests({ keys, usedAt }: Accounts): Value[] {
  return [...Map.groupBy(keys, ({ account_id }) => account_id)].flatMap(([account, own]) => {
    const times = own.flatMap(({ id }) => usedAt.get(id) ?? []);
    return times.length === 0 ? [] : [{ labels: { account }, value: Math.max(...times) / SECOND_MS }];
  });
}

interface Accounts {
  readonly accounts: readonly Account[];
  /** All that were ever created, but those of removed accounts. */
  readonly keys: readonly KeyState[];
  /** When each key was last used, by its id. */
  readonly usedAt: ReadonlyMap<string, number>;
}

/** None while access.db cannot be read; an alert says why. */
function readAccounts({ folder, keyUses }: GaugeSources): Accounts {
  const usedAt = new Map(keyUses.all().map(({ key_id, last_used_at }) => [key_id, last_used_at]));
  try {
    using db = openDatabase(folder.access, 'inspect');
    return { accounts: listAccounts(db), keys: listKeyStates(db), usedAt };
  } catch {
    return { accounts: [], keys: [], usedAt };
  }
}
