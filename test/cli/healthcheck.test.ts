/** `wirewatch healthcheck`: its exit code, its one line, and how it finds the appliance. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { listeningUrl } from '../../src/config/listening.ts';
import { loadConfig } from '../../src/config/load.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { runBeside } from '../support/command.ts';
import { inFolder, runProgram } from '../support/program.ts';

async function healthcheck(args: readonly string[], settings: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = await runBeside(['healthcheck', ...args], settings);
  return { code: status, stdout, stderr };
}

/** Runs `use` with a server that always sends this response. */
async function answering(answer: RequestListener, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  try {
    await use(`http://127.0.0.1:${port}`);
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

describe('what it says', () => {
  test('healthy: exit code 0, and nothing', () =>
    answering(health(200, 0), async (url) => {
      assert.deepEqual(await healthcheck(['--url', url]), { code: 0, stdout: '', stderr: '' });
      const { code, stdout } = await healthcheck(['--url', `${url}/`, '--json']);
      const document = JSON.parse(stdout);
      assert.equal(code, 0);
      assert.deepEqual(
        [document.healthy, document.url, document.status, document.reason, document.health.status],
        [true, url, 200, null, 'ok'],
      );
    }));

  test('degraded: exit code 1, and why in one line', () =>
    answering(health(503, 2), async (url) => {
      const { code, stdout, stderr } = await healthcheck(['--url', url]);
      assert.deepEqual([code, stdout], [1, '']);
      assert.equal(
        stderr,
        'wirewatch: degraded: 2 open alerts need attention now; the newest finished window of newswire ended at 2026-11-21T10:00:00Z; no window of imagewire has been finished yet. See: wirewatch alert list\n',
      );
      const document = JSON.parse((await healthcheck(['--url', url, '--json'])).stdout);
      assert.deepEqual([document.healthy, document.status, document.health.status], [false, 503, 'degraded']);
    }));

  test('without an alert as reason it points to the files; another server is named', async () => {
    const html: RequestListener = (_, answer) => void answer.writeHead(200).end('<html>');
    for (const [answer, message] of [
      [
        health(503, 0, 1),
        /degraded: the newest finished window of newswire ended at .* See: wirewatch ingest status\n$/,
      ],
      [html, /answered with status 200, but the answer is not from Wirewatch.*\n$/],
    ] as const)
      await answering(answer, async (url) => {
        const { code, stderr } = await healthcheck(['--url', url]);
        assert.equal(code, 1);
        assert.match(stderr, message);
      });
  });

  test('timeout: exit code 1', () =>
    answering(
      () => {},
      async (url) => {
        const { code, stderr } = await healthcheck(['--url', url, '--timeout', '1']);
        assert.equal(code, 1);
        assert.match(stderr, /no answer from .* within 1 s\n$/);
      },
    ));

  test('connection refused: exit code 1, with a hint', async () => {
    let gone = '';
    await answering(health(200, 0), async (url) => {
      gone = url;
    });
    const { code, stderr } = await healthcheck(['--url', gone]);
    assert.equal(code, 1);
    assert.match(stderr, /nothing is listening at .*wirewatch serve/);
  });

  test('wrong usage is exit code 2, a wrong configuration 78', async () => {
    for (const args of [
      ['--url', 'ftp://a'],
      ['--timeout', '0'],
    ])
      assert.equal((await healthcheck(args)).code, 2, args.join(' '));
    assert.equal((await healthcheck([], { WIREWATCH_SERVER_PORT: '0' })).code, 2);
    assert.equal((await healthcheck([], { WIREWATCH_SERVER_PORT: 'x' })).code, 78);
  });
});

test('it finds the running appliance by the settings', () =>
  inFolder(async (folder) => {
    const running = runProgram(['serve', '--data', folder, '--host', '0.0.0.0', '--port', '0']);
    const { port } = new URL(await running.url());
    // A new appliance has no finished window: it responds, but is not healthy.
    // The address noted in its data folder takes precedence over the settings.
    for (const [args, configured] of [
      [[], port],
      [['--data', folder], '1'],
    ] as const) {
      const { code, stderr } = await healthcheck(args, { WIREWATCH_SERVER_PORT: configured });
      assert.equal(code, 1);
      assert.match(stderr, /degraded: no export file has been read yet\. See: wirewatch ingest status\n$/);
    }
    await running.stop();
  }));

test('another process on the port is not mistaken for a stopped appliance', () =>
  inFolder((folder) =>
    answering(health(200, 0), async (url) => {
      const settings = { WIREWATCH_SERVER_PORT: new URL(url).port };
      const running = runProgram(['serve', '--data', folder, '--port', '0']);
      await running.url();
      // As after a power cut: the address file remains.
      running.kill('SIGKILL');
      await running.ended;
      assert.ok(existsSync(join(folder, 'address')));
      const { code, stderr } = await healthcheck(['--data', folder], settings);
      assert.equal(code, 1);
      assert.match(stderr, /^wirewatch: Wirewatch is not running on the data folder .*wirewatch serve/);
      const { stdout } = await healthcheck(['--data', folder, '--json'], settings);
      assert.deepEqual([JSON.parse(stdout).healthy, JSON.parse(stdout).url], [false, null]);
    }),
  ));

test('an installation that has never served is not running, whoever has its port', () =>
  inFolder((folder) =>
    answering(health(200, 0), async (url) => {
      const settings = { WIREWATCH_SERVER_PORT: new URL(url).port };
      const added = await runBeside(['account', 'add', 'agency', '--name', 'Agency', '--data', folder]);
      assert.equal(added.status, 0);
      const { code, stderr } = await healthcheck(['--data', folder], settings);
      assert.equal(code, 1);
      assert.match(stderr, /^wirewatch: Wirewatch is not running on the data folder .*wirewatch serve/);
    }),
  ));

test(
  "an appliance with a self-signed certificate is checked over TLS; another server's must be valid",
  {
    skip: WITHOUT_OPENSSL,
  },
  () =>
    inFolder(async (folder) => {
      const { certificate, key } = makeCertificate(folder, 'own');
      const tls = { WIREWATCH_SERVER_TLS_CERTIFICATE: certificate, WIREWATCH_SERVER_TLS_KEY: key };
      const running = runProgram(['serve', '--data', join(folder, 'data'), '--port', '0'], tls);
      const line = await running.until('its address', () =>
        running.log().find(({ msg }) => msg === 'listening'),
      );
      const url = String(line.url);
      assert.match(url, /^https:/);
      const asked = await healthcheck(['--data', join(folder, 'data')], tls);
      assert.match(asked.stderr, /degraded/);
      assert.match((await healthcheck(['--url', url])).stderr, /self-signed certificate/);
      await running.stop();
    }),
);

describe('the address, by settings', () => {
  const read = (env: Record<string, string>) =>
    listeningUrl(loadConfig({ flags: {}, env, file: '/dev/null', dataFolder: '/nowhere' }).server);

  test('a wildcard address becomes loopback, IPv6 is bracketed, TLS is https', () => {
    const host = (text: string) => read({ WIREWATCH_SERVER_HOST: text });
    assert.equal(host('0.0.0.0'), 'http://127.0.0.1:8080');
    assert.equal(host('::'), 'http://[::1]:8080');
    assert.equal(host('192.0.2.1'), 'http://192.0.2.1:8080');
    assert.equal(host('wire.example'), 'http://wire.example:8080');
    assert.equal(read({ WIREWATCH_SERVER_PORT: '0' }), null);
    const tls = { WIREWATCH_SERVER_TLS_CERTIFICATE: '/a.pem', WIREWATCH_SERVER_TLS_KEY: '/a.key' };
    assert.equal(read(tls), 'https://127.0.0.1:8080');
  });
});
