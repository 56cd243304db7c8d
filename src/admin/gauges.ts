/**
 * The gauges of /metrics: alerts, windows, sizes, connections. Each is read from what the appliance has open anyway, in
 * bounded time however long it has run.
 */
import { backedUpMs } from '../backup/branch.ts';
import type { Settings } from '../config/schema.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { ALERTS, isPageWorthy } from '../health/alert-texts.ts';
import { disksOf } from '../health/disk.ts';
import type { Monitor } from '../health/monitor.ts';
import { FINDING_KINDS, findingKinds } from '../history/scrub-findings.ts';
import { readScrubRecord } from '../history/scrub-record.ts';
import type { DailyRows } from '../limits/daily-rows.ts';
import type { KeyUses } from '../limits/key-uses.ts';
import { type Database, sizeOf } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { DAY_MS, type Now, parseInstant, SECOND_MS } from '../time.ts';
import { countWindows, WINDOW_STATUSES } from '../windows/ledger.ts';

export interface GaugeSources {
  readonly monitor: Monitor;
  /** A reader on `detections.db`; throws while it does not exist. */
  readonly detections: () => Database;
  readonly folder: DataFolder;
  /** Exports that are switched on. */
  readonly enabled: ReadonlySet<ExportName>;
  /** The folder absolute. */
  readonly backup: Pick<Settings['backup'], 'folder' | 'every_minutes'>;
  /** The drop folder, absolute. */
  readonly drop: string;
  readonly dailyRows: Pick<DailyRows, 'used'>;
  readonly keyUses: Pick<KeyUses, 'unwritten'>;
  /** When the certificate in use expires, epoch milliseconds; null without TLS. */
  readonly certificateExpiresMs: () => number | null;
  /** Open connections to the API. */
  readonly connections: () => number;
  readonly now: Now;
}

export interface Value {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Without labels, a number; null where there is no value. */
type Reading = number | null | readonly Value[];

export interface GaugeReader {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly read: () => Reading | Promise<Reading>;
}

export function gauge(
  name: string,
  help: string,
  read: GaugeReader['read'],
  labels: readonly string[] = [],
): GaugeReader {
  return { name, help, labels, read };
}

/** As far back as clients see gaps; a longer period would take longer with every year. */
const WINDOWS_MS = 90 * DAY_MS;

export function gauges(sources: GaugeSources): GaugeReader[] {
  return [...stateGauges(sources), ...storageGauges(sources)];
}

function stateGauges(sources: GaugeSources): GaugeReader[] {
  const { monitor, connections, enabled, certificateExpiresMs, detections, now } = sources;
  return [
    gauge('wirewatch_healthy', 'Whether GET /v1/health answers 200.', () =>
      monitor.health().status === 'ok' ? 1 : 0,
    ),
    gauge(
      'wirewatch_ingest_paused',
      'Whether ingest is paused on purpose.',
      () => monitor.health().alerts.paused,
    ),
    gauge(
      'wirewatch_alerts_open',
      'Open alerts, by name; page_worthy is true for those that need someone now.',
      () => openAlerts(monitor),
      ['alert', 'page_worthy'],
    ),
    gauge(
      'wirewatch_newest_done_timestamp_seconds',
      'End of the newest finished window of an export; as_of is made from it.',
      () => newestDone(monitor, enabled),
      ['export'],
    ),
    gauge('wirewatch_connections', 'Open connections to the API.', connections),
    gauge('wirewatch_certificate_expires_timestamp_seconds', 'When the TLS certificate in use expires.', () =>
      secondsOf(certificateExpiresMs()),
    ),
    gauge(
      'wirewatch_windows',
      'Export windows of the last 90 days, by status.',
      () => (monitor.isDamaged() ? null : windows(detections(), now() - WINDOWS_MS)),
      ['export', 'status'],
    ),
  ];
}

function openAlerts(monitor: Monitor): Value[] {
  const open = new Map<string, number>();
  for (const { name } of monitor.alerts()) open.set(name, (open.get(name) ?? 0) + 1);
  return alertNames().map((name) => ({
    labels: { alert: name, page_worthy: `${isPageWorthy({ name })}` },
    value: open.get(name) ?? 0,
  }));
}

function alertNames(): (keyof typeof ALERTS)[] {
  const isName = (name: string): name is keyof typeof ALERTS => Object.hasOwn(ALERTS, name);
  return Object.keys(ALERTS).filter(isName);
}

/** An export without a finished window has no value. */
function newestDone(monitor: Monitor, enabled: ReadonlySet<ExportName>): Value[] {
  const { exports } = monitor.health();
  return [...enabled].flatMap((name) => {
    const ms = parseInstant(exports[name].newest_done ?? '');
    return ms === null ? [] : [{ labels: { export: name }, value: ms / SECOND_MS }];
  });
}

function windows(detections: Database, fromMs: number): Value[] {
  return EXPORT_NAMES.flatMap((name) =>
    WINDOW_STATUSES.map((status) => ({
      labels: { export: name, status },
      value: countWindows(detections, name, status, fromMs),
    })),
  );
}

function storageGauges({ folder, drop, backup }: GaugeSources): GaugeReader[] {
  const isBackedUp = backup.every_minutes > 0;
  const disks = { data: folder.root, drop, ...(isBackedUp && { backup: backup.folder }) };
  return [
    gauge('wirewatch_database_bytes', 'Size of a database file.', () => sizes(folder, ''), ['database']),
    gauge('wirewatch_wal_bytes', "Size of a database's write-ahead log.", () => sizes(folder, '-wal'), [
      'database',
    ]),
    gauge(
      'wirewatch_disk_free_bytes',
      'Free space for the appliance on the disk of a folder.',
      () => freeBytes(disks),
      ['folder'],
    ),
    gauge('wirewatch_verified_timestamp_seconds', 'When detections.db was last compared with its log.', () =>
      secondsOf(readScrubRecord(folder)?.at ?? null),
    ),
    gauge('wirewatch_verify_findings', 'Findings of that comparison, by kind.', () => findings(folder), [
      'kind',
    ]),
    gauge('wirewatch_backup_newest_timestamp_seconds', 'When the backup folder was last updated.', () =>
      // Without a schedule there is no value, even if an old backup folder exists.
      secondsOf(isBackedUp ? backedUpMs(backup.folder) : null),
    ),
  ];
}

function secondsOf(ms: number | null): number | null {
  return ms === null ? null : ms / SECOND_MS;
}

function findings(folder: DataFolder): Value[] {
  const found = readScrubRecord(folder)?.findings ?? [];
  const kinds = findingKinds().filter((kind) => FINDING_KINDS[kind].of !== 'secret');
  return kinds.map((kind) => ({
    labels: { kind },
    value: found.find((finding) => finding.kind === kind)?.count ?? 0,
  }));
}

function sizes(folder: DataFolder, suffix: '' | '-wal'): Value[] {
  const databases = ['detections', 'access'] as const;
  return databases.map((database) => ({
    labels: { database },
    value: sizeOf(`${folder[database]}${suffix}`),
  }));
}

/** A folder that does not exist has no value. */
async function freeBytes(folders: Readonly<Record<string, string>>): Promise<Value[]> {
  const disks = await disksOf(Object.values(folders));
  return Object.entries(folders).flatMap(([folder, path]) => {
    const disk = disks.find((one) => one.folder === path);
    return disk === undefined ? [] : [{ labels: { folder }, value: disk.free_bytes }];
  });
}
