/** `wirewatch status`: the current state on one screen. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { readOverview, type Standing } from '../admin/overview.ts';
import { type Config, enabledExports } from '../config/load.ts';
import type { AlertDocument } from '../health/alerts.ts';
import type { IngestStatus } from '../ingest/ingest-status.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { createFileReader } from '../store/file-reader.ts';
import { readNoted } from '../store/noted-address.ts';
import { formatMs, SECOND_MS } from '../time.ts';
import { openForCommand } from './access.ts';
import { configOf, folderOf, requireInstallation } from './config.ts';
import { listeningUrl } from './local-address.ts';
import { addDropOption, addExamples, commonOptions } from './options.ts';
import { print, terminalWidth } from './output.ts';
import { statusText } from './status-text.ts';

const FILES_SHOWN = 3;
const WIDTH_OF_PIPE = 100;
const WATCH_EVERY_MS = 2 * SECOND_MS;

export interface Status {
  readonly at: string;
  readonly running: boolean;
  /** Where it listens, else would listen; null where that is not known. */
  readonly url: string | null;
  /** Null when detections.db cannot be read; `reason` says why. */
  readonly ingest: Omit<IngestStatus, 'files'> | null;
  readonly reason: string | null;
  /** The newest files that failed, were held or were refused. */
  readonly unread_files: IngestStatus['files'];
  /** If no appliance runs, only those that follow from the database. */
  readonly alerts: readonly AlertDocument[];
  readonly keys: {
    readonly active: number;
    readonly used_in_last_day: number;
    readonly last_used_at: string | null;
  };
  readonly disks: readonly { readonly folder: string; readonly free_bytes: number; readonly bytes: number }[];
  /** Null if no backup is scheduled. */
  readonly backup: { readonly folder: string; readonly newest_at: string | null } | null;
  /** When detections.db was last compared with its log; null: not yet. */
  readonly verified_at: string | null;
}

export function register(command: Command): void {
  command
    .option('--watch', 'refresh the screen until you press Ctrl-C')
    .action(async ({ watch }: { watch?: boolean }, self: Command) => {
      const { json } = commonOptions(self);
      if (watch === true) {
        await watched(self, json);
        return;
      }
      const status = await statusOf(self);
      print(status, { json, text: () => statusText(status, Date.now(), terminalWidth() ?? WIDTH_OF_PIPE) });
    });
  addDropOption(command);
  addExamples(command, ['status', 'status --watch', 'status --json']);
}

async function watched(command: Command, json: boolean): Promise<never> {
  if (json || process.stdout.isTTY !== true)
    throw new Refused(
      'usage',
      '--watch needs a terminal, and cannot be combined with --json. Leave out --watch to print the status once.',
    );
  for (;;) {
    const text = printable(statusText(await statusOf(command), Date.now(), terminalWidth() ?? WIDTH_OF_PIPE));
    // Drawn over the last one, from the top of the screen; the rest of each line and of the screen is cleared.
    process.stdout.write(`\x1b[H${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
    await sleep(WATCH_EVERY_MS);
  }
}

/** @throws Refused `configuration` where there is no installation */
async function statusOf(command: Command): Promise<Status> {
  const config = configOf(command);
  requireInstallation(config);
  const nowMs = Date.now();
  const access = openForCommand(command);
  const detections = createFileReader(folderOf(config).detections);
  try {
    return documentOf(
      await readOverview(
        {
          folder: folderOf(config),
          drop: config.ingest.drop,
          enabled: enabledExports(config),
          access: access.db,
          detections: detections.db,
          backup: config.backup,
        },
        nowMs,
      ),
      config,
      nowMs,
    );
  } finally {
    detections.close();
    access.close();
  }
}

function documentOf(standing: Standing, config: Config, nowMs: number): Status {
  const { running, alerts, disks, backup, scrub, database } = standing;
  const { behind: _, ...keys } = standing.keys;
  const { files, ingest } = withoutFiles(standing.ingest);
  return {
    at: formatMs(nowMs),
    running,
    url: running ? readNoted(folderOf(config).address) : listeningUrl(config),
    ingest,
    reason: database.unreadable,
    unread_files: files.filter(({ outcome }) => UNREAD.has(outcome)).slice(0, FILES_SHOWN),
    alerts,
    keys,
    disks,
    backup: backup && { folder: backup.folder, newest_at: backup.newest_at },
    verified_at: scrub?.at ?? null,
  };
}

function withoutFiles(status: IngestStatus | null) {
  if (status === null) return { files: [], ingest: null };
  const { files, ...ingest } = status;
  return { files, ingest };
}

const UNREAD = new Set(['failed', 'held', 'refused']);
