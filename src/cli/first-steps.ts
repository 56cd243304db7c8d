/** What `serve` says as long as nobody can read: the steps that are missing, as lines to paste. */
import { listAccounts } from '../auth/accounts.ts';
import { keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import type { Database } from '../store/database.ts';

/**
 * The command lines that lead to a key, in their order; none once there is one that can be used.
 *
 * @param db access.db
 * @param options what a command needs to find the same installation, ready to paste; may be empty
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
Wirewatch listens on ${url}. Nobody can read from it yet. In another terminal:

${commands.map((command) => `  ${command}`).join('\n')}

The last one prints the key, this one time. Export files go into ${drop}
"wirewatch manual quick-start" goes on from there, with sample files.

`;
}
