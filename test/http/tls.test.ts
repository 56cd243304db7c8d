/** TLS: protocols and refusals, and how the program loads certificates. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect, type SecureVersion } from 'node:tls';
import {
  type CertificateFiles,
  connectTls,
  makeCertificate,
  overwrite,
  presentedName,
  sendRequest,
  useCertificates,
  WITHOUT_OPENSSL,
} from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { inFolder, type LogLine, runProgram } from '../support/program.ts';
import { exchangeBytes } from '../support/raw-http.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';
import { words } from '../support/words.ts';

const { folder, first, copyOf } = useCertificates();
const skip = WITHOUT_OPENSSL;

describe('a server with a certificate', { skip }, () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({ tls: first, max_connections: 3 });
  });
  after(() => server?.close());

  test('speaks https, and shows https in its URL', async () => {
    assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    const socket = await connectTls(server.port, first);
    assert.match(await sendRequest(socket, '/v1/health'), /^HTTP\/1\.1 200 OK\r\n/);
    const refused = new RegExp(`"type":"${server.url}/errors/not_found"`);
    assert.match(await sendRequest(socket, '/nothing'), refused);
    socket.destroy();
  });

  /** @param cipher without security levels, since the client would not offer the old ones */
  async function speak(port: number, pair: CertificateFiles, version: SecureVersion, cipher = 'DEFAULT') {
    const ca = readFileSync(pair.certificate);
    const old = { minVersion: version, maxVersion: version, ciphers: `${cipher}@SECLEVEL=0` };
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca, ...old });
    socket.on('error', () => {});
    await once(socket, 'secureConnect');
    return socket;
  }

  test('TLS 1.2 and 1.3 are spoken, 1.1 is not', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
      (await speak(server.port, first, version)).destroy();
    await assert.rejects(speak(server.port, first, 'TLSv1.1'), /alert protocol version/);
  });

  test('TLS 1.2 has forward secrecy and authenticated encryption, and no renegotiation', async () => {
    const rsa = makeCertificate(folder, 'rsa', 'rsa');
    await using other = await startTestServer({ tls: rsa });
    const speakRsa = (cipher: string) => speak(other.port, rsa, 'TLSv1.2', cipher);
    const speakEc = (cipher: string) => speak(server.port, first, 'TLSv1.2', cipher);
    for (const cipher of words('AES128-GCM-SHA256 AES256-SHA ECDHE-RSA-AES128-SHA ECDHE-RSA-AES256-SHA384'))
      await assert.rejects(speakRsa(cipher), /handshake failure/, cipher);
    await assert.rejects(speakEc('ECDHE-ECDSA-AES128-SHA256'), /handshake failure/);
    for (const cipher of ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'])
      (await speakRsa(cipher)).destroy();
    const socket = await speakEc('ECDHE-ECDSA-AES128-GCM-SHA256');
    const refusal = new Promise((resolve) => socket.once('error', resolve).once('close', resolve));
    socket.renegotiate({}, (error) => assert.ok(error instanceof Error));
    assert.match(String(await refusal), /no renegotiation|NO_RENEGOTIATION/i);
  });

  test('plain HTTP is 400, with a hint', async () => {
    const reply = await exchangeBytes(server.port, 'GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n');
    assert.match(reply, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(reply, /X-Request-Id: /);
    assert.match(reply, /Content-Type: application\/problem\+json/);
    assert.match(reply, /"detail":"This port accepts HTTPS only\."/);
  });

  test('max_connections counts connections in their handshake, and the oldest makes room', async () => {
    const silent = [1, 2, 3].map(() => connectTcp(server.port, '127.0.0.1'));
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    await until('all', () => server.running.connections() === 3);
    const ended = once(silent[0] ?? assert.fail(), 'close');
    const socket = await connectTls(server.port, first);
    await ended;
    // After its handshake it is an idle one, which makes room, too.
    const closed = once(socket, 'close');
    const others = [await connectTls(server.port, first), await connectTls(server.port, first)];
    others.push(await connectTls(server.port, first));
    await closed;
    assert.equal(server.running.connections(), 3);
    for (const one of others) one.destroy();
  });

  test('closing ends handshakes and idle connections at once, and completes a response', async () => {
    const other = await startTestServer({ tls: first });
    const silent = connectTcp(other.port, '127.0.0.1');
    await once(silent, 'connect');
    const idle = await connectTls(other.port, first);
    await sendRequest(idle, '/v1/health');
    const ended = [silent, idle].map((socket) => {
      socket.on('error', () => {});
      return once(socket, 'close');
    });
    await Promise.all([other.running.close(600_000), ...ended]);
    const isLate = other.lines.map(({ reason }) => reason).includes('ERR_TLS_HANDSHAKE_TIMEOUT');
    assert.ok(!isLate, 'a stop must end the handshake before its timeout');
    await other.close();
  });
});

describe('the program', { skip }, () => {
  test('loads renewed files; ends handshakes that never start', () =>
    inFolder(async (root) => {
      const files = copyOf(first, 'served');
      const config = join(folder, 'served.toml');
      // Paths are relative to the configuration file.
      writeFileSync(config, '[server]\ntls_certificate = "served.pem"\ntls_key = "served.key"\n');
      const adminPort = `${await freePort()}`;
      const args = ['serve', '--data', join(root, 'data'), '--port', '0', '--config', config];
      const run = runProgram(args, { WIREWATCH_ADMIN_PORT: adminPort });
      const url = await run.url();
      assert.match(url, /^https:/);
      const expires = async () => {
        const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
        return Number(/^wirewatch_certificate_expires_timestamp_seconds (.*)$/m.exec(text)?.[1]) * 1000;
      };
      const validTo = ({ certificate }: CertificateFiles) =>
        new X509Certificate(readFileSync(certificate)).validToDate.getTime();
      assert.equal(await expires(), validTo(first));
      const port = Number(new URL(url).port);
      const open = await connectTls(port, first);
      await sendRequest(open, '/v1/health');
      const silent = connectTcp(port, '127.0.0.1');

      overwrite(files, makeCertificate(folder, 'third', 'ec', 30));
      await run.logged('the renewal', ({ msg }) => msg === 'certificate renewed');
      assert.equal(await presentedName(port, files), 'third');
      assert.equal(await expires(), validTo(files));
      assert.notEqual(await expires(), validTo(first));
      const reply = await sendRequest(open, '/v1/health');
      assert.match(reply, /^HTTP\/1\.1 503/, 'the open connection must continue');

      writeFileSync(files.key, 'broken');
      // A renewal that was half written may have had one, with another reason.
      const reason = /served\.key: no PEM private key without a passphrase/;
      await run.logged(
        'the warning',
        (line) => line.msg.startsWith('the new certificate cannot') && reason.test(String(line.reason)),
      );
      assert.equal(await presentedName(port, files), 'third');
      const isAlert = ({ msg, alert }: LogLine) =>
        msg === 'alert opened' && alert === 'certificate not usable';
      await run.logged('the alert', isAlert);
      assert.doesNotMatch(run.stderr(), /PRIVATE/);
      open.destroy();
      await run.until('the end of a handshake that never began', () => silent.closed || undefined);
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
    }));
});
