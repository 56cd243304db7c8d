/**
 * Checks an installation: what a start would examine, without listening, and the alerts of the status document. One
 * finding for each thing, with what to do.
 *
 * It can run at any time, while the appliance runs or before the first start, and leaves nothing behind.
 */
import { existsSync } from 'node:fs';
import { preseed as createMissing, type Seeds } from '../auth/preseed.ts';
import type { Config } from '../config/load.ts';
import type { Preseed } from '../config/preseed.ts';
import { readSecretFiles } from '../config/secret-file.ts';
import { openTried } from '../copy/open-place.ts';
import { readStatus, type Status } from '../operations/status.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, openCopyInMemory } from '../store/database.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import { type DataFolder, dataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { checkAccess, checkDatabase, checkDataFolder, checkLog, checkSecret } from './data-folder.ts';
import { bad, type Finding, finding, type Outcome, ok, warn } from './finding.ts';
import { checkSurroundings } from './surroundings.ts';

export interface CheckOptions {
  /** The data folder, absolute. */
  readonly root: string;
  /** Or why it could not be read. */
  readonly configured: Config | string;
  readonly nowMs: number;
  /** Asks the appliance that runs on the data folder; null if none does, or it cannot be asked yet. */
  readonly askStatus: () => Promise<Status | null>;
}

/** Each null: it does not exist yet, or nothing can be read from it. */
interface Databases {
  readonly detections: Database | null;
  readonly access: Database | null;
}

/** All findings, in the order in which problems are best fixed. */
export async function checkInstallation(options: CheckOptions): Promise<Finding[]> {
  const { configured, root, nowMs, askStatus } = options;
  const config = typeof configured === 'string' ? null : configured;
  const folder = dataFolder(root);
  const outcome = checkDataFolder(folder);
  const isOpen = outcome.status !== 'bad' && existsSync(root);
  const detections = isOpen ? checkDatabase(folder.detections, DETECTIONS_SCHEMA) : null;
  const access = isOpen ? checkAccess(folder) : null;
  using detectionsDb = detections?.db ?? null;
  using accessDb = access?.db ?? null;
  const databases = { detections: detectionsDb, access: accessDb };
  const status = isOpen ? await askStatus().catch(reasonOf) : null;
  const isRunning = status !== null || (isOpen && isLocked(folder.serveLock));
  const changed = typeof status === 'string' ? [] : (status?.settings?.changed.map(({ name }) => name) ?? []);
  const isUsed = (section: 'server' | 'admin') => isRunning && !changed.includes(`${section}.port`);
  return [
    finding('configuration', checkConfiguration(configured)),
    finding('data folder', outcome),
    ...(detections === null ? [] : [finding('detections.db', detections.outcome)]),
    ...(access === null ? [] : [finding('access.db', access.outcome)]),
    ...(isOpen
      ? [finding('log', checkLog(folder.log, databases.detections)), finding('secret', checkSecret(folder))]
      : []),
    ...(config === null || outcome.status === 'bad' || access?.outcome.status === 'bad'
      ? []
      : checkConfigured(config.preseed, accessDb, nowMs).map((found) =>
          finding('configured accounts', found),
        )),
    ...(config === null || !isOpen
      ? []
      : await checkAppliance(folder, { config, databases, status, isRunning, nowMs })),
    ...(config === null || config.copy.to === '' ? [] : [finding('copy', await checkPlace(config.copy))]),
    ...(config === null ? [] : await checkSurroundings(config, isUsed, nowMs)),
  ];
}

/** Creates, lists, reads and deletes a small object there. */
async function checkPlace(copy: Config['copy']): Promise<Outcome> {
  try {
    await openTried(copy.to, copy);
    return ok(copy.to);
  } catch (error) {
    return bad(
      reasonOf(error, copy.to),
      'Until the place can be written, no copy is kept. See: wirewatch manual backup',
    );
  }
}

function checkConfiguration(configured: Config | string): Outcome {
  if (typeof configured === 'string') {
    const todo =
      'Fix the configuration; whatever depends on it was not checked. To list every setting: wirewatch manual settings';
    return bad(configured, todo);
  }
  return ok(configured.configFile ?? 'no configuration file; using the environment and the defaults');
}

interface Asked {
  readonly config: Config;
  readonly databases: Databases;
  /** What the appliance says; a text: why it does not. */
  readonly status: Status | string | null;
  readonly isRunning: boolean;
  readonly nowMs: number;
}

async function checkAppliance(folder: DataFolder, asked: Asked): Promise<Finding[]> {
  const { config, databases, status, isRunning, nowMs } = asked;
  const check = 'appliance';
  if (typeof status === 'string')
    return [finding(check, bad(`running, but it does not answer: ${status}`, 'Look into its log.'))];
  if (status !== null)
    return [
      finding(check, ok(status.url === null ? 'running' : `running, listening on ${status.url}`)),
      ...checkSettings(status),
      // Some alerts are known only to a running appliance: without one, "none open" would not be certain.
      ...(status.alerts.length === 0 ? [finding('alerts', ok('none open'))] : alertsOf(status)),
    ];
  if (isRunning)
    return [finding(check, warn('starting: it cannot be asked yet', 'Run this command again in a moment.'))];
  const found = await readStatus({
    folder,
    kind: 'appliance',
    config,
    access: () => databases.access ?? nothingRead(),
    detections: () => databases.detections,
    live: null,
    nowMs,
  });
  const notRunning = existsSync(folder.detections)
    ? bad(
        'not running: clients get no answers, and only alerts that follow from the databases are known',
        'Start it with "wirewatch serve", or as a service with: systemctl start wirewatch',
      )
    : ok('not started yet');
  return [finding(check, notRunning), ...alertsOf(found)];
}

function nothingRead(): never {
  throw new Error('it cannot be read');
}

function checkSettings({ settings }: Status): Finding[] {
  if (settings === null || settings.what_to_do === null) return [];
  const { problem, changed, what_to_do } = settings;
  const names = changed.map(({ name }) => name).join(', ');
  return [finding('running settings', warn(problem ?? `others than configured: ${names}`, what_to_do))];
}

function alertsOf({ alerts }: Status): Finding[] {
  return alerts.map(({ name, page_worthy, detail, what_to_do }) =>
    finding('alert', (page_worthy ? bad : warn)(`${name}: ${detail}`, what_to_do)),
  );
}

/**
 * Whether a start can create the accounts, subscriptions and keys of the configuration: creates them in a copy, in
 * memory.
 * @param access null: it does not exist yet, and the start would create it
 */
function checkConfigured(preseed: Preseed, access: Database | null, nowMs: number): Outcome[] {
  const { accounts, subscriptions, keys } = preseed;
  if (accounts.length + subscriptions.length + keys.length === 0) return [];
  try {
    const { seeds, readable_by_all } = readSecretFiles(preseed);
    const warnings = [
      ...readable_by_all.map((file) =>
        warn(`every user of this machine can read ${file}`, `chmod o-r ${file}`),
      ),
      ...ofEntries(seeds, access, nowMs),
    ];
    return warnings.length > 0 ? warnings : [ok('all exist, or the next start creates them')];
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return [bad(error.message, 'Fix the entry or the file: until then, Wirewatch cannot start.')];
  }
}

/** @throws Refused `configuration` as a start does */
function ofEntries(seeds: Seeds, access: Database | null, nowMs: number): Outcome[] {
  using copy = openCopyInMemory(access, ACCESS_SCHEMA);
  const { differences } = createMissing(copy, seeds, nowMs);
  if (differences.length === 0) return [];
  const differ = warn(
    `existing entries differ from the configuration, which does not change them: ${differences.join('; ')}`,
    'Update the configuration file; see: wirewatch manual preseeding',
  );
  return [differ];
}
