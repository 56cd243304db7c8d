/** What `account remove` and `subscription remove` share: the confirmation, the waiting, and the result. */
import type { Command } from 'commander';
import type { Removed } from '../auth/removal.ts';
import { openRemoval } from '../auth/subscriptions.ts';
import type { Config } from '../config/load.ts';
import { counted } from '../counted.ts';
import { countRows, type RemovedRows } from '../ingest/apply/remove-rows.ts';
import { addRequest, type RequestOutcome } from '../ingest/requests/requests.ts';
import { Refused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { withAccess } from './access.ts';
import { configOf, withDetections } from './config.ts';
import { confirm } from './confirm.ts';
import { serveAdded } from './ingest-request.ts';
import { commonOptions } from './options.ts';
import { print } from './output.ts';

export interface RemovalOptions {
  /** `account acme`, `subscription 7001` */
  readonly label: string;
  /** The word to type as confirmation. */
  readonly word: string;
  /** How `--json` names what was removed. */
  readonly document: Readonly<Record<string, string | number>>;
  /** The subscriptions whose rows are removed, and everything else, in words. @throws Refused if it does not exist */
  readonly look: (access: Database) => { subscriptions: readonly number[]; described: string };
  readonly remove: (access: Database) => Removed;
  /** Whether the configuration has an entry for it. */
  readonly isConfigured: (config: Config) => boolean;
}

/** Asks, unless `yes`; removes it for clients at once; waits until its rows are deleted; prints the result. */
export async function removeWithRows(command: Command, yes: boolean, options: RemovalOptions): Promise<void> {
  const config = configOf(command);
  const { subscriptions, described } = withAccess(command, options.look);
  const none = { detections: 0, versions: 0 };
  const rows = withDetections(config, none, (db) => countRows(db, subscriptions));
  const what = `This permanently removes ${described}, including ${rowsText(rows)}.`;
  if (!yes) await confirm(what, options.word);
  let removed: Removed | null = null;
  const outcome = await serveAdded(command, (access) =>
    writing(access, () => {
      removed = options.remove(access);
      return addRequest(access, { kind: 'remove', subscriptions: removed.subscriptions }, Date.now());
    }),
  );
  if (removed === null) throw new Error('the removal was served before it was requested');
  printRemoved(command, options, {
    removed,
    rows,
    leftInLog: leftInLog(outcome),
    configFile: options.isConfigured(config) ? config.configFile : null,
  });
}

/** For a command that is repeated after it was interrupted. @returns false if nothing is being removed */
export async function awaitOpenRemoval(command: Command, subscription: number): Promise<boolean> {
  const open = withAccess(command, (db) => openRemoval(db, subscription));
  if (open === null) return false;
  const outcome = await serveAdded(command, () => open);
  if (!outcome.ok) throw new Refused('failed', outcome.reason);
  const left_in_log = leftInLog(outcome);
  print(
    { subscription, subscriptions: [subscription], left_in_log },
    {
      json: commonOptions(command).json,
      text: `Subscription ${subscription} had already been removed. Now its rows are deleted, too. ${logText(left_in_log)}`,
    },
  );
  return true;
}

/** Why the log still contains its rows; null if it does not. */
function leftInLog(outcome: RequestOutcome): string | null {
  return 'left_in_log' in outcome ? outcome.left_in_log : null;
}

function logText(left: string | null): string {
  return left === null
    ? 'The log no longer contains them.'
    : `The log still contains them: ${left}. Wirewatch tries again every hour and at each start.`;
}

interface Outcome {
  readonly removed: Removed;
  readonly rows: RemovedRows;
  /** See {@link logText}. */
  readonly leftInLog: string | null;
  readonly configFile: string | null;
}

function printRemoved(
  command: Command,
  { label, document }: RemovalOptions,
  { removed, rows, leftInLog, configFile }: Outcome,
): void {
  const { keys_without_subscriptions: idle } = removed;
  const notes = [
    `Removed ${label}: ${rowsText(rows)}.`,
    ...(idle.length === 0
      ? []
      : [
          `These keys have no subscription left to read: ${idle.join(', ')}. Give them others (wirewatch key set ID --subscriptions LIST) or revoke them (wirewatch key revoke ID).`,
        ]),
    `${logText(leftInLog)} Files in archive/ and backups still contain them; a backup folder deletes them after [backup] keep_days (see: wirewatch manual backup). If later exports have rows of a removed subscription, the alert "rows skipped" opens. The freed space in detections.db is reused; the file does not shrink.`,
    ...(configFile === null
      ? []
      : [
          `${configFile} still has an entry for ${label}: the next start will add it again, without detections. Remove the entry.`,
        ]),
  ];
  const shown = { ...document, ...removed, ...rows, left_in_log: leftInLog, configured: configFile !== null };
  print(shown, { json: commonOptions(command).json, text: notes.join('\n\n') });
}

function rowsText({ detections, versions }: RemovedRows): string {
  return `${counted(detections, 'detection')} in ${counted(versions, 'version')}`;
}
