/** `wirewatch status`: the current state on one screen. */
import { statfs } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { keyStatus, listKeys } from '../auth/keys.ts';
import { backupTimes } from '../backup/branch.ts';
import type { Config } from '../config/load.ts';
import type { AlertDocument } from '../health/alerts.ts';
import { readScrubRecord } from '../history/scrub-record.ts';
import { printable } from '../printable.ts';
import { Refused, reasonOf } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { isLocked } from '../store/locks.ts';
import { DAY_MS, formatMs, SECOND_MS } from '../time.ts';
import { withAccess } from './access.ts';
import { openAlertsOf } from './alert.ts';
import { configOf, folderOf, requireInstallation } from './config.ts';
import { type IngestStatus, ingestStatus } from './ingest-status.ts';
import { usageOfKeys } from './key-usage.ts';
import { listeningUrl } from './local-address.ts';
import { addDropOption, addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';
import { statusText } from './status-text.ts';

const FILES_READ = 200;
const FILES_SHOWN = 3;
const WATCH_EVERY_MS = 2 * SECOND_MS;

export interface Status {
  readonly at: string;
  readonly running: boolean;
  /** Null if the port is 0: only the running appliance knows which one it picked. */
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
      print(status, { json, text: () => statusText(status, Date.now()) });
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
    const text = printable(statusText(await statusOf(command), Date.now()));
    // Drawn over the last one, from the top of the screen; the rest of each line and of the screen is cleared.
    process.stdout.write(`\x1b[H${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
    await sleep(WATCH_EVERY_MS);
  }
}

/** @throws Refused `configuration` where there is no installation */
async function statusOf(command: Command): Promise<Status> {
  const config = configOf(command);
  const folder = folderOf(config);
  requireInstallation(config);
  const nowMs = Date.now();
  const running = isLocked(folder.serveLock);
  const { keys, ...ingested } = withAccess(command, (access) => ({
    ...ingestOf(access, config),
    keys: keysOf(command, access, nowMs),
  }));
  const scrubbed = readScrubRecord(folder);
  return {
    at: formatMs(nowMs),
    running,
    url: listeningUrl(config),
    ...ingested,
    alerts: await openAlertsOf(config, running),
    keys,
    disks: await disksOf([folder.root, config.ingest.drop]),
    backup: backupOf(config),
    verified_at: scrubbed === null ? null : formatMs(scrubbed.at),
  };
}

/** An alert reports a damaged database; the rest of the screen is useful all the same. */
function ingestOf(access: Database, config: Config): Pick<Status, 'ingest' | 'reason' | 'unread_files'> {
  try {
    const { files, ...ingest } = ingestStatus(access, config, FILES_READ);
    const unread = files.filter(({ outcome }) => UNREAD.has(outcome)).slice(0, FILES_SHOWN);
    return { ingest, reason: null, unread_files: unread };
  } catch (error) {
    return { ingest: null, reason: reasonOf(error), unread_files: [] };
  }
}

const UNREAD = new Set(['failed', 'held', 'refused']);

function keysOf(command: Command, access: Database, nowMs: number): Status['keys'] {
  const active = listKeys(access).filter((key) => keyStatus(key, nowMs) === 'active');
  const usage = usageOfKeys(command, nowMs);
  const uses = active.flatMap(({ id }) => usage?.get(id)?.last_used_at ?? []);
  return {
    active: active.length,
    used_in_last_day: uses.filter((ms) => ms > nowMs - DAY_MS).length,
    last_used_at: uses.length === 0 ? null : formatMs(Math.max(...uses)),
  };
}

async function disksOf(folders: readonly string[]): Promise<Status['disks']> {
  const disks = await Promise.all(
    folders.map(async (folder) => {
      const disk = await statfs(folder).catch(() => null);
      if (disk === null) return [];
      return [{ folder, free_bytes: disk.bavail * disk.bsize, bytes: disk.blocks * disk.bsize }];
    }),
  );
  return disks.flat();
}

function backupOf({ backup }: Config): Status['backup'] {
  if (backup.every_minutes === 0) return null;
  const { backedUpMs: atMs } = backupTimes(backup.folder);
  return { folder: backup.folder, newest_at: atMs === null ? null : formatMs(atMs) };
}
