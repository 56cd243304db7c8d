/**
 * Checks an installation: one finding for each thing that it needs, with what to do.
 *
 * It can run at any time, while the appliance runs or before the first start, and leaves nothing behind.
 */
import { existsSync, statSync } from 'node:fs';
import type { Seeds } from '../auth/preseed.ts';
import { type Config, enabledExports } from '../config/load.ts';
import { readAlertFile } from '../health/alert-file.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { openAlerts } from '../health/open-alerts.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import type { Database } from '../store/database.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { readLogMark } from '../store/log-mark.ts';
import { newestWindowEnd } from '../windows/ledger.ts';
import { checkBackups } from './backups.ts';
import { checkClock } from './clock.ts';
import { checkConfigured, checkSecretFiles } from './configured.ts';
import { checkCustomers } from './customers.ts';
import { checkDatabase, checkLog, checkSecret } from './databases.ts';
import { checkRoom, checkSync } from './disk.ts';
import { checkDropFolder } from './drop-folder.ts';
import { checkDataFileSystem } from './file-system.ts';
import { bad, type Finding, finding, type Outcome, ok, warn } from './finding.ts';
import { checkDataFolder, checkLogFile, checkPhotoFolder, isUsable } from './folders.ts';
import { checkAddress, checkAdminTls, checkBaseUrl, checkTls } from './network.ts';
import { checkOpenFiles } from './open-files.ts';

export interface CheckOptions {
  /** Of the data folder, absolute. */
  readonly root: string;
  /** Or why it could not be read. */
  readonly configured: Config | string;
  readonly nowMs: number;
  /** Called with the name of what is being checked, if that takes long. */
  readonly onProgress: (what: string) => void;
}

/** What is known of the installation before its parts are checked. */
interface Installation {
  readonly folder: DataFolder;
  readonly nowMs: number;
  readonly isRunning: boolean;
  /** Null if it could not be read. */
  readonly config: Config | null;
  /** Null if there are none, or they could not all be read. */
  readonly seeds: Seeds | null;
}

/** All findings, in the order in which problems are best fixed. */
export async function checkInstallation(options: CheckOptions): Promise<Finding[]> {
  const { configured, root, nowMs, onProgress } = options;
  const config = typeof configured === 'string' ? null : configured;
  const folder = dataFolder(root);
  const isRunning = isHeld(folder.serveLock);
  const { outcome: ofFolder, state } = checkDataFolder(root);
  const { findings: ofSecrets, seeds } =
    config === null ? { findings: [], seeds: null } : checkSecretFiles(config.preseed);
  const installation = { folder, nowMs, isRunning, config, seeds };
  return [
    finding('configuration', checkConfiguration(configured)),
    ...ofSecrets,
    finding('data folder', ofFolder),
    ...(state === 'open'
      ? await checkInFolder(installation, onProgress)
      : [finding('clock', checkClock(0, nowMs))]),
    ...(state === 'absent' && seeds !== null ? checkConfigured(seeds, null, nowMs) : []),
    ...(config === null ? [] : await checkSurroundings(config, isRunning, nowMs)),
  ];
}

function checkConfiguration(configured: Config | string): Outcome {
  if (typeof configured === 'string') {
    const todo =
      'Fix the configuration; whatever depends on it was not checked. To list every setting: wirewatch manual settings';
    return bad(configured, todo);
  }
  return ok(configured.configFile ?? 'no configuration file; using the environment and the defaults');
}

async function checkInFolder(
  installation: Installation,
  onProgress: CheckOptions['onProgress'],
): Promise<Finding[]> {
  const { folder, nowMs, seeds } = installation;
  const detections = checkDatabase(folder.detections, DETECTIONS_SCHEMA, onProgress);
  const access = checkDatabase(folder.access, ACCESS_SCHEMA, onProgress);
  using detectionsDb = detections.db;
  using accessDb = access.db;
  return [
    finding('data file system', await checkDataFileSystem(folder.root)),
    finding('data disk', await checkRoom(folder.root)),
    ...(isUsable(folder.root) ? [finding('disk sync', checkSync(folder.root))] : []),
    finding('clock', checkClock(latestMs(folder, detectionsDb), nowMs)),
    finding('detections.db', detections.outcome),
    finding('access.db', access.outcome),
    finding('log', checkLog(folder.log, hasMark(detectionsDb))),
    finding('secret', checkSecret(folder, existsSync(folder.detections))),
    ...(seeds === null || access.outcome.status === 'bad' ? [] : checkConfigured(seeds, accessDb, nowMs)),
    ...(accessDb === null ? [] : checkCustomers(accessDb, nowMs)),
    ...(await checkAppliance(installation, detectionsDb)),
  ];
}

async function checkAppliance(
  { folder, config, isRunning, nowMs }: Installation,
  detections: Database | null,
): Promise<Finding[]> {
  if (config === null) return [];
  const running = finding('appliance', checkRunning(folder, isRunning));
  const reported = (isRunning ? await readAlertFile(folder.alerts) : null) ?? [];
  const readLedger = () =>
    detections === null ? [] : ledgerAlerts(detections, enabledExports(config), nowMs);
  const alerts = openAlerts(reported, readLedger, nowMs);
  // Some alerts are known only to a running appliance: without one, "none open" would not be certain.
  if (alerts.length === 0) return isRunning ? [running, finding('alerts', ok('none open'))] : [running];
  return [
    running,
    ...alerts.map(({ name, page_worthy, detail, what_to_do }) =>
      finding('alert', (page_worthy ? bad : warn)(`${name}: ${detail}`, what_to_do)),
    ),
  ];
}

function checkRunning({ detections }: DataFolder, isRunning: boolean): Outcome {
  if (isRunning) return ok('running');
  return existsSync(detections)
    ? bad(
        'not running: clients get no answers, and only alerts that follow from detections.db are known',
        'Start it with "wirewatch serve", or as a service with: systemctl start wirewatch',
      )
    : ok('not started yet');
}

async function checkSurroundings(config: Config, isRunning: boolean, nowMs: number): Promise<Finding[]> {
  const { ingest, photos, server, admin, exports, log } = config;
  return [
    ...(await checkDropFolder(ingest.drop, ingest.rescan_seconds)),
    ...(existsSync(ingest.drop) ? [finding('drop disk', await checkRoom(ingest.drop))] : []),
    finding('backups', checkBackups(config, nowMs)),
    finding('photo folder', checkPhotoFolder(photos.folder, exports.imagewire.enabled)),
    finding('listening address', await checkAddress('server', server, isRunning)),
    finding('base address', checkBaseUrl(server)),
    ...(await checkTls(server, nowMs)),
    finding('administration', await checkAddress('admin', admin, isRunning)),
    ...(await checkAdminTls(config, nowMs)),
    ...(log.file === '' ? [] : [finding('log file', checkLogFile(log.file))]),
    finding('open files', checkOpenFiles(server.max_connections)),
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
