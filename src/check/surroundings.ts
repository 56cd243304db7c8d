/** Checks what a start needs besides its data folder: the place of the copy, the drop folder, certificates, files, programs. */
import { accessSync, closeSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { isInTheClear } from '../config/listening.ts';
import type { Config } from '../config/load.ts';
import { openPlace, tryPlace } from '../copy/open-place.ts';
import { refuseEmptied } from '../copy/own-copy.ts';
import { checkWritable, OWN_FOLDERS } from '../drop/own-folder.ts';
import { loadTlsPair, type TlsPaths, validityError } from '../http/tls-pair.ts';
import { openLogFile } from '../log-output.ts';
import { isErrorCode, unlessError } from '../refused.ts';
import { type DataFolder, isThere, requireSeparate, statsOf, usedFolders } from '../store/folder.ts';
import { formatMs } from '../time.ts';
import { bad, type Check, type Outcome, ok, warn } from './finding.ts';

const INSTALL_CERTIFICATE =
  'Install a valid certificate with its key, which this user can read; a running Wirewatch loads them by itself.';

/** Whether the folder belongs to this user, or is missing. */
export function isOwn({ root }: DataFolder): boolean {
  const uid = statsOf(root, statSync)?.uid;
  return uid === undefined || uid === (process.getuid?.() ?? uid);
}

export async function checkSurroundings(config: Config, folder: DataFolder, check: Check): Promise<void> {
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
  const created = isMissing ? createdByStart(copy.to, folder) : null;
  if (created === null) await tryPlace(place);
  return created ?? ok(copy.to);
}

/**
 * Null if a start does not create it: in a parent that is missing, or behind a link, since a disk may not be mounted.
 * @throws the file system's error if this user cannot
 */
function createdByStart(path: string, { root }: DataFolder): Outcome | null {
  const parent = dirname(path);
  if (isThere(path) || (parent !== root && !existsSync(parent))) return null;
  if (existsSync(parent)) accessSync(parent, constants.W_OK | constants.X_OK);
  return warn(
    `${path} does not exist`,
    'A start creates it. Check that it is the right folder, and that its disk is mounted.',
  );
}

/** Whether files can be moved out of the folder, and into its subfolders. */
async function checkDrop({ ingest: { drop }, photos }: Config, folder: DataFolder): Promise<Outcome> {
  await requireSeparate(drop, usedFolders(folder, photos.folder));
  const found = statSync(drop, { throwIfNoEntry: false });
  const created = found === undefined ? createdByStart(drop, folder) : null;
  if (created !== null) return created;
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
  const isExecutable = (path: string) =>
    unlessError(false, () => {
      accessSync(path, constants.X_OK);
      return true;
    });
  const path = paths.find(isExecutable) ?? paths[0] ?? program;
  accessSync(path, constants.X_OK);
  return ok(path);
}
