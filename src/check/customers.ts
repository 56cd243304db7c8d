/** Accounts, subscriptions and keys: whether clients can read, and for how long. */
import { listAccounts } from '../auth/accounts.ts';
import { keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { counted, grouped } from '../counted.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { type Finding, finding, type Outcome, ok, warn } from './finding.ts';

const EXPIRES_SOON_MS = 14 * DAY_MS;
const KEYS_SHOWN_MAX = 5;

export function checkCustomers(access: Database, nowMs: number): Finding[] {
  const subscriptions = listSubscriptions(access);
  if (subscriptions.length === 0) {
    const account = listAccounts(access)[0]?.id;
    const todo =
      account === undefined
        ? 'Add an account and a subscription with "wirewatch account add ID --name NAME" and "wirewatch subscription add ID --account ID".'
        : `Add one: wirewatch subscription add ID --account ${account}`;
    return [finding('subscriptions', warn('none: every row of an export is skipped', todo))];
  }
  return [
    finding('subscriptions', ok(grouped(subscriptions.length))),
    finding('keys', checkKeys(access, nowMs)),
  ];
}

function checkKeys(access: Database, nowMs: number): Outcome {
  const active = listKeys(access).filter((key) => keyStatus(key, nowMs) === 'active');
  if (active.length === 0) {
    return warn('no active key: clients cannot read', 'Create one; see: wirewatch key create --help');
  }
  const soon = active.filter(({ expires_at }) => expires_at !== null && expires_at - nowMs < EXPIRES_SOON_MS);
  if (soon.length === 0) return ok(`${grouped(active.length)} active, none expires within 14 days`);
  const named = soon
    .slice(0, KEYS_SHOWN_MAX)
    .map(({ id, name, expires_at }) => `${id} (${name}) at ${formatMs(expires_at ?? 0)}`);
  const more = soon.length - named.length;
  return warn(
    `${counted(soon.length, 'key expires', 'keys expire')} within 14 days: ${named.join(', ')}${more > 0 ? ` and ${grouped(more)} more` : ''}`,
    'Replace each with "wirewatch key rotate ID", or extend it with: wirewatch key set ID --expires TIME',
  );
}
