/** What `account remove` and `subscription remove` share: the question, the waiting, and what is left to be said. */
import type { Command } from 'commander';
import { openRemoval } from '../auth/open-removals.ts';
import type { Removed } from '../auth/removal.ts';
import type { Config } from '../config/load.ts';
import { countRows, type RemovedRows } from '../ingest/removal.ts';
import { addRequest, type RequestOutcome } from '../ingest/requests.ts';
import { Refused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { withAccess } from './access.ts';
import { configOf, withDetections } from './config.ts';
import { confirm } from './confirm.ts';
import { serveAdded } from './ingest-request.ts';
import { commonOptions } from './options.ts';
import { counted, print } from './output.ts';

export interface RemovalOptions {
  /** `account acme`, `subscription 7001` */
  readonly label: string;
  /** What must be typed. */
  readonly word: string;
  /** How the removed thing stands in `--json`. */
  readonly document: Readonly<Record<string, string | number>>;
  /** Of which subscriptions rows go, and all else that goes, in words. @throws Refused when there is no such thing */
  readonly look: (access: Database) => { subscriptions: readonly number[]; described: string };
  readonly remove: (access: Database) => Removed;
  /** Whether the configuration names it. */
  readonly isConfigured: (config: Config) => boolean;
}

/** Asks, unless `yes`; takes it away for clients at once; waits until its rows are gone; prints what is to be known. */
export async function removeWithRows(command: Command, yes: boolean, options: RemovalOptions): Promise<void> {
  const config = configOf(command);
  const { subscriptions, described } = withAccess(command, options.look);
  const none = { detections: 0, versions: 0 };
  const rows = withDetections(config, none, (db) => countRows(db, subscriptions));
  const what = `This removes ${described}, with ${rowsText(rows)}, for good.`;
  if (!yes) await confirm(what, options.word);
  let removed: Removed | null = null;
  const outcome = await serveAdded(command, (access) =>
    writing(access, () => {
      removed = options.remove(access);
      return addRequest(access, { kind: 'remove', subscriptions: removed.subscriptions }, Date.now());
    }),
  );
  if (removed === null) throw new Error('it was served before it was asked for');
  printRemoved(command, options, {
    removed,
    rows,
    leftInLog: leftInLog(outcome),
    configFile: options.isConfigured(config) ? config.configFile : null,
  });
}

/** For a command that is repeated after it was ended half-way. @returns false when nothing is being removed */
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
      text: `Subscription ${subscription} was removed before; now its rows are gone too. ${logText(left_in_log)}`,
    },
  );
  return true;
}

/** Why the log still has rows of it; null where it has none. */
function leftInLog(outcome: RequestOutcome): string | null {
  return 'left_in_log' in outcome ? outcome.left_in_log : null;
}

function logText(left: string | null): string {
  return left === null
    ? 'The log no longer holds them.'
    : `The log still holds them: ${left}. It is tried again every hour, and at each start of the appliance.`;
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
          `These keys have nothing left to read: ${idle.join(', ')}. Give them something (wirewatch key set ID --subscriptions LIST) or end them (wirewatch key revoke ID).`,
        ]),
    `${logText(leftInLog)} Files in archive/ and backups do; a backup folder lets go of them after [backup] keep_days (wirewatch manual backup). Exports that go on carrying the subscription raise the alert "rows skipped". The room in detections.db is used again; the file does not shrink.`,
    ...(configFile === null
      ? []
      : [`${configFile} still names ${label}: the next start adds it again, empty. Take it out there too.`]),
  ];
  const shown = { ...document, ...removed, ...rows, left_in_log: leftInLog, configured: configFile !== null };
  print(shown, { json: commonOptions(command).json, text: notes.join('\n\n') });
}

function rowsText({ detections, versions }: RemovedRows): string {
  return `${counted(detections, 'detection')} in ${counted(versions, 'version')}`;
}
