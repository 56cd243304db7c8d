/**
 * Checks an installation: what a start would examine, without listening, and the status document with its alerts. It can
 * run at any time, while Wirewatch runs or before the first start, and leaves nothing behind.
 */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { preseed as createMissing } from '../auth/preseed.ts';
import { findAccess } from '../auth/spare-copy.ts';
import { isInTheClear } from '../config/listening.ts';
import type { Config } from '../config/load.ts';
import { readSecretFiles } from '../config/preseed.ts';
import { openTried } from '../copy/open-place.ts';
import { placeFolder } from '../copy/place.ts';
import { ForeignFolder, inFolder, OWN_FOLDERS } from '../drop/own-folder.ts';
import { ALERT_ADVICE } from '../health/alert-texts.ts';
import { loadTlsPair, type TlsPaths, validityError } from '../http/tls-pair.ts';
import { findTail } from '../log/log-reader.ts';
import { listSegments } from '../log/segment.ts';
import type { Status } from '../operations/status.ts';
import { settingsText } from '../operations/status-views.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { makeSchema, openContent } from '../store/database.ts';
import {
  type DataFolder,
  dataFolder,
  refuseLinks,
  requireSeparate,
  requireUsable,
  usedFolders,
} from '../store/folder.ts';
import { readRole, requireRole } from '../store/role.ts';
import { SECRET_BYTES } from '../store/secret.ts';
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
/** Without an outcome, there was nothing to check. */
type Checked = readonly [check: string, Outcome | readonly Outcome[]];

const OTHERS = 0o077;
const DO_THIS = 'Do what this says: until then, Wirewatch cannot start.';
const RESTORE = 'Restore a backup: wirewatch restore BACKUP --replace';

const ok = (detail: string): Outcome => ({ status: 'ok', detail, what_to_do: null });
const warn = (detail: string, what_to_do: string): Outcome => ({ status: 'warn', detail, what_to_do });
const bad = (detail: string, what_to_do: string): Outcome => ({ status: 'bad', detail, what_to_do });

/** What `work` finds; what it throws is bad. @param path that is checked, for the reason */
function tried(path: string, todo: string, work: () => Outcome): Outcome {
  try {
    return work();
  } catch (error) {
    return bad(`${path}: ${reasonOf(error, path)}`, todo);
  }
}

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
  const nowMs = Date.now();
  const config = typeof configured === 'string' ? null : configured;
  const usable = checkDataFolder(folder);
  const isUsable = usable.status !== 'bad';
  const isMade = isUsable && (existsSync(folder.access) || existsSync(folder.spare));
  const found = isMade ? await readStatus().catch(reasonOf) : null;
  // Without a configuration, only an appliance that runs can tell.
  const read = found === configured ? null : found;
  const status = typeof read === 'string' ? null : read;
  const alerts = status?.alerts ?? [];
  const outcomes: readonly Checked[] = [
    ['configuration', checkConfiguration(configured)],
    ['data folder', usable],
    ['lost', isUsable ? lostFiles(folder, isMade) : []],
    ['log', isUsable && status?.running !== true ? checkLog(folder) : []],
    ['role', isMade && status?.running !== true && config !== null ? checkRole(folder, config) : []],
    ['secret', isMade ? checkSecret(folder) : []],
    ['configured accounts', config === null || !isUsable ? [] : checkConfigured(config, folder, nowMs)],
    ['appliance', checkAppliance(folder, read)],
    ['running settings', changedSettings(status?.settings)],
    // Some alerts are known only to a running appliance: without one, "none open" would not be certain.
    ['alerts', status?.running === true && alerts.length === 0 ? ok('none open') : []],
    [
      'alert',
      alerts.map(({ name, page_worthy, detail, what_to_do }) =>
        (page_worthy ? bad : warn)(`${name}: ${detail}`, what_to_do),
      ),
    ],
    ...(config === null ? [] : await checkSurroundings(config, nowMs)),
  ];
  return outcomes.flatMap(([check, found]) => [found].flat().map((outcome) => ({ check, ...outcome })));
}

function checkConfiguration(configured: Config | string): Outcome {
  if (typeof configured === 'string')
    return bad(
      configured,
      'Fix the configuration; whatever depends on it was not checked. To list every setting: wirewatch manual settings',
    );
  return ok(configured.configFile ?? 'no configuration file; using the environment and the defaults');
}

/** Whether this user, and no other, can use it. */
function checkDataFolder(folder: DataFolder): Outcome {
  const { root } = folder;
  const todo =
    'Give the folder and its files to the user that Wirewatch runs as (chown -R), and run this command as that user.';
  return tried(root, todo, () => {
    const found = statSync(root, { throwIfNoEntry: false });
    if (found === undefined)
      return warn(
        `${root} does not exist yet`,
        'The first start or command creates it. If it is not the right folder, name another with --data.',
      );
    requireUsable(folder);
    refuseLinks(folder);
    const detail = `${root}, mode ${(found.mode & 0o7777).toString(8).padStart(4, '0')}`;
    if (process.getuid !== undefined && process.getuid() !== found.uid)
      return warn(
        `${detail}, owned by user id ${found.uid}, but this command runs as ${process.getuid()}`,
        'Run this command as the user that Wirewatch runs as: only then does it test what that user can read and write.',
      );
    return (found.mode & OTHERS) === 0
      ? ok(detail)
      : warn(
          `${detail}: other users of this machine have access to it, and it contains the secret and the hashes of keys`,
          `chmod 0700 ${root}`,
        );
  });
}

/** What must be there once there is a detections.db. @param hasAccess whether access.db or its spare copy is there */
function lostFiles({ access, log, detections }: DataFolder, hasAccess: boolean): Outcome[] {
  if (!existsSync(detections)) return [];
  const lost = [...(hasAccess ? [] : [access]), ...(listSegments(log).length > 0 ? [] : [log])];
  return lost.map((path) => bad(`${path} is missing, although detections.db exists`, RESTORE));
}

/** Whether a start could read the end of the log. */
function checkLog({ log }: DataFolder): Outcome | [] {
  try {
    findTail(log, true);
    return [];
  } catch (error) {
    return bad(`the log in ${log} is damaged: ${reasonOf(error)}`, ALERT_ADVICE['log damaged']);
  }
}

function checkRole(folder: DataFolder, config: Config): Outcome | [] {
  try {
    requireRole(readRole(folder), folder, config.copy);
    return [];
  } catch (error) {
    return bad(reasonOf(error), DO_THIS);
  }
}

function checkSecret({ secret, detections }: DataFolder): Outcome {
  const todo = 'Restore it from a backup: without it, Wirewatch refuses all cursors that clients have.';
  const found = statSync(secret, { throwIfNoEntry: false });
  if (found === undefined)
    return existsSync(detections)
      ? bad('missing, although the databases are in use', todo)
      : ok('does not exist yet: the first start creates it');
  if (found.size !== SECRET_BYTES) return bad(`has ${found.size} bytes, expected ${SECRET_BYTES}`, todo);
  return (found.mode & OTHERS) === 0
    ? ok('present, and private to its user')
    : warn('other users can read it, and so forge cursors and photo addresses', `chmod 0600 ${secret}`);
}

/** Whether a start can create the accounts, subscriptions and keys of the configuration: creates them in memory. */
function checkConfigured({ preseed }: Config, folder: DataFolder, nowMs: number): Outcome | Outcome[] {
  if (Object.values(preseed).every(({ length }) => length === 0)) return [];
  try {
    const { seeds, readable_by_all } = readSecretFiles(preseed);
    const found = findAccess(folder);
    using copy = openContent(found.kind === 'sound' ? found.content : ':memory:');
    if (found.kind !== 'sound') makeSchema(copy, ACCESS_SCHEMA);
    const { differences } = createMissing(copy, seeds, nowMs);
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
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return bad(error.message, 'Fix the entry or the file: until then, Wirewatch cannot start.');
  }
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

function changedSettings(settings: Status['settings'] = null): Outcome | [] {
  if (settings === null || settings.what_to_do === null) return [];
  return warn(settingsText(settings), settings.what_to_do);
}

/** What a start needs besides its data folder: the place of the copy, the drop folder, certificates, files, programs. */
async function checkSurroundings(config: Config, nowMs: number): Promise<Checked[]> {
  const { ingest, log, alerts, copy, server, admin } = config;
  return [
    ['copy', copy.to === '' ? [] : await checkPlace(copy)],
    [
      'drop folder',
      await checkDropFolder(ingest.drop, usedFolders(dataFolder(config.dataFolder), config.photos.folder)),
    ],
    ['TLS', server.tls_certificate === '' ? checkPlain(server) : await checkTls(server, nowMs)],
    [
      'TLS of the console',
      admin.tls_certificate === '' ? [] : await checkTls({ ...admin, section: 'admin' }, nowMs),
    ],
    ['log file', log.file === '' ? [] : checkLogFile(log.file)],
    ['alert command', alerts.command.length === 0 ? [] : checkAlertCommand(alerts.command)],
  ];
}

/** Creates, lists, reads and deletes a small object there. */
async function checkPlace(copy: Config['copy']): Promise<Outcome> {
  const todo = 'Until the place can be written, no copy is kept. See: wirewatch manual backup';
  const folder = placeFolder(copy.to);
  if (folder !== null && !existsSync(folder))
    return warn(
      `${folder} does not exist yet`,
      'The first start creates it. Check that it is the right folder, and that its disk is mounted.',
    );
  return openTried(copy.to, copy).then(
    () => ok(copy.to),
    (error) => bad(reasonOf(error, copy.to), todo),
  );
}

/**
 * Whether files can be moved in the folder as ingest does. The file for the check has a name that begins with a dot,
 * which a running appliance ignores, and is removed.
 */
async function checkDropFolder(folder: string, used: readonly string[]): Promise<Outcome> {
  const problem = await requireSeparate(folder, used).catch(reasonOf);
  if (typeof problem === 'string') return bad(problem, DO_THIS);
  const rights =
    'Give the user that Wirewatch runs as write access to the folder and its subfolders, or name another with [ingest] drop.';
  return tried(folder, rights, () => {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found === undefined)
      return warn(
        `${folder} does not exist yet`,
        'The first start creates it and its subfolders. Check that it is the right folder, and that its disk is mounted.',
      );
    const draft = join(folder, `.check-${process.pid}-${randomBytes(6).toString('hex')}`);
    try {
      writeFileSync(draft, '', { flag: 'wx', mode: 0o600 });
      renameSync(draft, `${draft}.renamed`);
    } finally {
      rmSync(draft, { force: true });
      rmSync(`${draft}.renamed`, { force: true });
    }
    for (const path of OWN_FOLDERS.map((name) => join(folder, name)).filter((own) => existsSync(own))) {
      try {
        inFolder(folder, path.slice(folder.length + 1), () => {});
      } catch (error) {
        if (error instanceof ForeignFolder) return bad(error.problem, error.repair);
      }
      accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
      if (statSync(path).dev !== found.dev)
        return bad(
          `${path} is on another file system than ${folder}: files cannot be renamed into it`,
          'Put the drop folder and its subfolders on one file system.',
        );
    }
    return ok(`${folder}: files can be created and renamed, and its subfolders are on the same file system`);
  });
}

function checkPlain(server: Config['server']): Outcome {
  return isInTheClear(server)
    ? warn(
        `no certificate, and ${server.host} can be reached from other machines: keys cross the network unencrypted`,
        'Set [server] tls_certificate and tls_key. Or put a TLS proxy in front: on this machine with [server] host 127.0.0.1, or on another with its address in [server] trusted_proxies.',
      )
    : ok('no certificate: plain HTTP, for a proxy in front');
}

async function checkTls(paths: TlsPaths, nowMs: number): Promise<Outcome> {
  const todo =
    'Install a valid certificate with its key, which this user can read; a running Wirewatch loads them by itself.';
  try {
    const pair = await loadTlsPair(paths);
    const fault = validityError(pair, nowMs);
    if (fault === null) return ok(`${paths.tls_certificate}, valid until ${formatMs(pair.validToMs)}`);
    return (nowMs >= pair.validFromMs && nowMs < pair.validToMs ? warn : bad)(fault, todo);
  } catch (error) {
    return bad(reasonOf(error), todo);
  }
}

/** The file is not opened, since that would create it. */
function checkLogFile(path: string): Outcome {
  const todo = 'Create the folder, and give the user that Wirewatch runs as write access.';
  return tried(path, todo, () => {
    accessSync(existsSync(path) ? path : dirname(path), constants.W_OK);
    return ok(path);
  });
}

/** Looked for as the system does when it runs the command. */
function checkAlertCommand([program = '']: readonly string[]): Outcome {
  const places = program.includes('/') ? [''] : (process.env.PATH ?? '').split(delimiter);
  const todo = 'Install the program, or correct [alerts] command: until then, nobody is told of alerts.';
  const outcomes = places.map((folder) => {
    const path = join(folder, program);
    return tried(path, todo, () => {
      accessSync(path, constants.X_OK);
      return ok(path);
    });
  });
  return outcomes.find(({ status }) => status === 'ok') ?? outcomes[0] ?? bad(program, todo);
}
