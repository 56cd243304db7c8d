/**
 * Watches over the appliance from its main thread: which alerts are open, and what health is.
 *
 * It looks once a second, and again for every answer about health, so that both are of this moment. What the
 * databases tell is read anew when they have changed; what stands in none is kept as conditions.
 */
import { statSync } from 'node:fs';
import { CONTENT_TYPE_OF_EXPORT, type ExportName } from '../detection/content-type.ts';
import type { Logger } from '../log.ts';
import { paced } from '../pace.ts';
import { readStreamHead } from '../query/as-of.ts';
import { isErrorCode, reasonOf } from '../refused.ts';
import { type Database, openReader, type Statement } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import { formatMs, MINUTE_MS, type Now, SECOND_MS } from '../time.ts';
import type { AlertCommand } from './alert-command.ts';
import type { Conditions } from './alert-conditions.ts';
import { writeAlertFile } from './alert-file.ts';
import { type Alert, alertDocument, inOrder, isPageWorthy } from './alerts.ts';
import { fillingDisk } from './disk.ts';
import { ledgerAlerts } from './ledger-alerts.ts';
import type { PauseReader } from './pause-reader.ts';
import { type Health, judgeHealth, type NewestDone, stalledAlert, stalledExports } from './rules.ts';

export interface HealthSource {
  /** As it is at this moment; never throws. */
  health(): Health;
  /** Told of each fault that a request met. */
  noteFault(error: unknown): void;
  /** Nothing is served from a database that is damaged. */
  isDamaged(): boolean;
}

export interface Monitor extends HealthSource {
  /** Every alert that is open, in order, as of this moment. */
  alerts(): Alert[];
  close(): void;
}

export interface MonitorOptions {
  readonly detections: { readonly path: string; readonly reader: () => Database };
  readonly pause: PauseReader;
  /** @throws when keys cannot be checked */
  readonly checkKeys: () => void;
  readonly conditions: Conditions;
  readonly enabled: ReadonlySet<ExportName>;
  /** Folders whose disks must not fill. */
  readonly folders: readonly string[];
  /** Called whenever the disks were looked at: there may be room again for what was given up. */
  readonly onDisksSeen: () => void;
  /** The file that `wirewatch alert list` reads. */
  readonly alertFile: string;
  readonly alertCommand: AlertCommand;
  readonly now: Now;
  readonly log: Logger;
}

const LOOK_EVERY_MS = paced(SECOND_MS);
/** Contract: GET /v1/health, rule 2. */
const STALL_CHECK_EVERY_MS = 5 * MINUTE_MS;
/** Alerts end with time, too, when nothing changes. */
const LEDGER_EVERY_MS = MINUTE_MS;
const DISK_EVERY_MS = paced(30 * SECOND_MS);
const PROBE_EVERY_MS = paced(5 * SECOND_MS);
/** Clocks that are kept are set back by so little. */
const CLOCK_TOLERANCE_MS = 5 * SECOND_MS;

const SELECT_VERSION = 'PRAGMA data_version';
const NOTHING_DONE: NewestDone = { newswire: null, imagewire: null };

/** Looks at once, then every second until it is closed. */
export function startMonitor(options: MonitorOptions): Monitor {
  const looker = new Looker(options);
  looker.tell();
  const looking = setInterval(() => looker.tell(), LOOK_EVERY_MS);
  return {
    health: () => looker.health(),
    alerts: () => inOrder(looker.look().alerts),
    noteFault: (error) => looker.noteFault(error),
    isDamaged: () => options.conditions.has('database damaged'),
    close() {
      clearInterval(looking);
      options.pause.close();
      options.alertCommand.close();
    },
  };
}

interface Sight {
  readonly newest_done: NewestDone;
  readonly is_paused: boolean;
  readonly alerts: readonly Alert[];
}

/** What the database says, as of the version of it that was read. */
interface Ledger {
  readonly version: number | undefined;
  readonly read_at: number;
  readonly newest_done: NewestDone;
  readonly alerts: readonly Alert[];
}

class Looker {
  readonly #options: MonitorOptions;
  #version: Statement<number> | null = null;
  #fileId: string | null = null;
  #fileState = '';
  #ledger: Ledger | null = null;
  #stalled: ReadonlySet<ExportName> = new Set();
  #stallCheckedAt = Number.NEGATIVE_INFINITY;
  #probedAt = Number.NEGATIVE_INFINITY;
  #diskLookedAt: number;
  #isPaused = false;
  #told = '';
  #toldOpen = new Map<string, Alert>();

  constructor(options: MonitorOptions) {
    this.#options = options;
    // First with the second look: asking the system would hold up the start.
    this.#diskLookedAt = options.now() - DISK_EVERY_MS + LOOK_EVERY_MS;
  }

  health(): Health {
    const { enabled, now } = this.#options;
    const { alerts, newest_done, is_paused } = this.look();
    return judgeHealth({ newest_done, enabled, is_paused }, alerts, now());
  }

  look(): Sight {
    const { conditions, enabled, now } = this.#options;
    const nowMs = now();
    this.#lookAtAccess();
    const ledger = this.#readLedger(nowMs);
    const newest_done = ledger?.newest_done ?? NOTHING_DONE;
    const situation = { newest_done, enabled, is_paused: this.#isPaused };
    const isCheck = isDue(this.#stallCheckedAt, STALL_CHECK_EVERY_MS, nowMs);
    if (isCheck) this.#stallCheckedAt = nowMs;
    this.#stalled = stalledExports(situation, { before: this.#stalled, isCheck }, nowMs);
    conditions.set('clock wrong', clockFault(newest_done, nowMs));
    const stalled = [...this.#stalled].map((name) => stalledAlert(name, newest_done[name] ?? 0));
    const alerts = [...conditions.open(), ...stalled, ...(ledger?.alerts ?? [])];
    return { newest_done, is_paused: this.#isPaused, alerts };
  }

  /** Looks, and says on the log and in the file what has opened and closed since. */
  tell(): void {
    const { alertFile, log, now } = this.#options;
    const nowMs = now();
    if (isDue(this.#probedAt, PROBE_EVERY_MS, nowMs)) {
      this.#probedAt = nowMs;
      this.#probeFile();
    }
    this.#lookAtDisks(nowMs);
    const alerts = inOrder(this.look().alerts);
    const documents = alerts.map(alertDocument);
    const text = JSON.stringify(documents);
    if (text === this.#told) return;
    this.#told = text;
    this.#tellLog(alerts);
    try {
      writeAlertFile(alertFile, documents);
    } catch (error) {
      // Tried again with the next change, and at the next look.
      this.#told = '';
      if (!this.#options.conditions.has('disk full')) log.debug({ err: error }, 'cannot write alerts.json');
    }
  }

  noteFault(error: unknown): void {
    const { conditions } = this.#options;
    if (!isDamage(error) || conditions.has('database damaged')) return;
    conditions.set('database damaged', `detections.db: ${reasonOf(error)}`);
  }

  #tellLog(alerts: readonly Alert[]): void {
    const { log, alertCommand } = this.#options;
    const open = new Map(alerts.map((alert) => [keyOf(alert), alert]));
    for (const [key, alert] of open) {
      if (this.#toldOpen.has(key)) continue;
      const document = alertDocument(alert);
      const { name, detail, what_to_do } = document;
      log.warn({ alert: name, page_worthy: isPageWorthy(alert), detail, what_to_do }, 'alert opened');
      alertCommand.run('opened', document);
    }
    for (const [key, alert] of this.#toldOpen) {
      if (open.has(key)) continue;
      log.info({ alert: alert.name, since: formatMs(alert.since) }, 'alert closed');
      alertCommand.run('closed', alertDocument(alert));
    }
    this.#toldOpen = open;
  }

  #lookAtAccess(): void {
    const { conditions, pause, checkKeys } = this.#options;
    try {
      this.#isPaused = pause.isPaused();
      checkKeys();
      conditions.set('keys cannot be checked', null);
    } catch (error) {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      conditions.set('keys cannot be checked', reasonOf(cause));
    }
  }

  /** @returns null when the database cannot be read, or must not be */
  #readLedger(nowMs: number): Ledger | null {
    const { conditions, detections, enabled } = this.#options;
    if (conditions.has('database damaged')) return null;
    try {
      const reader = detections.reader();
      this.#version ??= reader.prepare<unknown[], number>(SELECT_VERSION).pluck();
      this.#fileId ??= fileId(detections.path);
      const version = this.#version.get();
      const known = this.#ledger;
      const isCurrent =
        known !== null && known.version === version && !isDue(known.read_at, LEDGER_EVERY_MS, nowMs);
      if (!isCurrent) {
        this.#ledger = {
          version,
          read_at: nowMs,
          newest_done: newestDone(reader),
          alerts: ledgerAlerts(reader, enabled, nowMs),
        };
      }
      conditions.set('database not readable', null);
      return this.#ledger;
    } catch (error) {
      this.#ledger = null;
      this.noteFault(error);
      if (!isDamage(error)) conditions.set('database not readable', reasonOf(error));
      return null;
    }
  }

  /** Open connections go on reading what they have in memory: only a new one sees what the file has become. */
  #probeFile(): void {
    const { conditions, detections } = this.#options;
    if (conditions.has('database damaged') || this.#fileId === null) return;
    try {
      if (fileId(detections.path) !== this.#fileId) {
        conditions.set('database damaged', `${detections.path}: the file was replaced by another`);
        return;
      }
      const state = fileState(detections.path);
      if (state === this.#fileState) return;
      const db = openReader(detections.path);
      try {
        newestDone(db);
        this.#fileState = state;
      } finally {
        db.close();
      }
    } catch (error) {
      if (isGone(error)) conditions.set('database damaged', `${detections.path}: the file is gone`);
      else this.noteFault(error);
    }
  }

  #lookAtDisks(nowMs: number): void {
    const { conditions, folders, onDisksSeen } = this.#options;
    // While a disk is full, what is said of the room on it must be of this moment.
    if (!conditions.has('disk full') && !isDue(this.#diskLookedAt, DISK_EVERY_MS, nowMs)) return;
    this.#diskLookedAt = nowMs;
    void fillingDisk(folders).then((detail) => {
      conditions.set('disk getting full', detail);
      onDisksSeen();
    });
  }
}

function newestDone(db: Database): NewestDone {
  const { newest_done_ms } = readStreamHead(db);
  return {
    newswire: newest_done_ms[CONTENT_TYPE_OF_EXPORT.newswire],
    imagewire: newest_done_ms[CONTENT_TYPE_OF_EXPORT.imagewire],
  };
}

/**
 * What is wrong with the clock; null when nothing is known to be. Only the ends of windows prove that it is behind:
 * the agency names windows by its own clock. Delivery times come from ours, and keep a jump ahead that was corrected.
 */
function clockFault({ newswire, imagewire }: NewestDone, nowMs: number): string | null {
  const newestEndMs = Math.max(newswire ?? 0, imagewire ?? 0);
  if (nowMs >= newestEndMs - CLOCK_TOLERANCE_MS) return null;
  return `the clock shows ${formatMs(nowMs)}, but the newest finished window ended at ${formatMs(newestEndMs)}`;
}

/** A clock that was set back makes it due, too. */
function isDue(lastMs: number, everyMs: number, nowMs: number): boolean {
  return nowMs - lastMs >= everyMs || nowMs < lastMs;
}

/** Alerts of one name differ by what their detail begins with: an export, or a path. */
function keyOf({ name, detail }: Alert): string {
  return `${name} ${detail.split(':', 1)[0]}`;
}

function fileId(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

function fileState(path: string): string {
  const { size, mtimeMs } = statSync(path);
  return `${size}:${mtimeMs}`;
}

function isGone(error: unknown): boolean {
  return isErrorCode(error, 'ENOENT');
}
