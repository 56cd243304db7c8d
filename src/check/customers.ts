/** Accounts, subscriptions and keys: whether anybody can read anything, and for how long. */
import { listAccounts } from '../auth/accounts.ts';
import { keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { type Finding, ok, warn } from './finding.ts';

const EXPIRES_SOON_MS = 14 * DAY_MS;
const KEYS_SHOWN_MAX = 5;

export function checkCustomers(access: Database, nowMs: number): Finding[] {
  const subscriptions = listSubscriptions(access);
  if (subscriptions.length === 0) {
    const account = listAccounts(access)[0]?.id;
    return [
      warn(
        'subscriptions',
        'there is none: every row of an export is left out',
        account === undefined
          ? 'Add an account and a subscription: wirewatch account add ID --name NAME, then wirewatch subscription add ID --account ID'
          : `Add one: wirewatch subscription add ID --account ${account}`,
      ),
    ];
  }
  return [ok('subscriptions', `${subscriptions.length}`), judgeKeys(access, nowMs)];
}

function judgeKeys(access: Database, nowMs: number): Finding {
  const check = 'keys';
  const active = listKeys(access).filter((key) => keyStatus(key, nowMs) === 'active');
  if (active.length === 0) {
    return warn(check, 'no key is active: nobody can read', 'Make one: wirewatch key create --help');
  }
  const soon = active.filter(({ expires_at }) => expires_at !== null && expires_at - nowMs < EXPIRES_SOON_MS);
  if (soon.length === 0) return ok(check, `${active.length} active, none expires within 14 days`);
  const named = soon
    .slice(0, KEYS_SHOWN_MAX)
    .map(({ id, name, expires_at }) => `${id} (${name}) at ${formatMs(expires_at ?? 0)}`);
  const more = soon.length - named.length;
  return warn(
    check,
    `expire within 14 days: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
    'Give them longer, or hand out others: wirewatch key set ID --expires TIME',
  );
}
