/**
 * nginx, configured as `wirewatch sample nginx.conf` says, in front of Wirewatch: what a client can make the two read
 * differently. A second server passes bodies on as they arrive; otherwise nginx reads them to their end first.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { connect } from 'node:tls';
import { ambiguousRequests } from '../support/ambiguous-requests.ts';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { startNginx, WITHOUT_NGINX } from '../support/nginx.ts';
import { bearer, rawRequest, sendBytes } from '../support/raw-http.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const skip =
  WITHOUT_OPENSSL ||
  (process.platform !== 'linux' && 'only Linux has several addresses of its own') ||
  WITHOUT_NGINX;
/** From which nginx connects, the only one that Wirewatch trusts. */
const PROXY = '127.0.0.2';
const CLIENT = '127.0.0.3';
/** What clients pretend to be. */
const SPOOFED = '198.51.100.66';

let appliance: Appliance;
let folder: string;
let nginx: ChildProcess;
const ports = { buffered: 0, streamed: 0 };
showLogOfFailures(() => appliance?.serving());

/** The sample, with its upstream, port and certificate replaced. */
function serverOf(name: string, port: number, more: string): string {
  const { certificate, key } = makeCertificate(folder, name);
  return appliance
    .cli(['sample', 'nginx.conf'])
    .stdout.replace(/server \{\n {4}listen 80;.*?\n\}\n/s, '')
    .replace(/ *listen \[::\].*\n/, '')
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('upstream wirewatch', `upstream ${name}`)
    .replace('http://wirewatch', `http://${name}`)
    .replace('127.0.0.1:8080', new URL(appliance.serving().url).host)
    .replace(/(ssl_certificate) .*;/, `$1 ${certificate};`)
    .replace(/(ssl_certificate_key) .*;/, `$1 ${key};`)
    .replace('location / {', `location / { proxy_bind ${PROXY}; ${more}`);
}

const me = (headers = '') =>
  rawRequest('GET /v1/me', `Connection: close\r\n${bearer(appliance.key)}${headers}`);

/** Sends bytes. @returns all that comes until the connection ends, or until `isEnough` */
async function ask(port: number, bytes: string, isEnough?: (received: Buffer) => boolean): Promise<string> {
  const tcp = connectTcp({ port, host: '127.0.0.1', localAddress: CLIENT }).on('error', () => {});
  const socket = connect({ socket: tcp, rejectUnauthorized: false });
  return (await sendBytes(socket, Buffer.from(bytes, 'latin1'), isEnough)).toString('latin1');
}

/** The addresses of the requests in the log so far. */
function addresses() {
  const requests = appliance.serving().log.filter(({ msg }) => msg === 'request');
  return new Set(requests.map(({ address }) => address));
}

describe('through nginx', { skip }, () => {
  before(async () => {
    appliance = await startAppliance({
      WIREWATCH_SERVER_TRUSTED_PROXIES: PROXY,
      WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '1000000',
    });
    folder = testFolder();
    ports.buffered = await freePort();
    ports.streamed = await freePort();
    const buffered = serverOf('buffered', ports.buffered, '');
    const streamed = serverOf('streamed', ports.streamed, 'proxy_request_buffering off;');
    nginx = startNginx(folder, `${buffered}${streamed}`);
    await until('nginx', async () => (await ask(ports.streamed, me())).startsWith('HTTP/1.1 200'));
  });

  after(async () => {
    nginx?.kill();
    if (nginx?.exitCode === null) await once(nginx, 'exit');
    await appliance?.stop();
  });

  test('an ambiguous request hides no other, and spoils no answer to another client', async () => {
    const hidden = me(`X-Forwarded-For: ${SPOOFED}\r\n`);
    for (const port of Object.values(ports)) {
      for (const [what, bytes] of Object.entries(ambiguousRequests(hidden))) {
        // nginx keeps some connections open: the next answer is all that is needed.
        await ask(port, bytes, (answer) => answer.includes('\r\n\r\n'));
        const others = await Promise.all([1, 2, 3].map(() => ask(port, me())));
        for (const other of others) assert.match(other, /^HTTP\/1\.1 200 .*"account"/s, what);
      }
    }
    // What nginx has read has the address that it saw.
    assert.deepEqual([...addresses()], [CLIENT]);
  });

  test('pipelined requests are answered in their order, each once', async () => {
    const [health, missing] = [rawRequest('GET /v1/health'), rawRequest('GET /nowhere')];
    const answer = await ask(ports.buffered, `${health}${missing}${health}${missing}${me()}`);
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['503', '404', '503', '404', '200']);
  });

  test('no header of a client changes its address', async () => {
    for (const headers of [
      `X-Forwarded-For: ${SPOOFED}\r\n`,
      `X-Forwarded-For: ${SPOOFED}, ${PROXY}\r\n`,
      `X-Forwarded-For: ${SPOOFED}\r\nx-forwarded-for: ${PROXY}\r\n`,
      `X-Forwarded-For: ${`${PROXY},`.repeat(2000)}\r\n`,
      `X_Forwarded_For: ${SPOOFED}\r\n`,
      `Forwarded: for=${SPOOFED}\r\nX-Real-IP: ${SPOOFED}\r\n`,
      'X-Forwarded-For: "\r\n',
    ])
      assert.match(await ask(ports.buffered, me(headers)), /^HTTP\/1\.1 200 /, headers.slice(0, 80));
    for (const port of Object.values(ports))
      await ask(port, me(`Connection: X-Forwarded-For\r\nX-Forwarded-For: ${SPOOFED}\r\n`));
    assert.deepEqual([...addresses()], [CLIENT]);
  });

  test('what nginx lets through and Wirewatch does not is 431, and the next request is answered', async () => {
    assert.match(await ask(ports.buffered, me(`X: ${'x'.repeat(30_000)}\r\n`)), /^HTTP\/1\.1 200 /);
    const long = `X: ${'x'.repeat(30_000)}\r\nY: ${'y'.repeat(30_000)}\r\n`;
    assert.match(await ask(ports.buffered, me(long)), /^HTTP\/1\.1 431 .*"type":/s);
    assert.match(await ask(ports.buffered, me()), /^HTTP\/1\.1 200 /);
  });
});
