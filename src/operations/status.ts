/**
 * How things stand, in one document. The commands `status`, `alert list` and `ingest status`, the overview of the
 * console and the metrics are views of it. Every part is bounded, however large the installation.
 *
 * A running appliance adds what only it knows: its alerts, its health, the file that it reads. Whatever cannot be read
 * is left out, since the document is needed most when something is broken.
 */
import { isDeepStrictEqual } from 'node:util';
import { listeningUrl } from '../config/listening.ts';
import { dropNames, enabledExports, holdRules, loadConfig, settingIn } from '../config/load.ts';
import { SETTINGS } from '../config/schema.ts';
import { counted } from '../counted.ts';
import { type ExportName, perExport } from '../detection/content-type.ts';
import { SCANNED_FILES_MAX, unanswering, unlistable, waitingFiles } from '../drop/waiting-names.ts';
import { type ExportFileName, endText, windowReadiness } from '../exports/file-name.ts';
import { type AlertDocument, type AlertName, alertDocument, inOrder } from '../health/alert-texts.ts';
import { diskFolders, disksOf, isAnswering } from '../health/disk.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { evaluateHealth, type Health } from '../health/rules.ts';
import { applyingFiles, fileDocument, filesNotApplied } from '../ingest/files/file-record.ts';
import { heldReason, knownFiles, releaseCommand } from '../ingest/files/folder-scan.ts';
import { readPause } from '../ingest/operator-pause.ts';
import { readScrubRecord } from '../log/scrub-findings.ts';
import { bytesOf, listSegments } from '../log/segment.ts';
import { reasonOf, unlessError } from '../refused.ts';
import { sizeOf } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import { isLocked } from '../store/locks.ts';
import { type Role, readRole, roleOf } from '../store/role.ts';
import { DAY_MS, formatMs, parseInstant } from '../time.ts';
import { VERSION } from '../version.ts';
import { type HeldBy, heldBy } from '../windows/ledger.ts';
import { NOTHING_READ, type Reach, readReach } from '../windows/reach.ts';
import { type ActiveKeys, followersOf, keysDocument, readActiveKeys } from './followers.ts';
import type { Context } from './operation.ts';

export type Status = Awaited<ReturnType<typeof readStatus>>;
export type StatusSources = Pick<
  Context,
  'folder' | 'kind' | 'config' | 'access' | 'detections' | 'live' | 'nowMs'
>;

const WAITING_SHOWN_MAX = 3;
const HELD_SHOWN_MAX = 20;
const NOT_APPLIED_MAX = 20;
const COUNT_VERSIONS = 'SELECT sum(sequence) FROM stream WHERE removed = 0';
/** While one of these is open, no file is read, or some are not; the copy only where ingest waits for it. */
const INGEST_WAITS: readonly AlertName[] = [
  'ingest stopped',
  'disk full',
  'database damaged',
  'drop folder not readable',
  'drop folder not writable',
  'data folder not writable',
  'another machine took over',
  'copy behind',
  'file stuck',
];

export async function readStatus(sources: StatusSources) {
  const { folder, config, live, nowMs } = sources;
  const { drop } = config.ingest;
  const disks = await disksOf(diskFolders(config));
  // Listing a share that hangs would hold this thread, and with it every revocation.
  const isListed = await isAnswering(drop);
  const running = live !== null || isLocked(folder.serveLock);
  const activeKeys = readActiveKeys(sources);
  const ledger = readLedger(sources, activeKeys);
  const alerts = live?.alerts ?? ledger.alerts;
  const role = live?.role ?? unlessError('writer', () => roleOf(readRole(folder), config.copy));
  const pausedMs = unlessError(null, () => readPause(sources.access()));
  const paused_since = pausedMs === null ? null : formatMs(pausedMs);
  const { exports, not_applied, applying, versions, unreadable, followers } = ledger;
  const silent = isListed ? null : unanswering(drop);
  const listDrop = () => {
    const known = ledger.db === null ? undefined : knownFiles(ledger.db, holdRules(config));
    return waitingFiles(dropNames(config), known, SCANNED_FILES_MAX);
  };
  const dropped = isListed ? unlessError(null, listDrop) : null;
  // The first start makes it.
  const isExpected = dropped === null && ledger.db !== null;
  const drop_unreadable = silent ?? (isExpected ? unlistable(drop) : null);
  const held = dropped?.held ?? [];
  const waiting = dropped?.exports.map(({ file }) => file) ?? [];
  return {
    at: formatMs(nowMs),
    version: VERSION,
    role,
    running,
    /** Where it listens, or would if it ran; null if that is not known. */
    url: live?.url ?? listeningUrl(config.server),
    health: healthOf(sources, exports, alerts, paused_since),
    exports,
    /** Urgent ones first. While it does not run, only those that follow from the databases. */
    alerts,
    ingest: {
      drop,
      /** Why it cannot be listed, and what to do; null: it can. Then there are no names of files. */
      drop_unreadable,
      /** Export files in the drop folder that are not held, and those that were taken and have no record yet. */
      waiting: dropped?.exports_count ?? 0,
      /** Their names, in the order in which they are read: the first ones. */
      waiting_files: waiting.slice(0, WAITING_SHOWN_MAX).map(({ name }) => name),
      /** What they wait for besides their turn, and what to do about it; null: nothing. */
      waits_for:
        waiting.length === 0
          ? null
          : (waitsFor(role, running, paused_since, alerts) ?? waitsForEnd(waiting, nowMs)),
      /** Export files in the drop folder that wait for an operator. */
      held: held.length,
      held_files: held.slice(0, HELD_SHOWN_MAX).map((one) => {
        const { name: file, export: exportName, window_start } = one.file;
        return { file, export: exportName, window_start: formatMs(window_start), ...heldReason(one) };
      }),
      /** The file that is being read; null: there is none. */
      reading: live?.reading ?? null,
      applying,
    },
    /** Files of the last day that failed or were refused, the newest first, at most 20. */
    not_applied,
    disks,
    database: {
      bytes: sizeOf(folder.detections),
      access_bytes: sizeOf(folder.access),
      log_bytes: unlessError(0, () => bytesOf(listSegments(folder.log))),
      /** Rows of all streams: versions of detections. */
      versions,
      /** Why it cannot be read now: then exports, files and followers are empty. */
      unreadable,
    },
    /** The copy of the installation; null: none is kept, or Wirewatch does not run. */
    copy: live?.copy ?? null,
    scrub: scrubOf(folder),
    keys: keysDocument(activeKeys, followers, nowMs),
    followers,
    /** Settings that a restart would change; null while it does not run, and in a lab. */
    settings: changedSettings(sources),
  };
}

/** What detections.db says. If it is damaged, the rest is still useful; an alert reports the damage. */
function readLedger({ config, detections, nowMs }: StatusSources, keys: ActiveKeys) {
  const rules = holdRules(config);
  const exportsOf = (reach: (name: ExportName) => Reach) =>
    perExport((name) => ({ enabled: config.exports[name].enabled, ...reach(name) }));
  const nothing = {
    db: null,
    exports: exportsOf(() => NOTHING_READ),
    not_applied: [],
    applying: [],
    versions: 0,
    alerts: [],
    followers: [],
    unreadable: null,
  };
  try {
    const db = detections();
    if (db === null) return nothing;
    const held = heldBy(db, rules);
    return {
      db,
      exports: exportsOf((name) => readReach(db, name, nowMs)),
      not_applied: filesNotApplied(db, nowMs - DAY_MS, NOT_APPLIED_MAX).map((file) => {
        return { ...fileDocument(file), what_to_do: whatToDo(held, file) };
      }),
      applying: applyingFiles(db).map(({ name: file, report: { rows = 0 }, rows_applied }) => {
        return { file, rows, rows_applied };
      }),
      versions: db.prepare<[], number | null>(COUNT_VERSIONS).pluck().get() ?? 0,
      alerts: inOrder(ledgerAlerts(db, rules, nowMs)).map(alertDocument),
      followers: followersOf(db, keys, nowMs),
      unreadable: null,
    };
  } catch (error) {
    const name = isDamage(error) ? 'database damaged' : 'database not readable';
    const unreadable = reasonOf(error);
    const alert = { name, of: '', since: nowMs, detail: `detections.db: ${unreadable}` } as const;
    return { ...nothing, alerts: [alertDocument(alert)], unreadable };
  }
}

/** Files of windows that have not ended wait for that. */
function waitsForEnd(waiting: readonly ExportFileName[], nowMs: number) {
  const early = waiting.flatMap(({ name, window_start }) =>
    window_start !== null && windowReadiness(window_start, nowMs) === 'early' ? { name, window_start } : [],
  );
  const [first] = early;
  if (first === undefined) return null;
  const more =
    early.length === 1 ? '' : `, and ${counted(early.length - 1, 'more file')} for as long or longer`;
  const reason = `${first.name} waits until ${endText(first.window_start)}, when its window ends${more}`;
  return { reason, what_to_do: 'Nothing: they are read then.' };
}

function waitsFor(role: Role, running: boolean, paused: string | null, alerts: readonly AlertDocument[]) {
  if (role === 'standby')
    return {
      reason: 'this machine is a standby: the writer reads the exports',
      what_to_do: 'Nothing, unless this machine is to take over: wirewatch promote',
    };
  if (paused !== null)
    return {
      reason: `ingest has been paused since ${paused}`,
      what_to_do: 'Resume it with: wirewatch ingest resume',
    };
  if (!running) return { reason: 'Wirewatch is not running', what_to_do: 'Start it with: wirewatch serve' };
  const alert = alerts.find(
    ({ name, page_worthy }) => INGEST_WAITS.includes(name) && (name !== 'copy behind' || page_worthy),
  );
  return alert ? { reason: `${alert.name}: ${alert.detail}`, what_to_do: alert.what_to_do } : null;
}

type NotApplied = ReturnType<typeof filesNotApplied>[number];

function whatToDo(held: HeldBy, { name, export: exportName, window_start, outcome }: NotApplied): string {
  if (outcome === 'refused')
    return 'Drop it again under a valid name, or delete it from refused/ if it was dropped by mistake.';
  const fix = `Fix the file and drop it again. For its errors, run: wirewatch ingest explain ${name}`;
  if (exportName === null || window_start === null) return fix;
  const status = held({ export: exportName, window_start });
  return status === null
    ? fix
    : `Fix the file, drop it again, and run: ${releaseCommand(exportName, status, formatMs(window_start))}`;
}

/** `reason`: in a sentence. */
function healthOf(
  { config, nowMs }: StatusSources,
  exports: Readonly<Record<ExportName, Reach>>,
  alerts: readonly AlertDocument[],
  paused_since: string | null,
) {
  const told = (status: Health['status'], reason: string) => ({ status, paused_since, reason });
  const [urgent, ...others] = alerts.filter(({ page_worthy }) => page_worthy);
  const more = others.length === 0 ? '' : ` ${counted(others.length, 'more alert')} cannot wait.`;
  if (urgent !== undefined) return told('degraded', `${urgent.name}: ${urgent.detail}.${more}`);
  if (paused_since !== null) return told('ok', `Ingest is paused since ${paused_since}.`);
  const newest_done = perExport((name) => parseInstant(exports[name].newest_done ?? ''));
  const situation = { newest_done, enabled: enabledExports(config), is_paused: false };
  if (evaluateHealth(situation, [], nowMs).status === 'degraded')
    return told('degraded', 'An export has finished no window that ended within the last hour.');
  const { length } = alerts;
  return told('ok', length === 0 ? 'Nothing is wrong.' : `${counted(length, 'alert')} can wait.`);
}

/** The last comparison of the database with its log; null: not yet. */
function scrubOf(folder: StatusSources['folder']) {
  const record = readScrubRecord(folder);
  if (record === null) return null;
  const findings = record.findings.reduce((sum, { count }) => sum + count, 0);
  return { at: formatMs(record.at), findings, not_compared: record.not_compared };
}

/** What a restart would change: the configuration is read again, as it was at the start. */
function changedSettings({ config, kind, live }: StatusSources) {
  // A lab has settings of its own.
  if (live === null || kind !== 'appliance') return null;
  try {
    const next = loadConfig({ ...config.given, env: process.env, dataFolder: config.dataFolder });
    const changed = SETTINGS.flatMap(({ path: name, schema }) => {
      const [running, configured] = [config, next].map((from): unknown => settingIn(from, name));
      if (isDeepStrictEqual(running, configured)) return [];
      // A value that may contain a secret is null.
      return schema.secret ? { name, running: null, configured: null } : { name, running, configured };
    });
    const restart = 'Restart Wirewatch to use the configured values, or restore the old ones.';
    const what_to_do = changed.length === 0 ? null : restart;
    return { file: next.configFile, problem: null, changed, what_to_do };
  } catch (error) {
    const what_to_do =
      'Correct it before the next restart, which would fail. To check it, run: wirewatch check';
    return { file: config.configFile, problem: reasonOf(error), changed: [], what_to_do };
  }
}
