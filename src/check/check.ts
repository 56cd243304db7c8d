/**
 * Checks an installation: does what a start does before it listens, with the functions of a start, and reads the status
 * document with its alerts. It can run at any time, while Wirewatch runs or before the first start, and leaves nothing behind.
 */
import { existsSync, statSync } from 'node:fs';
import { preseed as createMissing } from '../auth/preseed.ts';
import { findAccess } from '../auth/spare-copy.ts';
import type { Config } from '../config/load.ts';
import { readSecretFiles } from '../config/preseed.ts';
import { ForeignFolder } from '../drop/own-folder.ts';
import { ALERT_ADVICE } from '../health/alert-texts.ts';
import { listSegments } from '../log/segment.ts';
import { findTail } from '../log/torn-end.ts';
import type { Status } from '../operations/status.ts';
import { settingsText } from '../operations/status-views.ts';
import { misconfigured, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { makeSchema, openContent } from '../store/database.ts';
import { type DataFolder, refuseLinks, requireUsable } from '../store/folder.ts';
import { installationKind, refuseForeignDatabases, requireKind } from '../store/installation.ts';
import { readRole, requireRole, roleOf } from '../store/role.ts';
import { findSecret } from '../store/secret.ts';
import { bad, type Check, type Finding, type Found, type Outcome, ok, warn } from './finding.ts';
import { checkSurroundings, isOwn } from './surroundings.ts';

const OTHERS = 0o077;
const AGAIN = 'Do what this says, and run this command again.';
const RESTORE = 'Restore a backup: wirewatch restore BACKUP --replace';

/**
 * @param configured the configuration, or why it could not be read
 * @param readStatus as `wirewatch status` reads it, from the appliance that runs or from the stopped installation
 * @returns in the order in which problems are best fixed
 */
export async function checkInstallation(
  folder: DataFolder,
  configured: Config | string,
  readStatus: () => Promise<Status>,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const check: Check = async (name, run, todo = 'Do what this says: until then, Wirewatch cannot start.') => {
    const found = await Promise.resolve()
      .then(run)
      .catch((error: unknown) =>
        error instanceof ForeignFolder ? bad(error.problem, error.repair) : bad(reasonOf(error), todo),
      );
    const all = [found ?? []].flat();
    findings.push(...all.map((outcome) => ({ check: name, ...outcome })));
    return all.every(({ status }) => status !== 'bad');
  };
  await check(
    'configuration',
    () => {
      if (typeof configured === 'string') throw misconfigured(configured);
      return ok(configured.configFile ?? 'no configuration file; using the environment and the defaults');
    },
    'Fix the configuration; whatever depends on it was not checked. To list every setting: wirewatch manual settings',
  );
  const isUsable = await check(
    'data folder',
    () => checkDataFolder(folder),
    'Run this command as the user that Wirewatch runs as. If files in the folder are of another user, give them to it (chown -R).',
  );
  const config = typeof configured === 'string' ? null : configured;
  const isOurs = isUsable && (await check('installation', () => checkInstallationKind(folder), AGAIN));
  const isMade = isOurs && (existsSync(folder.access) || existsSync(folder.spare));
  const read = isMade ? await readStatus().catch(reasonOf) : null;
  const status = typeof read === 'string' ? null : read;
  if (isOurs) {
    await check('lost', () => lostFiles(folder, isMade));
    if (status?.running !== true) {
      await check('log', () => void findTail(folder.log, true), ALERT_ADVICE['log damaged']);
      if (config !== null) await check('role', () => void requireRole(readRole(folder), folder, config.copy));
    }
    await check('secret', () => checkSecret(folder));
    if (config !== null)
      await check(
        'configured accounts',
        () => checkConfigured(config, folder),
        'Fix the entry or the file: until then, Wirewatch cannot start.',
      );
  }
  // Without a configuration, only an appliance that runs can tell.
  if (isOurs) await check('appliance', () => checkAppliance(folder, read === configured ? null : read));
  const settings = status?.settings;
  const restart = settings?.what_to_do;
  if (settings && restart) await check('running settings', () => warn(settingsText(settings), restart));
  // Some alerts are known only to a running appliance: without one, "none open" would not be certain.
  if (status?.running === true && status.alerts.length === 0) await check('alerts', () => ok('none open'));
  await check('alert', () =>
    status?.alerts.map(({ name, page_worthy, detail, what_to_do }) =>
      (page_worthy ? bad : warn)(`${name}: ${detail}`, what_to_do),
    ),
  );
  if (config !== null) await checkSurroundings(config, folder, check);
  return findings;
}

/** Whether this user, and no other, can use it. */
function checkDataFolder(folder: DataFolder): Outcome {
  const { root } = folder;
  const found = statSync(root, { throwIfNoEntry: false });
  if (found === undefined)
    return warn(
      `${root} does not exist yet`,
      'The first start or command creates it. If it is not the right folder, name another with --data.',
    );
  requireUsable(folder);
  refuseLinks(folder);
  const detail = `${root}, mode ${(found.mode & 0o7777).toString(8).padStart(4, '0')}`;
  if (!isOwn(folder))
    return warn(
      `${detail}, owned by user id ${found.uid}, but this command runs as ${process.getuid?.()}`,
      'Run this command as the user that Wirewatch runs as: only then does it test what that user can read and write.',
    );
  return (found.mode & OTHERS) === 0
    ? ok(detail)
    : warn(
        `${detail}: other users of this machine have access to it, and it contains the secret and the hashes of keys`,
        `chmod 0700 ${root}`,
      );
}

/** Whether a start would take it for an installation of its own, and whole. */
function checkInstallationKind(folder: DataFolder): undefined {
  refuseHalfRestored(folder);
  refuseForeignDatabases(folder);
  const found = findAccess(folder);
  if (found.kind !== 'sound') return;
  using access = openContent(found.content);
  requireKind(folder.access, installationKind(access), 'appliance');
}

/** What must be there once there is a detections.db. @param hasAccess whether access.db or its spare copy is there */
function lostFiles({ access, log, detections }: DataFolder, hasAccess: boolean): Outcome[] {
  if (!existsSync(detections)) return [];
  const lost = [...(hasAccess ? [] : [access]), ...(listSegments(log).length > 0 ? [] : [log])];
  return lost.map((path) => bad(`${path} is missing, although detections.db exists`, RESTORE));
}

function checkSecret(folder: DataFolder): Outcome {
  if (findSecret(folder) === null) return ok('does not exist yet: the first start creates it');
  return (statSync(folder.secret).mode & OTHERS) === 0
    ? ok('present, and private to its user')
    : warn(
        'other users can read it, and so forge cursors and photo addresses',
        `chmod 0600 ${folder.secret}`,
      );
}

/** Whether a start of a writer can create the accounts, subscriptions and keys of the configuration: creates them in memory. */
function checkConfigured({ preseed, copy: place }: Config, folder: DataFolder): Found {
  if (Object.values(preseed).every(({ length }) => length === 0)) return [];
  const { seeds, readable_by_all } = readSecretFiles(preseed);
  const warnings = readable_by_all.map((file) =>
    warn(`every user of this machine can read ${file}`, `chmod o-r ${file}`),
  );
  if (roleOf(readRole(folder), place) !== 'writer') return warnings;
  const found = findAccess(folder);
  using copy = openContent(found.kind === 'sound' ? found.content : ':memory:');
  if (found.kind !== 'sound') makeSchema(copy, ACCESS_SCHEMA);
  const { differences } = createMissing(copy, seeds, Date.now());
  if (differences.length > 0)
    warnings.push(
      warn(
        `existing entries differ from the configuration, which does not change them: ${differences.join('; ')}`,
        'Update the configuration file; see: wirewatch manual preseeding',
      ),
    );
  return warnings.length > 0 ? warnings : ok('all exist, or the next start creates them');
}

/** @param status a text: why it cannot be read; null: there is nothing to read yet */
function checkAppliance({ detections }: DataFolder, status: Status | string | null): Outcome {
  if (typeof status === 'string') return bad(status, AGAIN);
  if (status?.running === true)
    return ok(status.url === null ? 'running' : `running, listening on ${status.url}`);
  return existsSync(detections)
    ? bad(
        'not running: clients get no answers, and only alerts that follow from the databases are known',
        'Start it with "wirewatch serve", or as a service with: systemctl start wirewatch',
      )
    : ok('not started yet');
}
