/**
 * How the appliance stands, in one query: what the console shows first, and `wirewatch status`. It is read from the data
 * folder alone, so any process can; every part of it is bounded, however much there is.
 */
import { statfs } from 'node:fs/promises';
import { type Key, keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { type BackupTimes, backupTimes } from '../backup/branch.ts';
import type { ExportName } from '../detection/content-type.ts';
import { readAlertFile } from '../health/alert-file.ts';
import type { AlertDocument } from '../health/alerts.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { openAlerts } from '../health/open-alerts.ts';
import { readScrubRecord } from '../history/scrub-record.ts';
import { bytesOf, listSegments } from '../history/segment.ts';
import { type IngestSources, type IngestStatus, ingestStatus } from '../ingest/ingest-status.ts';
import { readKeyUsage } from '../limits/usage.ts';
import { reasonOf } from '../refused.ts';
import { type Database, sizeOf } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../time.ts';
import type { Overview } from './console/api.ts';
import { followerState, streamsOfKey } from './followers.ts';

export interface OverviewSources extends Omit<IngestSources, 'detections'> {
  /** A reader on `detections.db`, null where nothing was ever ingested; throws where it cannot be read. */
  readonly detections: () => Database | null;
  /** The folder absolute. */
  readonly backup: { readonly folder: string; readonly every_minutes: number };
}

/** What both show. */
export interface Standing
  extends Pick<Overview, 'exports' | 'disks' | 'database' | 'backup' | 'scrub' | 'keys'> {
  readonly running: boolean;
  readonly alerts: readonly AlertDocument[];
  /** Null when detections.db cannot be read. */
  readonly ingest: IngestStatus | null;
}

const FILES_READ = 200;

export const NEWEST_DONE = `
  SELECT window_start, since FROM export_window WHERE export = ? AND status = 'done'
  ORDER BY window_start DESC LIMIT 1`;
const COUNT_VERSIONS = 'SELECT sum(sequence) AS versions FROM stream WHERE removed = 0';

export async function readOverview(sources: OverviewSources, nowMs: number): Promise<Standing> {
  const { folder, drop, access } = sources;
  const running = isLocked(folder.serveLock);
  const read = readDetections(sources, nowMs);
  const scrub = readScrubRecord(folder);
  return {
    running,
    ingest: read.ingest,
    exports: read.exports,
    alerts: await readAlerts(sources, running, nowMs),
    disks: await disksOf([folder.root, drop]),
    database: {
      bytes: sizeOf(folder.detections),
      wal_bytes: sizeOf(`${folder.detections}-wal`),
      log_bytes: bytesOf(listSegments(folder.log)),
      versions: read.versions,
      unreadable: read.unreadable,
    },
    backup: backupOf(sources.backup),
    scrub: scrub && {
      at: formatMs(scrub.at),
      findings: scrub.findings.reduce((sum, { count }) => sum + count, 0),
      not_compared: scrub.not_compared,
    },
    keys: keysOf(access, folder, read.db, nowMs),
  };
}

interface DetectionsRead {
  readonly db: Database | null;
  readonly ingest: IngestStatus | null;
  readonly exports: Overview['exports'];
  readonly versions: number;
  readonly unreadable: string | null;
}

/** A damaged database is what alerts tell of; the rest is worth having all the same. */
function readDetections(sources: OverviewSources, nowMs: number): DetectionsRead {
  try {
    const db = sources.detections();
    const ingest = ingestStatus({ ...sources, detections: db }, FILES_READ, nowMs);
    const exportState = (name: ExportName) => ({
      ...ingest.exports[name],
      newest_late_seconds: lateSeconds(db, name),
    });
    const versions = db?.prepare<[], { versions: number | null }>(COUNT_VERSIONS).get()?.versions ?? 0;
    const exports = { newswire: exportState('newswire'), imagewire: exportState('imagewire') };
    return { db, ingest, exports, versions, unreadable: null };
  } catch (error) {
    const nothing = (name: ExportName) => ({
      enabled: sources.enabled.has(name),
      newest_done: null,
      newest_late_seconds: null,
      not_read: { failed: 0, missing: 0, abandoned: 0, not_arrived: 0 },
    });
    const exports = { newswire: nothing('newswire'), imagewire: nothing('imagewire') };
    return { db: null, ingest: null, exports, versions: 0, unreadable: reasonOf(error) };
  }
}

/** How long after its end the newest window was read. */
function lateSeconds(db: Database | null, name: ExportName): number | null {
  const newest = db?.prepare<unknown[], { window_start: number; since: number }>(NEWEST_DONE).get(name);
  return newest === undefined
    ? null
    : Math.max(0, Math.round((newest.since - newest.window_start - WINDOW_MS) / 1000));
}

/** What the running appliance has told last, and what the database says at this moment. */
export async function readAlerts(
  { folder, enabled, detections }: Pick<OverviewSources, 'folder' | 'enabled' | 'detections'>,
  isRunning: boolean,
  nowMs: number,
): Promise<AlertDocument[]> {
  const told = (isRunning ? await readAlertFile(folder.alerts) : null) ?? [];
  const readLedger = () => {
    const db = detections();
    return db === null ? [] : ledgerAlerts(db, enabled, nowMs);
  };
  return openAlerts(told, readLedger, nowMs);
}

/** @param detections null: nothing can be said of followers */
function keysOf(
  access: Database,
  folder: DataFolder,
  detections: Database | null,
  nowMs: number,
): Overview['keys'] {
  const active = listKeys(access).filter((key) => keyStatus(key, nowMs) === 'active');
  const usage = readKeyUsage(folder.usage, nowMs);
  const uses = active.flatMap(({ id }) => usage?.get(id)?.last_used_at ?? []);
  const subscriptions = new Map(listSubscriptions(access).map((one) => [one.id, one]));
  const isBehind = (key: Key) => {
    const position = usage?.get(key.id)?.position ?? null;
    if (detections === null || position === null) return false;
    return followerState(detections, streamsOfKey(key, subscriptions), position, nowMs).behind;
  };
  return {
    active: active.length,
    used_in_last_day: uses.filter((ms) => ms > nowMs - DAY_MS).length,
    last_used_at: uses.length === 0 ? null : formatMs(Math.max(...uses)),
    behind: active.filter(isBehind).length,
  };
}

async function disksOf(folders: readonly string[]): Promise<Overview['disks']> {
  const disks = await Promise.all(
    folders.map(async (folder) => {
      const disk = await statfs(folder).catch(() => null);
      if (disk === null) return [];
      return [{ folder, free_bytes: disk.bavail * disk.bsize, bytes: disk.blocks * disk.bsize }];
    }),
  );
  return disks.flat();
}

/** Null where none is scheduled; an alert says why a folder cannot be read. */
function backupOf({ folder, every_minutes }: OverviewSources['backup']): Overview['backup'] {
  if (every_minutes === 0) return null;
  const time = (ms: number | null) => (ms === null ? null : formatMs(ms));
  let times: BackupTimes = { backedUpMs: null, rehearsedMs: null };
  try {
    times = backupTimes(folder);
  } catch {}
  return { folder, newest_at: time(times.backedUpMs), rehearsed_at: time(times.rehearsedMs) };
}
