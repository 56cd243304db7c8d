/** What a start needs besides its data folder: the drop folder, addresses, certificates, log file and alert command. */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { isInTheClear } from '../config/listening.ts';
import type { Config } from '../config/load.ts';
import { ForeignFolder, inFolder, OWN_FOLDERS } from '../drop/own-folder.ts';
import { checkTlsPair, readTlsFiles, type TlsPaths, validityError } from '../http/tls-pair.ts';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { isForbidden } from '../store/database-errors.ts';
import { formatMs } from '../time.ts';
import { bad, type Finding, finding, type Outcome, ok, tried, warn } from './finding.ts';

const READABLE_BY_ALL = 0o004;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/** @param isUsed whether the appliance that runs on the data folder listens on the port of a section already */
export async function checkSurroundings(
  config: Config,
  isUsed: (section: 'server' | 'admin') => boolean,
  nowMs: number,
): Promise<Finding[]> {
  const { ingest, log, alerts } = config;
  return [
    finding('drop folder', checkDropFolder(ingest.drop)),
    finding('listening address', await checkAddress('server', config, isUsed('server'))),
    ...(await checkTls(config, nowMs)),
    finding('administration', await checkAddress('admin', config, isUsed('admin'))),
    ...(await checkAdminTls(config, nowMs)),
    ...(log.file === '' ? [] : [finding('log file', checkLogFile(log.file))]),
    ...(alerts.command.length === 0 ? [] : [finding('alert command', checkAlertCommand(alerts.command))]),
  ];
}

/**
 * Whether files can be moved in the folder as ingest does, and whether others can interfere. The file for the check has a
 * name that begins with a dot, which a running appliance ignores, and is removed.
 */
function checkDropFolder(folder: string): Outcome {
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
    for (const path of OWN_FOLDERS.map((name) => join(folder, name)).filter((one) => existsSync(one))) {
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
    return (found.mode & WRITABLE_BY_OTHERS) !== 0 && (found.mode & STICKY) === 0
      ? warn(
          `${folder}: anyone who can write to it can also move archive/ and the files of others`,
          `chmod +t ${folder}`,
        )
      : ok(`${folder}: files can be created and renamed, and its subfolders are on the same file system`);
  });
}

async function checkAddress(section: 'server' | 'admin', config: Config, isOwn: boolean): Promise<Outcome> {
  const { host, port } = config[section];
  if (port === 0) return ok(section === 'server' ? `${host}, any free port` : 'off: [admin] port is 0');
  const shown = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (isOwn) return ok(`${shown}, unless Wirewatch was started with other settings`);
  const fault = await listenError(host, port);
  if (fault === null) return ok(`${shown} is free`);
  const [reason, todo] = isErrorCode(fault, 'EADDRINUSE')
    ? [' is in use by another program', `Stop that program, or choose another [${section}] port.`]
    : isErrorCode(fault, 'EACCES')
      ? [
          ': this user cannot listen on this port',
          `Choose a [${section}] port of at least 1024, or grant CAP_NET_BIND_SERVICE.`,
        ]
      : [`: ${reasonOf(fault)}`, `Set [${section}] host to an address of this machine.`];
  return bad(`${shown}${reason}`, todo);
}

/** Listens for a moment, without answering. @returns why that is not possible; null if it is */
async function listenError(host: string, port: number): Promise<unknown> {
  const server = createServer((socket) => socket.destroy());
  const { promise, resolve } = Promise.withResolvers<unknown>();
  server.once('error', resolve);
  server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  return promise;
}

async function checkTls({ server }: Config, nowMs: number): Promise<Finding[]> {
  const { host, tls_certificate, tls_key } = server;
  if (tls_certificate === '') {
    const plain = isInTheClear(server)
      ? warn(
          `no certificate, and ${host} can be reached from other machines: keys cross the network unencrypted`,
          'Set [server] tls_certificate and tls_key. Or put a TLS proxy in front: on this machine with [server] host 127.0.0.1, or on another with its address in [server] trusted_proxies.',
        )
      : ok('no certificate: plain HTTP, for a proxy in front');
    return [finding('TLS', plain)];
  }
  const pair = finding('TLS', await checkPair({ certificate: tls_certificate, key: tls_key }, nowMs));
  // What cannot be read is reported with the pair.
  const isOpen = pair.status !== 'bad' && (statSync(tls_key).mode & READABLE_BY_ALL) !== 0;
  const open = warn(`every user of this machine can read ${tls_key}`, `chmod o-r ${tls_key}`);
  return [pair, ...(isOpen ? [finding('TLS key', open)] : [])];
}

/** The pair of the administration, if it has one of its own. */
async function checkAdminTls({ admin, server }: Config, nowMs: number): Promise<Finding[]> {
  const { port, tls_certificate, tls_key } = admin;
  if (port === 0 || tls_certificate === '' || tls_certificate === server.tls_certificate) return [];
  const paths: TlsPaths = { section: 'admin', certificate: tls_certificate, key: tls_key };
  return [finding('TLS', await checkPair(paths, nowMs))];
}

async function checkPair(paths: TlsPaths, nowMs: number): Promise<Outcome> {
  const todo = 'Install a valid certificate with its key; a running Wirewatch loads them by itself.';
  try {
    const pair = checkTlsPair(paths, await readTlsFiles(paths));
    const fault = validityError(paths, pair, nowMs);
    if (fault === null) return ok(`${paths.certificate}, valid until ${formatMs(pair.validToMs)}`);
    const isValid = nowMs >= pair.validFromMs && nowMs < pair.validToMs;
    return isValid ? warn(fault, todo) : bad(fault, todo);
  } catch (error) {
    const isClosed = error instanceof Refused && isForbidden(error.cause);
    return bad(reasonOf(error), isClosed ? 'Give the user that Wirewatch runs as read access.' : todo);
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
  const isPath = program.includes('/');
  const places = isPath ? [''] : (process.env.PATH ?? '').split(delimiter);
  const found = places
    .map((folder) => join(folder, program))
    .map((path) =>
      tried(path, '', () => {
        accessSync(path, constants.X_OK);
        return ok(path);
      }),
    );
  const todo = 'Install the program, or correct [alerts] command: until then, nobody is told of alerts.';
  return (
    found.find(({ status }) => status === 'ok') ??
    bad(
      isPath ? `${program} does not exist, or this user cannot run it` : `no folder of PATH has ${program}`,
      todo,
    )
  );
}
