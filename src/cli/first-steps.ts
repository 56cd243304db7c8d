/** The commands that `serve` prints while there is no usable key. */
import { listAccounts } from '../auth/accounts.ts';
import { keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import type { Database } from '../store/database.ts';

/**
 * The commands that lead to a key, in order; empty once there is an active key.
 *
 * @param db access.db
 * @param options with which a command finds the same installation, ready to paste; may be empty
 */
export function firstSteps(db: Database, options: string, nowMs: number): string[] {
  if (listKeys(db).some((key) => keyStatus(key, nowMs) === 'active')) return [];
  const [account] = listAccounts(db);
  const [subscription] = listSubscriptions(db);
  const accountId = subscription?.account_id ?? account?.id ?? 'acme';
  const subscriptionId = subscription?.id ?? 7001;
  const commands = [
    ...(account === undefined ? [`account add ${accountId} --name "Acme News"`] : []),
    ...(subscription === undefined
      ? [`subscription add ${subscriptionId} --account ${accountId} --time-zone Europe/Berlin`]
      : []),
    `key create --account ${accountId} --name Dashboard --scopes detections:read --subscriptions ${subscriptionId}`,
  ];
  return commands.map((command) => `wirewatch ${command}${options}`);
}

/** For a terminal. */
export function firstStepsText(commands: readonly string[], url: string, drop: string): string {
  return `
Wirewatch is listening on ${url}. There is no usable API key yet. To create one, run these
commands in another terminal:

${commands.map((command) => `  ${command}`).join('\n')}

The last command prints the key. It is shown only once. Drop export files into ${drop}
For the next steps, with sample files, see: wirewatch manual quick-start

`;
}
