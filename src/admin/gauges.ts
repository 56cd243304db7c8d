/**
 * The gauges of /metrics: alerts, windows, sizes, connections. They are views of the status document, which the
 * operations thread reads once for each answer; alerts and health are those that the monitor has in memory.
 */
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { ALERTS, isPageWorthy } from '../health/alert-texts.ts';
import type { Monitor } from '../health/monitor.ts';
import { FINDING_KINDS, findingKinds } from '../history/scrub-findings.ts';
import type { DailyRows } from '../limits/daily-rows.ts';
import type { KeyUses } from '../limits/key-uses.ts';
import type { Status } from '../operations/status.ts';
import type { DataFolder } from '../store/folder.ts';
import { type Now, parseInstant, SECOND_MS } from '../time.ts';

export interface GaugeSources {
  readonly monitor: Monitor;
  /** Null if it cannot be read now. */
  readonly status: () => Promise<Status | null>;
  readonly folder: Pick<DataFolder, 'access' | 'usage'>;
  readonly dailyRows: Pick<DailyRows, 'used'>;
  readonly keyUses: Pick<KeyUses, 'all'>;
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

/** All gauges of one answer to /metrics begin to read in the same turn of the event loop. */
export function onceATurn<Result>(read: () => Result): () => Result {
  let known: { readonly value: Result } | null = null;
  return () => {
    if (known === null) {
      known = { value: read() };
      queueMicrotask(() => {
        known = null;
      });
    }
    return known.value;
  };
}

type View = (status: Status) => Reading;

/** @param sources with a status that all gauges of one answer share */
export function gauges(sources: GaugeSources): GaugeReader[] {
  const view = (name: string, help: string, read: View, labels: readonly string[] = []) =>
    gauge(name, help, () => sources.status().then((status) => status && read(status)), labels);
  return [...liveGauges(sources), ...stateGauges(view), ...storageGauges(view)];
}

function liveGauges({ monitor, connections, certificateExpiresMs }: GaugeSources): GaugeReader[] {
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
      () => newestDone(monitor),
      ['export'],
    ),
    gauge('wirewatch_connections', 'Open connections to the API.', connections),
    gauge(
      'wirewatch_certificate_expires_timestamp_seconds',
      'When the TLS certificate in use expires.',
      () => {
        const ms = certificateExpiresMs();
        return ms === null ? null : ms / SECOND_MS;
      },
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

/** An export without a finished window, or that is switched off, has no value. */
function newestDone(monitor: Monitor): Value[] {
  const { exports } = monitor.health();
  return EXPORT_NAMES.flatMap((name) => {
    const value = secondsOf(exports[name].newest_done);
    return value === null ? [] : [{ labels: { export: name }, value }];
  });
}

type MakeView = (name: string, help: string, read: View, labels?: readonly string[]) => GaugeReader;

function stateGauges(view: MakeView): GaugeReader[] {
  return [
    view('wirewatch_windows', 'Export windows of the last 90 days, by status.', windows, [
      'export',
      'status',
    ]),
    view(
      'wirewatch_follower_lag_seconds',
      'Age of the oldest change that a key which follows the stream has not been given.',
      ({ followers }) =>
        followers.map(({ account, key_id, seconds_behind }) => ({
          labels: { account, key_id },
          value: seconds_behind,
        })),
      ['account', 'key_id'],
    ),
  ];
}

function windows({ exports, database }: Status): Reading {
  if (database.unreadable !== null) return null;
  return EXPORT_NAMES.flatMap((name) => {
    const { windows_done: done, not_read } = exports[name];
    const { failed, missing, abandoned } = not_read;
    return Object.entries({ done, failed, missing, abandoned }).map(([status, value]) => ({
      labels: { export: name, status },
      value,
    }));
  });
}

function storageGauges(view: MakeView): GaugeReader[] {
  const byDatabase = (detections: number, access: number): Value[] => [
    { labels: { database: 'detections' }, value: detections },
    { labels: { database: 'access' }, value: access },
  ];
  return [
    view(
      'wirewatch_database_bytes',
      'Size of a database file.',
      ({ database }) => byDatabase(database.bytes, database.access_bytes),
      ['database'],
    ),
    view(
      'wirewatch_wal_bytes',
      "Size of a database's write-ahead log.",
      ({ database }) => byDatabase(database.wal_bytes, database.access_wal_bytes),
      ['database'],
    ),
    view(
      'wirewatch_disk_free_bytes',
      'Free space for the appliance on the disk of a folder.',
      ({ disks }) => disks.map(({ of, free_bytes }) => ({ labels: { folder: of }, value: free_bytes })),
      ['folder'],
    ),
    view(
      'wirewatch_verified_timestamp_seconds',
      'When detections.db was last compared with its log.',
      (status) => secondsOf(status.scrub?.at),
    ),
    view('wirewatch_verify_findings', 'Findings of that comparison, by kind.', findings, ['kind']),
    view(
      'wirewatch_backup_newest_timestamp_seconds',
      'When the backup folder was last updated.',
      ({ backup }) => secondsOf(backup?.newest_at),
    ),
  ];
}

function secondsOf(time: string | null | undefined): number | null {
  const ms = parseInstant(time ?? '');
  return ms === null ? null : ms / SECOND_MS;
}

function findings({ scrub }: Status): Value[] {
  const kinds = findingKinds().filter((kind) => FINDING_KINDS[kind].of !== 'secret');
  return kinds.map((kind) => ({
    labels: { kind },
    value: scrub?.found.find((finding) => finding.kind === kind)?.count ?? 0,
  }));
}
