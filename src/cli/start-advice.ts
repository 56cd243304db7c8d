/** What a start tells the operator: settings that need attention, and the commands that lead to a first key. */
import type { Command } from 'commander';
import { listAccounts } from '../auth/accounts.ts';
import { keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { isInTheClear } from '../config/listening.ts';
import { printable } from '../printable.ts';
import { reasonOf } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { folderOf, installationOptions } from './installation.ts';
import type { Serving } from './serving.ts';

/** Logs the advice; on a terminal, prints the first steps as text. */
export function adviseOnStart(serving: Serving, command: Command): void {
  warnOfSettings(serving);
  adviseFirstSteps(serving, command);
}

function warnOfSettings({ appliance: { url }, config: { server }, log }: Serving): void {
  if (server.base_url === '')
    log.warn(
      { url },
      'base_url is not set: links and error types name the listening address, which others may not reach. Set it with --base-url',
    );
  if (isInTheClear(server))
    log.warn(
      { url },
      'keys cross the network in the clear: there is neither a certificate nor a trusted proxy',
    );
}

function adviseFirstSteps({ appliance: { url, drop }, config, log }: Serving, command: Command): void {
  try {
    using db = openDatabase(folderOf(config).access, 'read');
    const next = firstSteps(db, installationOptions(command, config), Date.now());
    if (next.length === 0) return;
    if (process.stderr.isTTY) process.stderr.write(printable(firstStepsText(next, url, drop)));
    else
      log.info(
        { next, drop },
        'nobody can read yet: there is no key in use. See "wirewatch manual quick-start"',
      );
  } catch (error) {
    // No reason to end: it serves already, and an alert opens if keys cannot be checked.
    log.warn({ detail: reasonOf(error) }, 'cannot check whether a key is in use');
  }
}

/**
 * The commands that lead to a key, in order; empty once there is an active key.
 * @param access access.db
 * @param options with which a command finds the same installation, quoted; may be empty
 */
function firstSteps(access: Database, options: string, nowMs: number): string[] {
  if (listKeys(access).some((key) => keyStatus(key, nowMs) === 'active')) return [];
  const [account] = listAccounts(access);
  const [subscription] = listSubscriptions(access);
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

function firstStepsText(commands: readonly string[], url: string, drop: string): string {
  return `
Wirewatch is listening on ${url}. There is no usable API key yet. To create one, run these
commands in another terminal:

${commands.map((command) => `  ${command}`).join('\n')}

The last command prints the key. It is shown only once. Drop export files into ${drop}
For the next steps, with sample files, see: wirewatch manual quick-start

`;
}
