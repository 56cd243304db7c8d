/** The addresses to listen on, and the certificates. */
import { statSync } from 'node:fs';
import { createServer } from 'node:net';
import { isInTheClear } from '../config/listening.ts';
import type { Settings } from '../config/schema.ts';
import { checkTlsPair, readTlsFiles, type TlsPaths, validityError } from '../http/tls-pair.ts';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { isForbidden } from '../store/database-errors.ts';
import { formatMs } from '../time.ts';
import { bad, type Finding, finding, type Outcome, ok, warn } from './finding.ts';

type Server = Settings['server'];

/** @param isRunning whether an appliance runs on the data folder: then it uses the address */
export async function checkAddress(
  section: 'server' | 'admin',
  { host, port }: Pick<Server, 'host' | 'port'>,
  isRunning: boolean,
): Promise<Outcome> {
  if (port === 0) return ok(section === 'server' ? `${host}, any free port` : 'off: [admin] port is 0');
  const shown = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (isRunning) return ok(`${shown}, unless Wirewatch was started with other settings`);
  const fault = await listenError(host, port);
  if (fault === null) return ok(`${shown} is free`);
  if (isErrorCode(fault, 'EADDRINUSE'))
    return bad(
      `${shown} is in use by another program`,
      `Stop that program, or choose another [${section}] port.`,
    );
  if (isErrorCode(fault, 'EACCES')) {
    return bad(
      `${shown}: this user cannot listen on this port`,
      `Choose a [${section}] port of at least 1024, or grant CAP_NET_BIND_SERVICE.`,
    );
  }
  return bad(`${shown}: ${reasonOf(fault)}`, `Set [${section}] host to an address of this machine.`);
}

/** Listens for a moment, without answering. @returns why that is not possible; null if it is */
async function listenError(host: string, port: number): Promise<unknown> {
  const server = createServer((socket) => socket.destroy());
  const { promise, resolve } = Promise.withResolvers<unknown>();
  server.once('error', resolve);
  server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  return promise;
}

const READABLE_BY_ALL = 0o004;

export async function checkTls(server: Server, nowMs: number): Promise<Finding[]> {
  const { tls_certificate, tls_key } = server;
  if (tls_certificate === '') return [finding('TLS', checkPlain(server))];
  const pair = finding('TLS', await checkPair({ certificate: tls_certificate, key: tls_key }, nowMs));
  if (!isReadableByAll(tls_key)) return [pair];
  const readable = warn(`every user of this machine can read ${tls_key}`, `chmod o-r ${tls_key}`);
  return [pair, finding('TLS key', readable)];
}

/** The pair of the administration, if it has one of its own. */
export async function checkAdminTls(
  { admin, server }: Pick<Settings, 'admin' | 'server'>,
  nowMs: number,
): Promise<Finding[]> {
  const { port, tls_certificate, tls_key } = admin;
  if (port === 0 || tls_certificate === '' || tls_certificate === server.tls_certificate) return [];
  const paths: TlsPaths = { section: 'admin', certificate: tls_certificate, key: tls_key };
  return [finding('TLS', await checkPair(paths, nowMs))];
}

function checkPlain(server: Server): Outcome {
  return isInTheClear(server)
    ? warn(
        `no certificate, and ${server.host} can be reached from other machines: keys cross the network unencrypted`,
        'Set [server] tls_certificate and tls_key. Or put a TLS proxy in front: on this machine with [server] host 127.0.0.1, or on another with its address in [server] trusted_proxies.',
      )
    : ok('no certificate: plain HTTP, for a proxy in front');
}

function isReadableByAll(path: string): boolean {
  try {
    return (statSync(path).mode & READABLE_BY_ALL) !== 0;
  } catch {
    // Reported with the pair.
    return false;
  }
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
