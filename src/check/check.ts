/**
 * Checks an installation: does what a start does before it listens, with the functions of a start, and reads the status
 * document with its alerts. It can run at any time, while Wirewatch runs or before the first start, and leaves nothing behind.
 */
import { accessSync, closeSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { preseed as createMissing } from '../auth/preseed.ts';
import { findAccess } from '../auth/spare-copy.ts';
import { isInTheClear } from '../config/listening.ts';
import type { Config } from '../config/load.ts';
import { readSecretFiles } from '../config/preseed.ts';
import { openPlace, tryPlace } from '../copy/open-place.ts';
import { refuseEmptied } from '../copy/own-copy.ts';
import { checkWritable, ForeignFolder, OWN_FOLDERS } from '../drop/own-folder.ts';
import { ALERT_ADVICE } from '../health/alert-texts.ts';
import { loadTlsPair, type TlsPaths, validityError } from '../http/tls-pair.ts';
import { findTail } from '../log/log-reader.ts';
import { listSegments } from '../log/segment.ts';
import { openLogFile } from '../log-output.ts';
import type { Status } from '../operations/status.ts';
import { settingsText } from '../operations/status-views.ts';
import { isErrorCode, misconfigured, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { makeSchema, openContent } from '../store/database.ts';
import {
  type DataFolder,
  refuseLinks,
  requireSeparate,
  requireUsable,
  statsOf,
  usedFolders,
} from '../store/folder.ts';
import { readRole, requireRole } from '../store/role.ts';
import { findSecret } from '../store/secret.ts';
import { formatMs } from '../time.ts';

export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'bad';
  readonly detail: string;
  /** Null if there is nothing to do. */
  readonly what_to_do: string | null;
}

type Outcome = Omit<Finding, 'check'>;
/** None, if there was nothing to check. */
type Found = Outcome | readonly Outcome[] | undefined;
/** Adds what `run` finds; what it throws is bad. @param todo what to do then */
type Check = (check: string, run: () => Found | Promise<Found>, todo?: string) => Promise<void>;

const OTHERS = 0o077;
const DO_THIS = 'Do what this says: until then, Wirewatch cannot start.';
const RESTORE = 'Restore a backup: wirewatch restore BACKUP --replace';
const INSTALL_CERTIFICATE =
  'Install a valid certificate with its key, which this user can read; a running Wirewatch loads them by itself.';

const ok = (detail: string): Outcome => ({ status: 'ok', detail, what_to_do: null });
const warn = (detail: string, what_to_do: string): Outcome => ({ status: 'warn', detail, what_to_do });
const bad = (detail: string, what_to_do: string): Outcome => ({ status: 'bad', detail, what_to_do });

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
  const check: Check = async (name, run, todo = DO_THIS) => {
    const found = await Promise.resolve()
      .then(run)
      .catch((error: unknown) =>
        error instanceof ForeignFolder ? bad(error.problem, error.repair) : bad(reasonOf(error), todo),
      );
    findings.push(...[found ?? []].flat().map((outcome) => ({ check: name, ...outcome })));
  };
  await check(
    'configuration',
    () => checkConfiguration(configured),
    'Fix the configuration; whatever depends on it was not checked. To list every setting: wirewatch manual settings',
  );
  await check(
    'data folder',
    () => checkDataFolder(folder),
    'Give the folder and its files to the user that Wirewatch runs as (chown -R), and run this command as that user.',
  );
  const config = typeof configured === 'string' ? null : configured;
  const isUsable = findings.at(-1)?.status !== 'bad';
  const isMade = isUsable && (existsSync(folder.access) || existsSync(folder.spare));
  const read = isMade ? await readStatus().catch(reasonOf) : null;
  const status = typeof read === 'string' ? null : read;
  if (isUsable) {
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
  await check('appliance', () => checkAppliance(folder, read === configured ? null : read));
  await check('running settings', () => changedSettings(status?.settings));
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

function checkConfiguration(configured: Config | string): Outcome {
  if (typeof configured === 'string') throw misconfigured(configured);
  return ok(configured.configFile ?? 'no configuration file; using the environment and the defaults');
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

/** Whether the folder belongs to this user, or is missing. */
function isOwn({ root }: DataFolder): boolean {
  const uid = statsOf(root, statSync)?.uid;
  return uid === undefined || uid === (process.getuid?.() ?? uid);
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

/** Whether a start can create the accounts, subscriptions and keys of the configuration: creates them in memory. */
function checkConfigured({ preseed }: Config, folder: DataFolder): Found {
  if (Object.values(preseed).every(({ length }) => length === 0)) return [];
  const { seeds, readable_by_all } = readSecretFiles(preseed);
  const found = findAccess(folder);
  using copy = openContent(found.kind === 'sound' ? found.content : ':memory:');
  if (found.kind !== 'sound') makeSchema(copy, ACCESS_SCHEMA);
  const { differences } = createMissing(copy, seeds, Date.now());
  const warnings = readable_by_all.map((file) =>
    warn(`every user of this machine can read ${file}`, `chmod o-r ${file}`),
  );
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
  if (typeof status === 'string') return bad(status, 'Do what this says, and run this command again.');
  if (status?.running === true)
    return ok(status.url === null ? 'running' : `running, listening on ${status.url}`);
  return existsSync(detections)
    ? bad(
        'not running: clients get no answers, and only alerts that follow from the databases are known',
        'Start it with "wirewatch serve", or as a service with: systemctl start wirewatch',
      )
    : ok('not started yet');
}

function changedSettings(settings: Status['settings'] = null): Found {
  return settings?.what_to_do ? warn(settingsText(settings), settings.what_to_do) : [];
}

/** What a start needs besides its data folder: the place of the copy, the drop folder, certificates, files, programs. */
async function checkSurroundings(config: Config, folder: DataFolder, check: Check): Promise<void> {
  const { log, alerts, copy, server, admin } = config;
  // Others have other rights, and root would create folders in the copy that Wirewatch could not use.
  const isOwner = isOwn(folder);
  if (isOwner && copy.to !== '')
    await check(
      'copy',
      () => checkPlace(copy, folder),
      'Until the place can be written, no copy is kept. See: wirewatch manual backup',
    );
  if (isOwner)
    await check(
      'drop folder',
      () => checkDrop(config, folder),
      'Check that the folder exists and is mounted, and give the user that Wirewatch runs as read and write access to it and its subfolders; or name another with [ingest] drop.',
    );
  const hasTls = server.tls_certificate !== '';
  await check('TLS', () => (hasTls ? checkTls(server) : checkPlain(server)), INSTALL_CERTIFICATE);
  if (admin.port !== 0 && admin.tls_certificate !== '')
    await check('TLS of the console', () => checkTls({ ...admin, section: 'admin' }), INSTALL_CERTIFICATE);
  if (log.file !== '')
    await check(
      'log file',
      () => checkLogFile(log.file),
      'Create the folder, and give the user that Wirewatch runs as write access.',
    );
  if (alerts.command.length > 0)
    await check(
      'alert command',
      () => checkAlertCommand(alerts.command),
      'Install the program, or correct [alerts] command: until then, nobody is told of alerts.',
    );
}

/** Creates, lists, reads and deletes a small object there. */
async function checkPlace(copy: Config['copy'], folder: DataFolder): Promise<Outcome> {
  const place = await openPlace(copy.to, copy);
  await refuseEmptied(place, folder);
  const isMissing = await place.list('try/', '').then(
    () => false,
    (error: Error) => isErrorCode(error.cause, 'ENOENT'),
  );
  if (isMissing && isCreatedIn(dirname(copy.to), folder)) return createdByStart(copy.to);
  await tryPlace(place);
  return ok(copy.to);
}

/** Whether a start creates what is missing in it: it creates no other parents, since a disk may not be mounted. */
function isCreatedIn(parent: string, { root }: DataFolder): boolean {
  return parent === root || existsSync(parent);
}

function createdByStart(path: string): Outcome {
  return warn(
    `${path} does not exist yet`,
    'The first start creates it. Check that it is the right folder, and that its disk is mounted.',
  );
}

/** Whether files can be moved out of the folder, and into its subfolders. */
async function checkDrop({ ingest: { drop }, photos }: Config, folder: DataFolder): Promise<Outcome> {
  await requireSeparate(drop, usedFolders(folder, photos.folder));
  const found = statSync(drop, { throwIfNoEntry: false });
  if (found === undefined && isCreatedIn(dirname(drop), folder)) return createdByStart(drop);
  checkWritable(drop);
  const elsewhere = OWN_FOLDERS.map((name) => join(drop, name)).find(
    (own) => existsSync(own) && statSync(own).dev !== found?.dev,
  );
  return elsewhere === undefined
    ? ok(`${drop}: files can be moved, and its subfolders are on the same file system`)
    : bad(
        `${elsewhere} is on another file system than ${drop}: files cannot be renamed into it`,
        'Put the drop folder and its subfolders on one file system.',
      );
}

function checkPlain(server: Config['server']): Outcome {
  return isInTheClear(server)
    ? warn(
        `no certificate, and ${server.host} can be reached from other machines: keys cross the network unencrypted`,
        'Set [server] tls_certificate and tls_key. Or put a TLS proxy in front: on this machine with [server] host 127.0.0.1, or on another with its address in [server] trusted_proxies.',
      )
    : ok('no certificate: plain HTTP, for a proxy in front');
}

async function checkTls(paths: TlsPaths): Promise<Outcome> {
  const nowMs = Date.now();
  const pair = await loadTlsPair(paths);
  const problem = validityError(pair, nowMs);
  if (problem === null) return ok(`${paths.tls_certificate}, valid until ${formatMs(pair.validToMs)}`);
  const isValid = nowMs >= pair.validFromMs && nowMs < pair.validToMs;
  return (isValid ? warn : bad)(problem, INSTALL_CERTIFICATE);
}

/** A missing one is not opened, since that would create it. */
function checkLogFile(path: string): Outcome {
  if (existsSync(path)) closeSync(openLogFile(path));
  else accessSync(dirname(path), constants.W_OK | constants.X_OK);
  return ok(path);
}

/** Looked for as the system does when it runs the command. */
function checkAlertCommand([program = '']: readonly string[]): Outcome {
  const places = program.includes('/') ? [''] : (process.env.PATH ?? '').split(delimiter);
  const paths = places.map((folder) => join(folder, program));
  const path = paths.find(isExecutable) ?? paths[0] ?? program;
  accessSync(path, constants.X_OK);
  return ok(path);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
