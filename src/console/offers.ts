/** Which acts are offered: for an alert, an account, a subscription, a key. Pure. */
import type { AccountEntry, Action, AlertDocument, KeyEntry, OpenWindow } from '../admin/console/api.ts';

const ALERT_ACTIONS = 3;

/** The acts that can resolve an alert now, for the newest windows that it is about; the list of windows has the others. */
export function alertActions(
  { name, detail }: Pick<AlertDocument, 'name' | 'detail'>,
  open: readonly OpenWindow[],
): Action[] {
  if (name !== 'failed windows' && name !== 'held windows') return [];
  return open
    .filter((window) => detail.includes(`${window.export}: `) && (window.held || name === 'failed windows'))
    .flatMap((window) => window.actions)
    .slice(0, ALERT_ACTIONS)
    .reverse();
}

/** @param verbs of operations on it */
function offered(noun: string, { id }: { readonly id: string | number }, verbs: readonly string[]): Action[] {
  return verbs.map((verb) => ({ operation: `${noun} ${verb}`, given: { id } }));
}

export function accountActions(account: Pick<AccountEntry, 'id' | 'status'>): Action[] {
  return offered('account', account, ['set', account.status === 'active' ? 'suspend' : 'resume', 'remove']);
}

export function subscriptionActions(subscription: { readonly id: number }): Action[] {
  return offered('subscription', subscription, ['set', 'remove']);
}

export function keyActions(key: Pick<KeyEntry, 'id' | 'status'>): Action[] {
  const verbs = { active: ['set', 'rotate', 'revoke'], expired: ['set', 'revoke'], revoked: [] };
  return offered('key', key, verbs[key.status]);
}
