/**
 * Is everything in order here? One finding for each thing that an installation needs, with what to do.
 *
 * It may be asked at any time, beside a running appliance or before the first start, and leaves nothing behind.
 */
import { existsSync, statSync } from 'node:fs';
import type { Seeds } from '../auth/preseed.ts';
import type { Config } from '../config/load.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { readAlertFile } from '../health/alert-file.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { openAlerts } from '../health/open-alerts.ts';
import type { Database } from '../store/database.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { readLogMark } from '../store/log-mark.ts';
import { newestWindowEnd } from '../windows/ledger.ts';
import { checkBackups } from './backups.ts';
import { checkClock } from './clock.ts';
import { checkConfigured, checkSecretFiles } from './configured.ts';
import { checkCustomers } from './customers.ts';
import { checkAccessDatabase, checkDetectionsDatabase, checkLog, checkSecret } from './databases.ts';
import { checkRoom, checkSync } from './disk.ts';
import { checkDropFolder } from './drop-folder.ts';
import { checkDataFileSystem } from './file-system.ts';
import { bad, type Finding, ok, warn } from './finding.ts';
import { checkDataFolder, checkLogFile, checkPhotoFolder, isUsable } from './folders.ts';
import { checkAddress, checkAdminAddress, checkBaseUrl, checkTls } from './network.ts';
import { checkOpenFiles } from './open-files.ts';

/** The configuration as it was read, or why it could not be. */
export type Configured =
  | { readonly kind: 'read'; readonly config: Config }
  | { readonly kind: 'wrong'; readonly problem: string };

export interface CheckOptions {
  /** Of the data folder, absolute. */
  readonly root: string;
  readonly configured: Configured;
  readonly nowMs: number;
  /** Told, in words, what takes long. */
  readonly onProgress: (what: string) => void;
}

/** Everything, in the order in which it is best mended. */
export async function checkInstallation(options: CheckOptions): Promise<Finding[]> {
  const { configured, root, nowMs } = options;
  const config = configured.kind === 'read' ? configured.config : null;
  const folder = dataFolder(root);
  const isRunning = isHeld(folder.serveLock);
  const { finding: ofFolder, state } = checkDataFolder(root);
  const ofSecrets = config === null ? { findings: [], seeds: null } : checkSecretFiles(config.preseed);
  const { seeds } = ofSecrets;
  return [
    checkConfiguration(configured),
    ...ofSecrets.findings,
    ofFolder,
    ...(state === 'open'
      ? await checkInFolder(options, folder, config, seeds, isRunning)
      : [checkClock(0, nowMs)]),
    ...(state === 'absent' && seeds !== null ? checkConfigured(seeds, null, nowMs) : []),
    ...(config === null ? [] : await checkSurroundings(config, isRunning, nowMs)),
  ];
}

function checkConfiguration(configured: Configured): Finding {
  const check = 'configuration';
  if (configured.kind === 'wrong') {
    const todo =
      'Mend it; what depends on it was not looked at. "wirewatch manual settings" lists every setting.';
    return bad(check, configured.problem, todo);
  }
  return ok(check, configured.config.configFile ?? 'no file: environment and defaults');
}

async function checkInFolder(
  { root, nowMs, onProgress }: CheckOptions,
  folder: DataFolder,
  config: Config | null,
  seeds: Seeds | null,
  isRunning: boolean,
): Promise<Finding[]> {
  const detections = checkDetectionsDatabase(folder, onProgress);
  const access = checkAccessDatabase(folder, onProgress);
  try {
    return [
      await checkDataFileSystem(root),
      await checkRoom('data disk', root),
      ...(isUsable(root) ? [checkSync(root)] : []),
      checkClock(latestMs(folder, detections.db), nowMs),
      detections.finding,
      access.finding,
      checkLog(folder.log, hasMark(detections.db)),
      checkLog(folder.accessLog, hasMark(access.db)),
      checkSecret(folder, existsSync(folder.detections)),
      ...(seeds === null || access.finding.status === 'bad' ? [] : checkConfigured(seeds, access.db, nowMs)),
      ...(access.db === null ? [] : checkCustomers(access.db, nowMs)),
      ...(config === null ? [] : await checkAppliance(folder, config, detections.db, isRunning, nowMs)),
    ];
  } finally {
    detections.db?.close();
    access.db?.close();
  }
}

async function checkAppliance(
  folder: DataFolder,
  config: Config,
  detections: Database | null,
  isRunning: boolean,
  nowMs: number,
): Promise<Finding[]> {
  const runs = checkRuns(folder, isRunning);
  const enabled = new Set(EXPORT_NAMES.filter((name) => config.exports[name].enabled));
  const told = (isRunning ? await readAlertFile(folder.alerts) : null) ?? [];
  const alerts = openAlerts(
    told,
    () => (detections === null ? [] : ledgerAlerts(detections, enabled, nowMs)),
    nowMs,
  );
  // What only a running appliance could tell is not known: then nothing says that there is none.
  if (alerts.length === 0) return isRunning ? [runs, ok('alerts', 'none is open')] : [runs];
  return [
    runs,
    ...alerts.map(({ name, page_worthy, detail, what_to_do }) =>
      (page_worthy ? bad : warn)('alert', `${name}: ${detail}`, what_to_do),
    ),
  ];
}

function checkRuns({ detections }: DataFolder, isRunning: boolean): Finding {
  const check = 'appliance';
  if (isRunning) return ok(check, 'it runs');
  return existsSync(detections)
    ? bad(
        check,
        'it does not run: clients get nothing, and alerts are known only as far as detections.db tells them',
        'Start it: wirewatch serve, or as the service (systemctl start wirewatch)',
      )
    : ok(check, 'it was not started yet');
}

async function checkSurroundings(config: Config, isRunning: boolean, nowMs: number): Promise<Finding[]> {
  const { ingest, photos, server, admin, exports, log } = config;
  const drop = await checkDropFolder({ folder: ingest.drop, rescanSeconds: ingest.rescan_seconds });
  return [
    ...drop,
    ...(existsSync(ingest.drop) ? [await checkRoom('drop disk', ingest.drop)] : []),
    checkBackups(config, nowMs),
    checkPhotoFolder(photos.folder, exports.imagewire.enabled),
    await checkAddress(server, isRunning),
    checkBaseUrl(server),
    ...(await checkTls(server, nowMs)),
    await checkAdminAddress(admin, isRunning),
    ...(log.file === '' ? [] : [checkLogFile(log.file)]),
    checkOpenFiles(server.max_connections),
  ];
}

/** The latest time that the files or the finished windows have on record: it was the present once. */
function latestMs(folder: DataFolder, detections: Database | null): number {
  const files = [folder.detections, folder.access, folder.alerts];
  const written = files.map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return Math.max(detections === null ? 0 : newestWindowEnd(detections), ...written);
}

/** Whether a database has applied something of its log. */
function hasMark(db: Database | null): boolean {
  try {
    return db !== null && readLogMark(db) !== null;
  } catch {
    // Of another version of the program.
    return false;
  }
}

/** A lock that cannot be looked at is judged with the folder that it lies in. */
function isHeld(lock: string): boolean {
  try {
    return isLocked(lock);
  } catch {
    return false;
  }
}
