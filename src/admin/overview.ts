/**
 * The state of the appliance, for the console's overview and `wirewatch status`. It is read from the data folder alone,
 * so any process can read it; every part is bounded, however large the installation.
 */
import { type Key, keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { backedUpMs } from '../backup/branch.ts';
import { counted } from '../counted.ts';
import { type ExportName, perExport } from '../detection/content-type.ts';
import { readAlertFile } from '../health/alert-file.ts';
import type { AlertDocument } from '../health/alert-texts.ts';
import { disksOf } from '../health/disk.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { openAlerts } from '../health/open-alerts.ts';
import { evaluateHealth } from '../health/rules.ts';
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
  /** A reader on `detections.db`, null before the first ingest; throws if it cannot be read. */
  readonly detections: () => Database | null;
  /** The folder absolute. */
  readonly backup: { readonly folder: string; readonly every_minutes: number };
}

/** What both show; the console adds counts by the minute, and the actions for alerts. */
export interface Status extends Omit<Overview, 'alerts' | 'minutes'> {
  readonly running: boolean;
  readonly alerts: readonly AlertDocument[];
}

const FILES_SHOWN = 20;

export const NEWEST_DONE = `
  SELECT window_start, since FROM export_window WHERE export = ? AND status = 'done'
  ORDER BY window_start DESC LIMIT 1`;
const COUNT_VERSIONS = 'SELECT sum(sequence) AS versions FROM stream WHERE removed = 0';

export async function readOverview(sources: OverviewSources, nowMs: number): Promise<Status> {
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

/** If the database is damaged, the rest is still useful; an alert reports the damage. */
function readDetections(sources: OverviewSources, nowMs: number): DetectionsRead {
  try {
    const db = sources.detections();
    const ingest = ingestStatus({ ...sources, detections: db }, FILES_SHOWN, nowMs);
    const exportState = (name: ExportName) => ({
      ...ingest.exports[name],
      newest_late_seconds: lateSeconds(db, name),
    });
    const versions = db?.prepare<[], { versions: number | null }>(COUNT_VERSIONS).get()?.versions ?? 0;
    const exports = perExport(exportState);
    return { db, ingest, exports, versions, unreadable: null };
  } catch (error) {
    const nothing = (name: ExportName) => ({
      enabled: sources.enabled.has(name),
      ...NOTHING_READ,
      newest_late_seconds: null,
    });
    const exports = perExport(nothing);
    const pause = readPause(sources.access);
    const ingest = { ...NOTHING_WAITS, paused_since: pause === null ? null : formatMs(pause) };
    return { db: null, ingest, exports, versions: 0, unreadable: reasonOf(error) };
  }
}

const NOTHING_WAITS = { waiting: 0, waiting_files: [], reading: null, applying: [], not_applied: [] };

/** The status of GET /v1/health, and the reason. */
function healthOf(
  { enabled }: Pick<OverviewSources, 'enabled'>,
  { alerts, exports, paused_since }: Pick<Status, 'alerts' | 'exports'> & Pick<IngestStatus, 'paused_since'>,
  nowMs: number,
): Overview['health'] {
  const end = (name: ExportName) => parseInstant(exports[name].newest_done ?? '');
  const newest_done = perExport(end);
  const situation = { newest_done, enabled, is_paused: paused_since !== null };
  const { status } = evaluateHealth(situation, alerts, nowMs);
  return { status, paused_since, reason: reasonOfHealth(status, alerts, paused_since) };
}

function reasonOfHealth(
  status: Overview['health']['status'],
  alerts: Status['alerts'],
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

/** The delay between the end of the newest window and its reading. */
function lateSeconds(db: Database | null, name: ExportName): number | null {
  const newest = db?.prepare<unknown[], { window_start: number; since: number }>(NEWEST_DONE).get(name);
  return newest === undefined
    ? null
    : Math.max(0, Math.round((newest.since - newest.window_start - WINDOW_MS) / 1000));
}

/** The alerts that the running appliance has written, and those that the database shows now. */
export async function readAlerts(
  { folder, enabled, detections }: Pick<OverviewSources, 'folder' | 'enabled' | 'detections'>,
  isRunning: boolean,
  nowMs: number,
): Promise<AlertDocument[]> {
  const written = (isRunning ? await readAlertFile(folder.alerts) : null) ?? [];
  const readLedger = () => {
    const db = detections();
    return db === null ? [] : ledgerAlerts(db, enabled, nowMs);
  };
  return openAlerts(written, readLedger, nowMs);
}

/** @param detections null: followers are left out */
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

/** Null if none is scheduled. An alert reports a folder that cannot be read. */
function backupOf({ folder, every_minutes }: OverviewSources['backup']): Overview['backup'] {
  if (every_minutes === 0) return null;
  let atMs: number | null = null;
  try {
    atMs = backedUpMs(folder);
  } catch {}
  return { folder, newest_at: atMs === null ? null : formatMs(atMs) };
}
