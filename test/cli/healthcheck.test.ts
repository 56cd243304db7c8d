/** `wirewatch healthcheck`: its exit code, its one line, and how it finds the appliance. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { listeningUrl } from '../../src/config/listening.ts';
import { loadConfig } from '../../src/config/load.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { assertFailed, runBeside, succeedBeside } from '../support/command.ts';
import { freePort, listen } from '../support/free-port.ts';
import { inFolder, runProgram, serve } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

/** Without an installation, which the working directory may have. */
const NOWHERE = ['--data', testFolder()];

const healthcheck = (args: readonly string[], settings: Readonly<Record<string, string>> = {}) =>
  runBeside(['healthcheck', ...args], settings);

/** Runs `use` with a server that always sends this response. */
async function answering(answer: RequestListener, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(answer);
  try {
    await use(`http://127.0.0.1:${await listen(server)}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function health(status: number, pageWorthy: number, open = pageWorthy): RequestListener {
  const document = {
    status: status === 200 ? 'ok' : 'degraded',
    exports: { newswire: { newest_done: '2026-11-21T10:00:00Z' }, imagewire: { newest_done: null } },
    alerts: { open, page_worthy: pageWorthy, paused: 0 },
  };
  return (_, answer) => {
    answer.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document));
  };
}

test('exit code 0 and nothing if it is healthy, else 1 and why in one line; --json prints a document', async () => {
  const ended = 'the newest finished window of newswire ended at 2026-11-21T10:00:00Z';
  const none = 'no window of imagewire has been finished yet';
  const urgent = `2 open alerts need attention now; ${ended}; ${none}. See: wirewatch alert list`;
  const foreign: RequestListener = (_, answer) => void answer.writeHead(200).end('<html>');
  const cases: readonly (readonly [RequestListener, string | RegExp, status: number | null])[] = [
    [health(200, 0), '', 200],
    [health(503, 2), `wirewatch: degraded: ${urgent}\n`, 503],
    [health(503, 0, 1), `wirewatch: degraded: ${ended}; ${none}. See: wirewatch ingest status\n`, 503],
    [foreign, /answered with status 200, but the answer is not from Wirewatch.*\n$/, 200],
    [() => {}, /no answer from .* within 5 s\n$/, null],
  ];
  for (const [listener, said, status] of cases)
    await answering(listener, async (url) => {
      const args = ['--url', `${url}/`];
      const { status: code, stdout, stderr } = await healthcheck(args);
      assert.deepEqual([code, stdout], [said === '' ? 0 : 1, '']);
      if (typeof said === 'string') assert.equal(stderr, said);
      else assert.match(stderr, said);
      const document = JSON.parse((await healthcheck([...args, '--json'])).stdout);
      assert.deepEqual([document.healthy, document.url, document.status], [said === '', url, status]);
    });
  const nobody = await healthcheck(['--url', `http://127.0.0.1:${await freePort()}`]);
  assertFailed(nobody, 1, /nothing is listening at .*wirewatch serve/);
});

test('wrong usage is exit code 2, a wrong configuration 78', async () => {
  assert.equal((await healthcheck(['--url', 'ftp://a'])).status, 2);
  assert.equal((await healthcheck(NOWHERE, { WIREWATCH_SERVER_PORT: '0' })).status, 2);
  assert.equal((await healthcheck(NOWHERE, { WIREWATCH_SERVER_PORT: 'x' })).status, 78);
});

test('it finds the running appliance by the settings', () =>
  inFolder(async (folder) => {
    await using running = await serve(folder, ['--host', '0.0.0.0']);
    const { port } = new URL(running.url);
    // A new appliance has no finished window: it responds, but is not healthy.
    const degraded =
      /degraded: no window of newswire has been finished yet; .* See: wirewatch ingest status\n$/;
    assertFailed(await healthcheck(NOWHERE, { WIREWATCH_SERVER_PORT: port }), 1, degraded);
    const off = { WIREWATCH_SERVER_PORT: port, WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' };
    assert.doesNotMatch((await healthcheck(NOWHERE, off)).stderr, /imagewire/);
    // The address noted in its data folder takes precedence over the settings.
    assertFailed(await healthcheck(['--data', folder], { WIREWATCH_SERVER_PORT: '1' }), 1, degraded);
  }));

test('another process on its port is not mistaken for an appliance that was killed, or has never served', () =>
  inFolder((folder) =>
    answering(health(200, 0), async (url) => {
      const settings = { WIREWATCH_SERVER_PORT: new URL(url).port };
      const killed = join(folder, 'killed');
      await (await serve(killed)).kill();
      assert.ok(existsSync(join(killed, 'address')), 'as after a power cut');
      const never = join(folder, 'never');
      await succeedBeside(['account', 'add', 'agency', '--name', 'Agency', '--data', never]);
      const why = /^wirewatch: Wirewatch is not running on the data folder .*wirewatch serve/;
      for (const data of [killed, never]) {
        assertFailed(await healthcheck(['--data', data], settings), 1, why);
        const { healthy, url } = JSON.parse((await healthcheck(['--data', data, '--json'], settings)).stdout);
        assert.deepEqual([healthy, url], [false, null]);
      }
    }),
  ));

test("its own certificate need not be valid; another server's must", { skip: WITHOUT_OPENSSL }, () =>
  inFolder(async (folder) => {
    const { certificate, key } = makeCertificate(folder, 'own');
    const tls = { WIREWATCH_SERVER_TLS_CERTIFICATE: certificate, WIREWATCH_SERVER_TLS_KEY: key };
    await using running = runProgram(['serve', '--data', join(folder, 'data'), '--port', '0'], tls);
    const url = await running.url();
    assert.match(url, /^https:/);
    assert.match((await healthcheck(['--data', join(folder, 'data')], tls)).stderr, /degraded/);
    assert.match((await healthcheck(['--url', url])).stderr, /self-signed certificate/);
  }),
);

test('the address by the settings: a wildcard is loopback, IPv6 is bracketed, TLS is https', () => {
  const read = (env: Readonly<Record<string, string>>) =>
    listeningUrl(loadConfig({ flags: {}, env, file: '/dev/null', dataFolder: '/nowhere' }).server);
  for (const [WIREWATCH_SERVER_HOST, url] of Object.entries({
    '0.0.0.0': 'http://127.0.0.1:8080',
    '::': 'http://[::1]:8080',
    '192.0.2.1': 'http://192.0.2.1:8080',
    'wire.example': 'http://wire.example:8080',
  }))
    assert.equal(read({ WIREWATCH_SERVER_HOST }), url);
  assert.equal(read({ WIREWATCH_SERVER_PORT: '0' }), null);
  const tls = { WIREWATCH_SERVER_TLS_CERTIFICATE: '/a.pem', WIREWATCH_SERVER_TLS_KEY: '/a.key' };
  assert.equal(read(tls), 'https://127.0.0.1:8080');
});
