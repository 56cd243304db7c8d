/**
 * How the appliance stands, in one query: what the console shows first, and `wirewatch status`. It is read from the data
 * folder alone, so any process can; every part of it is bounded, however much there is.
 */
import { statfs } from 'node:fs/promises';
import { type Key, keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { type BackupTimes, backupTimes } from '../backup/branch.ts';
import { counted } from '../counted.ts';
import type { ExportName } from '../detection/content-type.ts';
import { readAlertFile } from '../health/alert-file.ts';
import type { AlertDocument } from '../health/alerts.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { openAlerts } from '../health/open-alerts.ts';
import { judgeHealth } from '../health/rules.ts';
import { readScrubRecord } from '../history/scrub-record.ts';
import { bytesOf, listSegments } from '../history/segment.ts';
import { type IngestSources, type IngestStatus, ingestStatus } from '../ingest/ingest-status.ts';
import { readPause } from '../ingest/pause.ts';
import { readKeyUsage } from '../limits/usage.ts';
import { reasonOf } from '../refused.ts';
import { type Database, sizeOf } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { DAY_MS, formatMs, parseInstant, WINDOW_MS } from '../time.ts';
import { VERSION } from '../version.ts';
import { NOTHING_READ } from '../windows/reach.ts';
import type { Overview } from './console/api.ts';
import { followerState, streamsOfKey } from './followers.ts';

export interface OverviewSources extends Omit<IngestSources, 'detections'> {
  /** A reader on `detections.db`, null where nothing was ever ingested; throws where it cannot be read. */
  readonly detections: () => Database | null;
  /** The folder absolute. */
  readonly backup: { readonly folder: string; readonly every_minutes: number };
}

/** What both show; the console adds what was counted by the minute, and what can be done about alerts. */
export interface Standing extends Omit<Overview, 'alerts' | 'minutes'> {
  readonly running: boolean;
  readonly alerts: readonly AlertDocument[];
}

const FILES_SHOWN = 20;

export const NEWEST_DONE = `
  SELECT window_start, since FROM export_window WHERE export = ? AND status = 'done'
  ORDER BY window_start DESC LIMIT 1`;
const COUNT_VERSIONS = 'SELECT sum(sequence) AS versions FROM stream WHERE removed = 0';

export async function readOverview(sources: OverviewSources, nowMs: number): Promise<Standing> {
  const { folder, drop, access } = sources;
  const running = isLocked(folder.serveLock);
  const { db, ingest, exports, versions, unreadable } = readDetections(sources, nowMs);
  const scrub = readScrubRecord(folder);
  const alerts = await readAlerts(sources, running, nowMs);
  const { waiting, waiting_files, reading, applying } = ingest;
  return {
    at: formatMs(nowMs),
    version: VERSION,
    running,
    health: healthOf(sources, { exports, alerts, paused_since: ingest.paused_since }, nowMs),
    ingest: { drop, waiting, waiting_files, reading, applying },
    not_applied: ingest.not_applied,
    exports,
    alerts,
    disks: await disksOf([folder.root, drop]),
    database: {
      bytes: sizeOf(folder.detections),
      wal_bytes: sizeOf(`${folder.detections}-wal`),
      log_bytes: bytesOf(listSegments(folder.log)),
      versions,
      unreadable,
    },
    backup: backupOf(sources.backup),
    scrub: scrub && {
      at: formatMs(scrub.at),
      findings: scrub.findings.reduce((sum, { count }) => sum + count, 0),
      not_compared: scrub.not_compared,
    },
    keys: keysOf(access, folder, db, nowMs),
  };
}

interface DetectionsRead {
  readonly db: Database | null;
  readonly ingest: Omit<IngestStatus, 'running' | 'drop' | 'exports' | 'files'>;
  readonly exports: Overview['exports'];
  readonly versions: number;
  readonly unreadable: string | null;
}

/** A damaged database is what alerts tell of; the rest is worth having all the same. */
function readDetections(sources: OverviewSources, nowMs: number): DetectionsRead {
  try {
    const db = sources.detections();
    const ingest = ingestStatus({ ...sources, detections: db }, FILES_SHOWN, nowMs);
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
      ...NOTHING_READ,
      newest_late_seconds: null,
    });
    const exports = { newswire: nothing('newswire'), imagewire: nothing('imagewire') };
    const pause = readPause(sources.access);
    const ingest = { ...NOTHING_WAITS, paused_since: pause === null ? null : formatMs(pause) };
    return { db: null, ingest, exports, versions: 0, unreadable: reasonOf(error) };
  }
}

const NOTHING_WAITS = { waiting: 0, waiting_files: [], reading: null, applying: [], not_applied: [] };

/** What GET /v1/health says, and why. */
function healthOf(
  { enabled }: Pick<OverviewSources, 'enabled'>,
  {
    alerts,
    exports,
    paused_since,
  }: Pick<Standing, 'alerts' | 'exports'> & Pick<IngestStatus, 'paused_since'>,
  nowMs: number,
): Overview['health'] {
  const end = (name: ExportName) => parseInstant(exports[name].newest_done ?? '');
  const newest_done = { newswire: end('newswire'), imagewire: end('imagewire') };
  const situation = { newest_done, enabled, is_paused: paused_since !== null };
  const { status } = judgeHealth(situation, alerts, nowMs);
  return { status, paused_since, reason: reasonOfHealth(status, alerts, paused_since) };
}

function reasonOfHealth(
  status: Overview['health']['status'],
  alerts: Standing['alerts'],
  pausedSince: string | null,
): string {
  const [urgent, ...others] = alerts.filter(({ page_worthy }) => page_worthy);
  if (urgent !== undefined) {
    const more = others.length === 0 ? '' : ` ${counted(others.length, 'more alert')} cannot wait.`;
    return `${urgent.name}: ${urgent.detail}.${more}`;
  }
  if (pausedSince !== null) return `Ingest is paused since ${pausedSince}.`;
  if (status === 'degraded') return 'An export has finished no window that ended within the last hour.';
  return alerts.length === 0 ? 'Nothing is wrong.' : `${counted(alerts.length, 'alert')} can wait.`;
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
