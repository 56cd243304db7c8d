/** Removes an account or a subscription with its rows: the confirmation, the wait, and the result. */
import type { Command } from 'commander';
import { openRemovals, type Removed } from '../auth/removal.ts';
import type { Config } from '../config/load.ts';
import { counted } from '../counted.ts';
import { countRows, type RemovedRows } from '../ingest/apply/remove-rows.ts';
import { addRequest } from '../ingest/requests/requests.ts';
import { type Database, writing } from '../store/database.ts';
import { withAccess } from './access.ts';
import type { Result } from './command.ts';
import { confirm } from './confirm.ts';
import { type Served, serveAdded, serveRequest } from './ingest-request.ts';
import { configOf, withDetections } from './installation.ts';
import { joined } from './output.ts';

export interface Removal {
  /** `account acme`, `subscription 7001` */
  readonly label: string;
  /** The word to type as confirmation. */
  readonly word: string;
  /** How `--json` names what was removed. */
  readonly document: Readonly<Record<string, string | number>>;
  /** The subscriptions that lose their rows, and everything to remove, in words. @throws Refused if it does not exist */
  readonly describe: (access: Database) => { subscriptions: readonly number[]; description: string };
  readonly remove: (access: Database) => Removed;
  /** Whether the configuration has an entry for it. */
  readonly isConfigured: (config: Config) => boolean;
}

/** Asks for confirmation, unless `yes`; ends the access of clients at once; waits until the rows are deleted. */
export async function removeWithRows(command: Command, yes: boolean, removal: Removal): Promise<Result> {
  const config = configOf(command);
  const { subscriptions, description } = withAccess(command, removal.describe);
  const none = { detections: 0, versions: 0 };
  const rows = withDetections(config, none, (db) => countRows(db, subscriptions));
  if (!yes)
    await confirm(`This permanently removes ${description}, including ${rowsText(rows)}.`, removal.word);
  let removed: Removed | null = null;
  const outcome = await serveAdded(command, (access) =>
    writing(access, () => {
      removed = removal.remove(access);
      return addRequest(access, { kind: 'remove', subscriptions: removed.subscriptions }, Date.now());
    }),
  );
  if (removed === null) throw new Error('the removal was served before it was requested');
  return removedResult(
    removal,
    { removed, rows, left_in_log: leftInLog(outcome) },
    removal.isConfigured(config) ? config.configFile : null,
  );
}

/**
 * Repeats a command that was interrupted.
 *
 * @param id of the account or subscription
 * @returns null if no removal of it is under way
 */
export async function finishOpenRemoval(command: Command, id: string | number): Promise<Result | null> {
  const isAccount = typeof id === 'string';
  const subscriptions = withAccess(command, (db) =>
    isAccount ? openRemovals(db, id) : openRemovals(db).filter((open) => open === id),
  );
  if (subscriptions.length === 0) return null;
  const left_in_log = leftInLog(await serveRequest(command, { kind: 'remove', subscriptions }));
  const document = isAccount ? { account: id } : { subscription: id };
  return {
    value: { ...document, subscriptions, left_in_log },
    text: `${isAccount ? 'Account' : 'Subscription'} ${id} had already been removed. Now its rows are deleted, too. ${logText(left_in_log)}`,
  };
}

/** Why the log still contains the rows; null if it does not. */
function leftInLog(outcome: Served): string | null {
  return 'left_in_log' in outcome ? outcome.left_in_log : null;
}

function logText(left: string | null): string {
  return left === null
    ? 'The log no longer contains them.'
    : `The log still contains them: ${left}. Wirewatch tries again every hour and at each start.`;
}

function removedResult(
  { label, document }: Removal,
  { removed, rows, left_in_log }: { removed: Removed; rows: RemovedRows; left_in_log: string | null },
  configFile: string | null,
): Result {
  const { keys_without_subscriptions: idle } = removed;
  const text = joined('\n\n', [
    `Removed ${label}: ${rowsText(rows)}.`,
    idle.length > 0 &&
      `These keys have no subscription left to read: ${idle.join(', ')}. Give them others (wirewatch key set ID --subscriptions LIST) or revoke them (wirewatch key revoke ID).`,
    `${logText(left_in_log)} Files in archive/ and backups still contain them; a backup folder deletes them after [backup] keep_days (see: wirewatch manual backup). If later exports have rows of a removed subscription, the alert "rows skipped" opens. The freed space in detections.db is reused; the file does not shrink.`,
    configFile !== null &&
      `${configFile} still has an entry for ${label}: the next start will add it again, without detections. Remove the entry.`,
  ]);
  return {
    value: { ...document, ...removed, ...rows, left_in_log, configured: configFile !== null },
    text,
  };
}

function rowsText({ detections, versions }: RemovedRows): string {
  return `${counted(detections, 'detection')} in ${counted(versions, 'version')}`;
}
