/**
 * Checks an installation: one finding for each thing that it needs, with what to do.
 *
 * It can run at any time, while the appliance runs or before the first start, and leaves nothing behind.
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
import { checkAddress, checkAdminAddress, checkAdminTls, checkBaseUrl, checkTls } from './network.ts';
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
  /** Called with the name of what is being checked, if that takes long. */
  readonly onProgress: (what: string) => void;
}

/** All findings, in the order in which problems are best fixed. */
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
      'Fix the configuration; whatever depends on it was not checked. To list every setting: wirewatch manual settings';
    return bad(check, configured.problem, todo);
  }
  return ok(
    check,
    configured.config.configFile ?? 'no configuration file; using the environment and the defaults',
  );
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
  const running = checkRunning(folder, isRunning);
  const enabled = new Set(EXPORT_NAMES.filter((name) => config.exports[name].enabled));
  const told = (isRunning ? await readAlertFile(folder.alerts) : null) ?? [];
  const alerts = openAlerts(
    told,
    () => (detections === null ? [] : ledgerAlerts(detections, enabled, nowMs)),
    nowMs,
  );
  // Some alerts are only known to a running appliance: without one, nothing says that none is open.
  if (alerts.length === 0) return isRunning ? [running, ok('alerts', 'none open')] : [running];
  return [
    running,
    ...alerts.map(({ name, page_worthy, detail, what_to_do }) =>
      (page_worthy ? bad : warn)('alert', `${name}: ${detail}`, what_to_do),
    ),
  ];
}

function checkRunning({ detections }: DataFolder, isRunning: boolean): Finding {
  const check = 'appliance';
  if (isRunning) return ok(check, 'running');
  return existsSync(detections)
    ? bad(
        check,
        'not running: clients get no answers, and only alerts that follow from detections.db are known',
        'Start it with "wirewatch serve", or as a service with: systemctl start wirewatch',
      )
    : ok(check, 'not started yet');
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
    ...(await checkAdminTls(config, nowMs)),
    ...(log.file === '' ? [] : [checkLogFile(log.file)]),
    checkOpenFiles(server.max_connections),
  ];
}

/** The latest time of the files and the finished windows: the clock has been there before. */
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

/** A lock that cannot be read is reported with its folder. */
function isHeld(lock: string): boolean {
  try {
    return isLocked(lock);
  } catch {
    return false;
  }
}
