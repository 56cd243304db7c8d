/**
 * How things stand, in one document. The commands `status`, `alert list` and `ingest status`, the overview of the
 * console and the metrics are views of it. Every part is bounded, however large the installation.
 *
 * A running appliance adds what only it knows: its alerts, its health, the file that it reads. Whatever cannot be read
 * is left out, since the document is needed most when something is broken.
 */
import { backedUpMs } from '../backup/backup-state.ts';
import { listeningUrl } from '../config/listening.ts';
import { type Config, enabledExports, holdRules } from '../config/load.ts';
import { counted } from '../counted.ts';
import { type ExportName, perExport } from '../detection/content-type.ts';
import { type AlertDocument, type AlertName, alertDocument, inOrder } from '../health/alert-texts.ts';
import { type Disk, diskFolders, disksOf } from '../health/disk.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { evaluateHealth, type Health } from '../health/rules.ts';
import type { ScrubFinding } from '../history/scrub-findings.ts';
import { readScrubRecord } from '../history/scrub-record.ts';
import { bytesOf, listSegments } from '../history/segment.ts';
import { isRecorded } from '../ingest/drop/finished-file.ts';
import { heldReason, releaseCommand } from '../ingest/drop/held-files.ts';
import { exportFilesIn, type HeldFile, heldOf } from '../ingest/drop/waiting-names.ts';
import {
  applyingFiles,
  type FileDocument,
  type FileRecord,
  fileDocument,
  filesNotApplied,
} from '../ingest/file-record.ts';
import { readPause } from '../ingest/pause.ts';
import { reasonOf } from '../refused.ts';
import { type Database, sizeOf } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import { isLocked } from '../store/locks.ts';
import { DAY_MS, formatMs, parseInstant } from '../time.ts';
import { VERSION } from '../version.ts';
import { heldBy } from '../windows/holding.ts';
import { findWindow } from '../windows/ledger.ts';
import { NOTHING_READ, type Reach, readReach } from '../windows/reach.ts';
import { type KeysStatus, readKeysStatus } from './followers.ts';
import type { Context } from './operation.ts';
import { type ChangedSettings, changedSettings } from './settings.ts';

export interface Status {
  readonly at: string;
  readonly version: string;
  readonly role: 'writer';
  readonly running: boolean;
  /** Where it listens, or would if it ran; null if that is not known. */
  readonly url: string | null;
  readonly health: {
    readonly status: Health['status'];
    readonly paused_since: string | null;
    /** The reason, in a sentence. */
    readonly reason: string;
  };
  readonly exports: Readonly<Record<ExportName, { readonly enabled: boolean } & Reach>>;
  /** Urgent ones first. While it does not run, only those that follow from the databases. */
  readonly alerts: readonly AlertDocument[];
  readonly ingest: {
    readonly drop: string;
    /** Export files in the drop folder that are not held, and those that were taken and have no record yet. */
    readonly waiting: number;
    /** Their names, in the order in which they are read: the first ones. */
    readonly waiting_files: readonly string[];
    /** What they wait for besides their turn, and what to do about it; null: nothing. */
    readonly waits_for: { readonly reason: string; readonly what_to_do: string } | null;
    /** Export files in the drop folder that wait for an operator. */
    readonly held: number;
    /** In order of their windows: the first ones. */
    readonly held_files: readonly HeldDocument[];
    /** The long file that is being read; null: there is none. */
    readonly reading: Reading | null;
    /** Backfills that are being applied. */
    readonly applying: readonly { file: string; rows: number; rows_applied: number }[];
  };
  /** Files of the last day that failed or were refused, the newest first, at most 20. */
  readonly not_applied: readonly NotApplied[];
  readonly disks: readonly Disk[];
  readonly database: {
    readonly bytes: number;
    readonly wal_bytes: number;
    readonly access_bytes: number;
    readonly access_wal_bytes: number;
    readonly log_bytes: number;
    /** Rows of all streams: versions of detections. */
    readonly versions: number;
    /** Why it cannot be read now: then exports, files and followers are empty. */
    readonly unreadable: string | null;
  };
  /** Null where none is scheduled. */
  readonly backup: {
    readonly folder: string;
    readonly newest_at: string | null;
  } | null;
  /** The last comparison of the database with its log; null: not yet. */
  readonly scrub: {
    readonly at: string;
    readonly findings: number;
    readonly found: readonly Pick<ScrubFinding, 'kind' | 'count'>[];
    readonly not_compared: string | null;
  } | null;
  readonly keys: KeysStatus['keys'];
  readonly followers: KeysStatus['followers'];
  /** Settings that would be others after a restart; null while it does not run. */
  readonly settings: ChangedSettings | null;
}

/** How much of a long file was read. */
export interface Reading {
  readonly file: string;
  readonly rows: number;
}

/** A file that is held until an operator resets or accepts its window. */
export interface HeldDocument {
  readonly file: string;
  readonly export: ExportName;
  readonly window_start: string;
  readonly reason: string;
  readonly what_to_do: string;
}

export interface NotApplied extends FileDocument {
  readonly what_to_do: string;
}

export type StatusSources = Pick<
  Context,
  'folder' | 'kind' | 'config' | 'access' | 'detections' | 'live' | 'nowMs'
>;

const WAITING_SHOWN_MAX = 3;
const HELD_SHOWN_MAX = 20;
const NOT_APPLIED_MAX = 20;
const COUNT_VERSIONS = 'SELECT sum(sequence) AS versions FROM stream WHERE removed = 0';
/** While one of these is open, no file is read, or some are not. */
const INGEST_WAITS: readonly AlertName[] = [
  'ingest stopped',
  'disk full',
  'database damaged',
  'drop folder not readable',
  'drop folder not writable',
  'file stuck',
];

export async function readStatus(sources: StatusSources): Promise<Status> {
  const { folder, config, live, nowMs } = sources;
  const running = live !== null || isLocked(folder.serveLock);
  const ledger = readLedger(sources);
  const alerts = live?.alerts ?? ledger.alerts;
  const pausedMs = orElse(null, () => readPause(sources.access()));
  const paused_since = pausedMs === null ? null : formatMs(pausedMs);
  const { exports, not_applied, applying, versions, unreadable } = ledger;
  const { waiting, held } = orElse({ waiting: [], held: [] }, () => droppedFiles(config, ledger.db));
  const waits_for = waiting.length === 0 ? null : waitsFor(running, paused_since, alerts);
  return {
    at: formatMs(nowMs),
    version: VERSION,
    role: 'writer',
    running,
    url: live?.url ?? listeningUrl(config.server),
    health: healthOf(sources, exports, alerts, paused_since),
    exports,
    alerts,
    ingest: {
      drop: config.ingest.drop,
      waiting: waiting.length,
      waiting_files: waiting.slice(0, WAITING_SHOWN_MAX),
      waits_for,
      held: held.length,
      held_files: held.slice(0, HELD_SHOWN_MAX).map(heldDocument),
      reading: live?.reading ?? null,
      applying,
    },
    not_applied,
    disks: await disksOf(diskFolders(config)),
    database: {
      bytes: sizeOf(folder.detections),
      wal_bytes: sizeOf(`${folder.detections}-wal`),
      access_bytes: sizeOf(folder.access),
      access_wal_bytes: sizeOf(`${folder.access}-wal`),
      log_bytes: orElse(0, () => bytesOf(listSegments(folder.log))),
      versions,
      unreadable,
    },
    backup: backupOf(config.backup),
    scrub: scrubOf(folder),
    ...readKeysStatus(sources, ledger.db),
    settings: live === null ? null : changedSettings(sources),
  };
}

interface Ledger extends Pick<Status, 'exports' | 'not_applied' | 'alerts'> {
  readonly db: Database | null;
  readonly applying: Status['ingest']['applying'];
  readonly versions: number;
  readonly unreadable: string | null;
}

/** What detections.db says. If it is damaged, the rest is still useful; an alert reports the damage. */
function readLedger({ config, detections, nowMs }: StatusSources): Ledger {
  const enabled = enabledExports(config);
  const exportsOf = (reach: (name: ExportName) => Reach) =>
    perExport((name) => ({ enabled: enabled.has(name), ...reach(name) }));
  const nothing = { exports: exportsOf(() => NOTHING_READ), not_applied: [], applying: [], versions: 0 };
  try {
    const db = detections();
    if (db === null) return { db, ...nothing, alerts: [], unreadable: null };
    return {
      db,
      exports: exportsOf((name) => readReach(db, name, nowMs)),
      not_applied: filesNotApplied(db, nowMs - DAY_MS, NOT_APPLIED_MAX).map((file) => notApplied(db, file)),
      applying: applyingFiles(db).map(({ name, report, rows_applied }) => ({
        file: name,
        rows: report.rows ?? 0,
        rows_applied,
      })),
      versions: db.prepare<[], { versions: number | null }>(COUNT_VERSIONS).get()?.versions ?? 0,
      alerts: inOrder(ledgerAlerts(db, enabled, nowMs)).map(alertDocument),
      unreadable: null,
    };
  } catch (error) {
    const name = isDamage(error) ? 'database damaged' : 'database not readable';
    const alert = { name, of: '', since: nowMs, detail: `detections.db: ${reasonOf(error)}` } as const;
    return { db: null, ...nothing, alerts: [alertDocument(alert)], unreadable: reasonOf(error) };
  }
}

/** Export files in the drop folder: the names of those that are read in their turn, and those that are held. */
function droppedFiles(config: Config, db: Database | null): { waiting: string[]; held: HeldFile[] } {
  const isKnown = (number: number, name: string) => db !== null && isRecorded(db, number, name);
  const dropped = exportFilesIn(config.ingest.drop, isKnown);
  const held = db === null ? [] : heldOf(dropped, heldBy(db, holdRules(config)));
  const heldPaths = new Set(held.map(({ path }) => path));
  const waiting = dropped.filter(({ path }) => !heldPaths.has(path)).map(({ file }) => file.name);
  return { waiting, held };
}

function heldDocument(held: HeldFile): HeldDocument {
  const { name, export: exportName, window_start } = held.file;
  return { file: name, export: exportName, window_start: formatMs(window_start), ...heldReason(held) };
}

function waitsFor(
  running: boolean,
  pausedSince: string | null,
  alerts: Status['alerts'],
): Status['ingest']['waits_for'] {
  if (pausedSince !== null)
    return {
      reason: `ingest has been paused since ${pausedSince}`,
      what_to_do: 'Resume it with: wirewatch ingest resume',
    };
  if (!running) return { reason: 'Wirewatch is not running', what_to_do: 'Start it with: wirewatch serve' };
  const alert = alerts.find(({ name }) => INGEST_WAITS.includes(name));
  return alert === undefined
    ? null
    : { reason: `${alert.name}: ${alert.detail}`, what_to_do: alert.what_to_do };
}

function notApplied(db: Database, record: FileRecord): NotApplied {
  return { ...fileDocument(record), what_to_do: whatToDo(db, record) };
}

function whatToDo(db: Database, { name, export: exportName, window_start, outcome }: FileRecord): string {
  if (outcome === 'refused')
    return 'Drop it again under a valid name, or delete it from refused/ if it was dropped by mistake.';
  const window =
    exportName === null || window_start === null ? undefined : findWindow(db, exportName, window_start);
  const isOpen = window?.status === 'failed' || window?.status === 'abandoned';
  const release =
    window !== undefined && isOpen
      ? releaseCommand(window.export, window.status, formatMs(window.window_start))
      : null;
  return release === null
    ? `Fix the file and drop it again. For its errors, run: wirewatch ingest explain ${name}`
    : `Fix the file, drop it again, and run: ${release}`;
}

/** That of a running appliance, else by the same rules. */
function healthOf(
  { config, live, nowMs }: StatusSources,
  exports: Status['exports'],
  alerts: Status['alerts'],
  paused_since: string | null,
): Status['health'] {
  const newest_done = perExport((name) => parseInstant(exports[name].newest_done ?? ''));
  const situation = { newest_done, enabled: enabledExports(config), is_paused: paused_since !== null };
  const { status } = live?.health ?? evaluateHealth(situation, alerts, nowMs);
  return { status, paused_since, reason: reasonOfHealth(status, alerts, paused_since) };
}

function reasonOfHealth(
  status: Health['status'],
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

/** An alert reports a folder that cannot be read. */
function backupOf({ folder, every_minutes }: StatusSources['config']['backup']): Status['backup'] {
  if (every_minutes === 0) return null;
  const atMs = orElse(null, () => backedUpMs(folder));
  return { folder, newest_at: atMs === null ? null : formatMs(atMs) };
}

function scrubOf(folder: StatusSources['folder']): Status['scrub'] {
  const record = readScrubRecord(folder);
  if (record === null) return null;
  const found = record.findings.map(({ kind, count }) => ({ kind, count }));
  const findings = found.reduce((sum, { count }) => sum + count, 0);
  return { at: formatMs(record.at), findings, found, not_compared: record.not_compared };
}

function orElse<Value>(otherwise: Value, read: () => Value): Value {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
