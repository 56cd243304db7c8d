/**
 * How things stand at the moment of asking: alerts, windows, how far exports were read, sizes, connections. Read from what the
 * appliance has open anyway; each look is bounded, however long the appliance has been at work.
 */
import { stat, statfs } from 'node:fs/promises';
import { backupTimes } from '../backup/branch.ts';
import type { Settings } from '../config/schema.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { ALERTS, isPageWorthy } from '../health/alerts.ts';
import type { Monitor } from '../health/monitor.ts';
import { FINDING_KINDS, findingKinds } from '../history/scrub-findings.ts';
import { readScrubRecord, type ScrubRecord } from '../history/scrub-record.ts';
import type { DailyRows } from '../limits/daily-rows.ts';
import type { KeyUses } from '../limits/key-uses.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { DAY_MS, type Now, parseInstant, SECOND_MS } from '../time.ts';
import { countWindows, WINDOW_STATUSES } from '../windows/ledger.ts';
import { accountFacts } from './account-gauges.ts';

export interface StandingSources {
  readonly monitor: Monitor;
  /** A reader on `detections.db`; throws while it is not there yet. */
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

/** One gauge, and how it is read. */
export interface Fact {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  read(): Value[] | Promise<Value[]>;
}

/** As far back as clients are told of gaps; more would take longer with every year. */
const WINDOWS_MS = 90 * DAY_MS;

const NO_LABELS = {};

export function facts(sources: StandingSources): Fact[] {
  return [...stateFacts(sources), ...storageFacts(sources), ...accountFacts(sources)];
}

function stateFacts({ monitor, connections, enabled, certificateExpiresMs }: StandingSources): Fact[] {
  return [
    {
      name: 'wirewatch_healthy',
      help: 'Whether GET /v1/health answers 200.',
      labels: [],
      read: () => [{ labels: NO_LABELS, value: monitor.health().status === 'ok' ? 1 : 0 }],
    },
    {
      name: 'wirewatch_ingest_paused',
      help: 'Whether ingest is paused on purpose.',
      labels: [],
      read: () => [{ labels: NO_LABELS, value: monitor.health().alerts.paused }],
    },
    {
      name: 'wirewatch_alerts_open',
      help: 'Open alerts, by name; page_worthy is true for those that need someone now.',
      labels: ['alert', 'page_worthy'],
      read: () => openAlerts(monitor),
    },
    {
      name: 'wirewatch_newest_done_timestamp_seconds',
      help: 'End of the newest finished window of an export, which is what as_of is made from.',
      labels: ['export'],
      read: () => newestDone(monitor, enabled),
    },
    {
      name: 'wirewatch_connections',
      help: 'Open connections to the API.',
      labels: [],
      read: () => [{ labels: NO_LABELS, value: connections() }],
    },
    {
      name: 'wirewatch_certificate_expires_timestamp_seconds',
      help: 'When the TLS certificate in use expires.',
      labels: [],
      read: () => timestamp(certificateExpiresMs()),
    },
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

/** An export that has finished nothing has no value, rather than one of 1970. */
function newestDone(monitor: Monitor, enabled: ReadonlySet<ExportName>): Value[] {
  const { exports } = monitor.health();
  return [...enabled].flatMap((name) => {
    const text = exports[name].newest_done;
    const ms = text === null ? null : parseInstant(text);
    return ms === null ? [] : [{ labels: { export: name }, value: ms / SECOND_MS }];
  });
}

function storageFacts({ monitor, detections, folder, drop, backup, now }: StandingSources): Fact[] {
  return [
    {
      name: 'wirewatch_windows',
      help: 'Export windows of the last 90 days, by status.',
      labels: ['export', 'status'],
      read: () => (monitor.isDamaged() ? [] : windows(detections(), now() - WINDOWS_MS)),
    },
    {
      name: 'wirewatch_database_bytes',
      help: 'Size of a database file.',
      labels: ['database'],
      read: () => sizes(folder, ''),
    },
    {
      name: 'wirewatch_wal_bytes',
      help: "Size of a database's write-ahead log.",
      labels: ['database'],
      read: () => sizes(folder, '-wal'),
    },
    {
      name: 'wirewatch_disk_free_bytes',
      help: 'Room that is left for the appliance on the disk of a folder.',
      labels: ['folder'],
      read: () =>
        freeBytes({ data: folder.root, drop, ...(backup.every_minutes > 0 && { backup: backup.folder }) }),
    },
    {
      name: 'wirewatch_verified_timestamp_seconds',
      help: 'When detections.db was last compared with its log.',
      labels: [],
      read: () => timestamp(readScrubRecord(folder)?.at ?? null),
    },
    {
      name: 'wirewatch_verify_findings',
      help: 'What was found then, by kind.',
      labels: ['kind'],
      read: () => findings(readScrubRecord(folder)),
    },
    {
      name: 'wirewatch_backup_newest_timestamp_seconds',
      help: 'When the backup folder was last brought up to date.',
      labels: [],
      read: () => backupTime(backup, 'backedUpMs'),
    },
    {
      name: 'wirewatch_backup_rehearsed_timestamp_seconds',
      help: 'When a restore from the backup folder was last rehearsed.',
      labels: [],
      read: () => backupTime(backup, 'rehearsedMs'),
    },
  ];
}

function windows(detections: Database, fromMs: number): Value[] {
  return EXPORT_NAMES.flatMap((name) =>
    WINDOW_STATUSES.map((status) => ({
      labels: { export: name, status },
      value: countWindows(detections, name, status, fromMs),
    })),
  );
}

/** No value where there is no such time. */
function timestamp(ms: number | null): Value[] {
  return ms === null ? [] : [{ labels: NO_LABELS, value: ms / SECOND_MS }];
}

function findings(record: ScrubRecord | null): Value[] {
  return findingKinds()
    .filter((kind) => FINDING_KINDS[kind].of !== 'secret')
    .map((kind) => ({
      labels: { kind },
      value: record?.findings.find((finding) => finding.kind === kind)?.count ?? 0,
    }));
}

/** A folder is left from a schedule that has ended, too: it has no value, since nothing new will come. */
function backupTime(
  { folder, every_minutes }: StandingSources['backup'],
  of: 'backedUpMs' | 'rehearsedMs',
): Value[] {
  return timestamp(every_minutes === 0 ? null : backupTimes(folder)[of]);
}

async function sizes(folder: DataFolder, suffix: '' | '-wal'): Promise<Value[]> {
  const databases = [
    ['detections', folder.detections],
    ['access', folder.access],
  ] as const;
  return Promise.all(
    databases.map(async ([database, path]) => {
      const bytes = await stat(`${path}${suffix}`).then(
        ({ size }) => size,
        () => 0,
      );
      return { labels: { database }, value: bytes };
    }),
  );
}

/** A folder that is not there has no value. */
async function freeBytes(folders: Readonly<Record<string, string>>): Promise<Value[]> {
  const values = Object.entries(folders).map(async ([folder, path]) => {
    const disk = await statfs(path).catch(() => null);
    return disk === null ? [] : [{ labels: { folder }, value: disk.bavail * disk.bsize }];
  });
  return (await Promise.all(values)).flat();
}
