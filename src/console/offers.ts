/** Which acts are offered: for an account, a subscription, a key. Pure. */
import type { AccountEntry, Action, KeyEntry } from '../admin/console/api.ts';

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
