/**
 * Monitors the appliance from its main thread: which alerts are open, and its health.
 *
 * It checks once a second, and for every health response, so that both are current. The ledger is read again when the
 * database has changed; alerts that no database records are kept as conditions.
 */
import { statSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import type { AccessReader } from '../auth/access-reader.ts';
import { EXPORT_NAMES, perExport } from '../detection/content-type.ts';
import { readPause } from '../ingest/operator-pause.ts';
import type { Logger } from '../logger.ts';
import { paced } from '../pace.ts';
import { isErrorCode, reasonOf } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import type { Role } from '../store/role.ts';
import { formatMs, MINUTE_MS, type Now, SECOND_MS } from '../time.ts';
import { type HoldRules, newestDone } from '../windows/ledger.ts';
import type { AlertCommand } from './alert-command.ts';
import type { Conditions } from './alert-conditions.ts';
import { type Alert, alertDocument, alertKey, inOrder } from './alert-texts.ts';
import { type AskedDisk, askDisks, type DiskFolders, fillingDisk } from './disk.ts';
import { ledgerAlerts } from './ledger-alerts.ts';
import { evaluateHealth, type Health, type NewestDone, stalledAlerts } from './rules.ts';

export type HealthSource = Pick<Monitor, 'health' | 'noteFault'>;

export interface MonitorOptions {
  readonly detections: { readonly path: string; readonly reader: () => Database };
  readonly access: Pick<AccessReader, 'read' | 'check'>;
  readonly conditions: Conditions;
  readonly rules: HoldRules;
  readonly folders: DiskFolders;
  readonly alertCommand: AlertCommand;
  readonly role: () => Role;
  readonly now: Now;
  readonly log: Logger;
}

const CHECK_EVERY_MS = paced(SECOND_MS);
const STALL_CHECK_EVERY_MS = 5 * MINUTE_MS;
/** Some alerts open and close with time, without a change of the database. */
const LEDGER_EVERY_MS = MINUTE_MS;
const DISK_EVERY_MS = paced(30 * SECOND_MS);
const PROBE_EVERY_MS = paced(5 * SECOND_MS);
/** NTP sets a clock back by less. */
const CLOCK_TOLERANCE_MS = 5 * SECOND_MS;

const NOTHING_DONE: NewestDone = perExport(() => null);

/** What was read of the database: by which connection, of which file, at which of its versions. */
interface Ledger {
  readonly reader: Database;
  readonly fileId: string;
  readonly version: unknown;
  readonly readAt: number;
  readonly newest_done: NewestDone;
  readonly alerts: readonly Alert[];
}

export type Monitor = ReturnType<typeof createMonitor>;

/** Checks at once, then every second until it is closed. */
export function createMonitor(options: MonitorOptions) {
  const { detections, access, conditions, rules, folders, alertCommand, role, now, log } = options;
  /** What was read last: its alerts stay open until it can be read again. */
  let ledger: Ledger | null = null;
  let stalled: readonly Alert[] = [];
  let stallCheckedAt = Number.NEGATIVE_INFINITY;
  let probedAt = Number.NEGATIVE_INFINITY;
  // Not before the second check: statfs would delay the start.
  let disksCheckedAt = now() - DISK_EVERY_MS + CHECK_EVERY_MS;
  /** What each disk answered last. */
  let disks: readonly AskedDisk[] = [];
  let isPaused = false;
  let reportedOpen = new Map<string, Alert>();

  function snapshot() {
    const nowMs = now();
    checkAccess();
    const isRead = readLedger(nowMs);
    const newest_done = ledger?.newest_done ?? NOTHING_DONE;
    const situation = { newest_done, enabled: rules.enabled_exports, is_paused: isPaused };
    const isCheck = isDue(stallCheckedAt, STALL_CHECK_EVERY_MS, nowMs);
    if (isCheck) stallCheckedAt = nowMs;
    const open = new Set(stalled.map(({ of }) => of));
    stalled = stalledAlerts(situation, nowMs).filter(({ of }) => (isCheck && isRead) || open.has(of));
    conditions.set('clock wrong', clockProblem(newest_done, nowMs));
    const alerts = [...conditions.open(), ...stalled, ...(ledger?.alerts ?? [])];
    return { ...situation, newest_done: isRead ? newest_done : NOTHING_DONE, alerts };
  }

  const alerts = () => inOrder(snapshot().alerts);

  /** Checks, and reports what has opened and closed: in the log, and to the alert command. */
  function report(): void {
    const nowMs = now();
    if (isDue(probedAt, PROBE_EVERY_MS, nowMs)) {
      probedAt = nowMs;
      probeFile();
    }
    checkDisks(nowMs);
    const open = new Map(alerts().map((alert) => [alertKey(alert), alert]));
    for (const [key, alert] of reportedOpen) {
      if (open.has(key)) continue;
      log.info({ alert: alert.name, since: formatMs(alert.since) }, 'alert closed');
      alertCommand.run('closed', alertDocument(alert));
    }
    for (const [key, alert] of open) {
      if (reportedOpen.has(key)) continue;
      const document = alertDocument(alert);
      const { name, page_worthy, detail, what_to_do } = document;
      log.warn({ alert: name, page_worthy, detail, what_to_do }, 'alert opened');
      alertCommand.run('opened', document);
    }
    reportedOpen = open;
  }

  /** Called with each error of a request: damage opens an alert. */
  function noteFault(error: unknown): void {
    if (!isDamage(error) || conditions.has('database damaged')) return;
    conditions.set('database damaged', `detections.db: ${reasonOf(error)}`);
  }

  function checkAccess(): void {
    try {
      isPaused = access.read(readPause) !== null;
      access.check();
      conditions.set('keys cannot be checked', null);
    } catch (error) {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      conditions.set('keys cannot be checked', reasonOf(cause));
    }
  }

  /** @returns false if the database cannot or must not be read */
  function readLedger(nowMs: number): boolean {
    if (conditions.has('database damaged')) return false;
    try {
      const reader = detections.reader();
      const known = ledger?.reader === reader ? ledger : null;
      const version = reader.pragma('data_version', { simple: true });
      if (known === null || known.version !== version || isDue(known.readAt, LEDGER_EVERY_MS, nowMs))
        ledger = {
          reader,
          fileId: known?.fileId ?? fileId(detections.path),
          version,
          readAt: nowMs,
          newest_done: newestDoneOf(reader),
          alerts: ledgerAlerts(reader, rules, nowMs),
        };
      conditions.set('database not readable', null);
      return true;
    } catch (error) {
      noteFault(error);
      // Where another machine took over, it is closed for good.
      if (!isDamage(error) && role() !== 'superseded')
        conditions.set('database not readable', reasonOf(error));
      return false;
    }
  }

  /** Open connections keep reading pages that they have in memory: only a new one reads the file as it is now. */
  function probeFile(): void {
    const known = ledger;
    if (conditions.has('database damaged') || known === null) return;
    try {
      if (detections.reader() !== known.reader) return;
      if (fileId(detections.path) !== known.fileId) {
        conditions.set('database damaged', `${detections.path}: the file was replaced by another`);
        return;
      }
      using db = openDatabase(detections.path, 'read');
      newestDoneOf(db);
    } catch (error) {
      if (isErrorCode(error, 'ENOENT'))
        conditions.set('database damaged', `${detections.path}: the file is gone`);
      else noteFault(error);
    }
  }

  function checkDisks(nowMs: number): void {
    // While a disk is full, its free space must be current.
    if (!conditions.has('disk full') && !isDue(disksCheckedAt, DISK_EVERY_MS, nowMs)) return;
    disksCheckedAt = nowMs;
    void askDisks(folders).then((asked) => {
      disks = asked.map((disk, at) => (disk === undefined ? disks[at] : disk));
      conditions.set('disk getting full', fillingDisk(disks));
    });
    void unwritable(folders.data, nowMs).then((why) => conditions.set('data folder not writable', why));
  }

  report();
  const timer = setInterval(report, CHECK_EVERY_MS);
  return {
    alerts,
    health(): Health {
      const { alerts, ...situation } = snapshot();
      return evaluateHealth(situation, alerts, now(), role());
    },
    noteFault,
    /** Has the disks checked with the next check, as after a write that failed. */
    suspectDisks() {
      disksCheckedAt = Number.NEGATIVE_INFINITY;
    },
    close() {
      clearInterval(timer);
      alertCommand.close();
    },
  };
}

/**
 * Sets the times of the folder: a file system that went read-only after an error may refuse nothing less.
 * @returns the file system's reason; null: it can be written, or no folder is given
 */
async function unwritable(folder: string | undefined, nowMs: number): Promise<string | null> {
  if (folder === undefined) return null;
  const time = nowMs / SECOND_MS;
  return utimes(folder, time, time).then(
    () => null,
    (error) => `${folder}: ${reasonOf(error)}`,
  );
}

const newestDoneOf = (db: Database) => perExport((name) => newestDone(db, name));

/** The detail of "clock wrong"; null if no error is known. Why the ends of windows tell: windows/ledger.ts. */
function clockProblem(ends: NewestDone, nowMs: number): string | null {
  const newestEndMs = Math.max(...EXPORT_NAMES.map((name) => ends[name] ?? 0));
  if (nowMs >= newestEndMs - CLOCK_TOLERANCE_MS) return null;
  return `the clock shows ${formatMs(nowMs)}, but the newest finished window ended at ${formatMs(newestEndMs)}`;
}

/** Also due if the clock was set back. */
const isDue = (lastMs: number, everyMs: number, nowMs: number) => nowMs - lastMs >= everyMs || nowMs < lastMs;

function fileId(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}
