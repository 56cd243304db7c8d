/** The console's server: who gets in, by which link, Host and address, and who does not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, renameSync } from 'node:fs';
import { request } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import type { Jobs, Session } from '../../src/admin/console/api.ts';
import { certificateNames, isHostAccepted, ownNames } from '../../src/admin/host-header.ts';
import { createOperations } from '../../src/admin/thread-client.ts';
import { createSessions, LINK_MS, makeTicket, SESSION_MS } from '../../src/auth/console-sessions.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { startWorker } from '../../src/packed.ts';
import { HOUR_MS } from '../../src/time.ts';
import { createInstallation, sharedAppliance, startAppliance } from '../support/appliance.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { assertFailed } from '../support/command.ts';
import {
  consoleOf,
  linkOf,
  OWN_PAGE,
  openConsole,
  redeem,
  send,
  withSecret,
} from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';
import { LIVE, operationsOptions, testOperations } from '../support/live.ts';
import { inFolder } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';
import { words } from '../support/words.ts';

const READS = words(`
  changes session overview windows trends files customers detections/live history/audit jobs`);
const USER = `${userInfo().username} (alice)`;

const port = await freePort();
const origin = `http://127.0.0.1:${port}`;
const appliance = await sharedAppliance({ WIREWATCH_ADMIN_PORT: `${port}`, SUDO_USER: 'alice' });

test('a link starts one session of twelve hours', async () => {
  const link = linkOf(appliance, '--as', 'Ada Lovelace');
  assert.equal(new URL(link).origin, origin);
  const asked = `  ${USER}  console  operation asked for: kind "console-link", as "Ada Lovelace", read_only false`;
  const audited = appliance.cli(['audit']).stdout.trim().split('\n').at(-1) ?? '';
  assert.equal(audited.slice(audited.indexOf('  ')), asked);
  const reply = await redeem(link);
  assert.equal(reply.status, 200);
  const { secret, ...more } = JSON.parse(reply.text);
  assert.deepEqual([more, reply.headers['set-cookie']], [{}, undefined]);
  const session: Session = await consoleOf(origin, secret).get('session');
  const { name, read_only, demo } = session;
  assert.deepEqual([name, read_only, demo], [`${USER} as "Ada Lovelace"`, false, false]);
  assert.equal(Math.round((Date.parse(session.expires_at) - Date.now()) / 3_600_000), 12);
  const again = await redeem(link);
  assert.equal(again.status, 401);
  assert.match(again.text, /used already.*wirewatch console/);
});

test('a changed, truncated or forged link or session is refused', async () => {
  const link = linkOf(appliance);
  const { secret } = await openConsole(appliance);
  const forged = ['', 'a.b', secret, 'a'.repeat(5000)].map((token) => `${origin}/#login=${token}`);
  for (const wrong of [link.slice(0, -4), link.replace('#login=', '#login=x'), ...forged])
    assert.equal((await redeem(wrong)).status, 401, wrong);
  assert.equal((await redeem(link)).status, 200, 'none of these requests may use up the link');
  for (const body of [undefined, [], {}, { token: 7 }, 'text'])
    assert.equal((await send('POST', `${origin}/console/session`, OWN_PAGE, body)).status, 401);
});

test('every view and operation needs a session', async () => {
  const { secret } = await openConsole(appliance);
  const link = new URL(linkOf(appliance)).hash.slice('#login='.length);
  const changed = [secret.slice(0, -2), `x${secret}`, `${secret} `.repeat(2), link.slice(1)];
  for (const wrong of ['', 'a.b', link, ...changed]) {
    const nobody = consoleOf(origin, wrong);
    for (const path of [...READS, 'nothing', 'manual'])
      assert.equal((await nobody.ask(path)).status, 401, path);
    for (const { name } of OPERATIONS) assert.equal((await nobody.operate(name)).status, 401, name);
    assert.equal((await nobody.operate('nothing')).status, 401);
  }
});

test('the secret counts in its header only: a cookie or an address is worth nothing', async () => {
  const { secret } = await openConsole(appliance);
  const url = `${origin}/console/session`;
  const cookies = [`wirewatch_console_${port}=${secret}`, `wirewatch-session=${secret}`];
  for (const cookie of cookies) assert.equal((await send('GET', url, { cookie })).status, 401, cookie);
  assert.equal((await send('GET', `${url}?secret=${secret}&authorization=Bearer%20${secret}`)).status, 401);
  assert.equal((await send('GET', url, withSecret(secret))).status, 200);
});

test('a page of another origin is refused by Sec-Fetch-Site, or else by Origin', async () => {
  const console = await openConsole(appliance);
  const token = new URL(linkOf(appliance)).hash.slice('#login='.length);
  for (const [headers, status] of [
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ origin }, 200],
    [{}, 200],
    [{ 'sec-fetch-site': 'cross-site', origin }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'none' }, 403],
    [{ origin: 'http://127.0.0.1:1' }, 403],
    [{ origin: 'https://example.com' }, 403],
    [{ origin: 'null' }, 403],
  ] as const) {
    const what = JSON.stringify(headers);
    assert.equal((await console.operate('ingest resume', {}, headers)).status, status, what);
    const own = { ...headers, ...withSecret(console.secret) };
    assert.equal((await send('GET', `${origin}/console/overview`, own)).status, status, what);
    if (status === 403)
      assert.equal((await send('POST', `${origin}/console/session`, headers, { token })).status, 403);
  }
  assert.equal((await redeem(`${origin}/#login=${token}`)).status, 200, 'they must not use up the link');
});

test('a foreign Host (DNS rebinding) is 421, even with a session', async () => {
  const { secret } = await openConsole(appliance);
  for (const host of ['rebound.example.com', `rebound.example.com:${port}`, '198.51.100.7.nip.io'])
    for (const path of ['/', '/console/session', '/console/overview', '/operations/key-list']) {
      const { status } = await send('GET', `${origin}${path}`, { host, ...withSecret(secret) });
      assert.equal(status, 421, `${host}${path}`);
    }
});

test('other methods and other origins are refused', async () => {
  const { secret } = await openConsole(appliance);
  for (const method of ['PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH']) {
    const headers = { ...withSecret(secret), origin: 'https://example.com' };
    const reply = await send(method, `${origin}/console/session`, headers);
    assert.equal(reply.status, 405, method);
    assert.equal(reply.headers['access-control-allow-origin'], undefined);
  }
});

test('a read-only session sees everything, is offered no action, and can do none', async () => {
  const reader = await openConsole(appliance, '--read-only', '--as', 'Reader');
  assert.equal((await reader.get<Session>('session')).read_only, true);
  for (const path of READS) assert.equal((await reader.ask(path)).status, 200, path);
  assert.match((await (await openConsole(appliance)).ask('operations')).text, /"name":"account suspend"/);
  const before = (await reader.ask('history/audit')).text;
  for (const { name, kind } of OPERATIONS)
    for (const given of [{}, { id: 'agency' }]) {
      const { status, text } = await reader.operate(name, given);
      if (kind === 'act') assert.equal(status, 403, name);
      else assert.ok([200, 400, 404, 409].includes(status), `${name}: ${text}`);
    }
  assert.equal((await reader.ask('history/audit')).text, before);
  assert.deepEqual(await reader.get('operations'), { operations: [] });
  assert.deepEqual((await reader.get<Jobs>('jobs')).jobs, []);
});

test('a session can be ended alone; --end-all ends all, and unused links', async () => {
  const [one, other] = [await openConsole(appliance), await openConsole(appliance)];
  assert.equal((await one.post('session/end')).status, 200);
  assert.equal((await one.ask('overview')).status, 401);
  assert.equal((await other.ask('overview')).status, 200);
  const link = linkOf(appliance);
  appliance.cli(['console', '--end-all']);
  assert.equal((await other.ask('overview')).status, 401);
  assert.equal((await redeem(link)).status, 401);
  assert.equal((await (await openConsole(appliance)).ask('overview')).status, 200);
  const audited = / {2}console {2}operation asked for: kind "console-end-all"$/m;
  assert.match(appliance.cli(['audit']).stdout, audited);
});

test('a session makes no link, and so does not outlive itself; it can end all', async () => {
  const { operate } = await openConsole(appliance);
  for (const given of [{}, { as: 'Somebody' }, { read_only: true }, { end_all: false }]) {
    const { status, text } = await operate('console', given);
    assert.deepEqual([status, /wirewatch console/.test(text)], [403, true], text);
  }
  assert.equal((await operate('console', { end_all: true })).status, 200);
  assert.equal((await operate('console', { end_all: true })).status, 401);
});

test('an operation whose body comes once its session has ended is not done', async () => {
  const { secret } = await openConsole(appliance);
  const body = JSON.stringify({ id: 'late', name: 'Late' });
  const content = { 'content-type': 'application/json', 'content-length': `${body.length}` };
  const headers = { ...OWN_PAGE, ...withSecret(secret), ...content };
  const held = request(`${origin}/operations/account-add?held`, { method: 'POST', headers });
  held.write(body.slice(0, 1));
  const asked = () => appliance.serving().log.some(({ path }) => path === '/operations/account-add?held');
  await until('the head has come', asked);
  appliance.cli(['console', '--end-all']);
  held.end(body.slice(1));
  const [response] = await once(held, 'response');
  assert.equal(response.resume().statusCode, 401);
  assert.doesNotMatch(appliance.cli(['account', 'list']).stdout, /late/);
});

test('whoever asks for metrics keeps no operation waiting', async () => {
  const { operate } = await openConsole(appliance);
  const asked = Array.from({ length: 200 }, async (_, at) => {
    const options = { localAddress: `127.0.0.${2 + (at % 4)}`, agent: false };
    const [response] = await once(request(`${origin}/metrics`, options).end(), 'response');
    assert.equal(response.resume().statusCode, 200);
  });
  const replies = await Promise.all(Array.from({ length: 20 }, () => operate('key list')));
  for (const { status, text } of replies) assert.equal(status, 200, text);
  await Promise.all(asked);
});

test('while access.db cannot be read, sessions and what needs no access.db go on', async () => {
  const console = await openConsole(appliance);
  const path = join(appliance.data, 'access.db');
  renameSync(path, `${path}-away`);
  try {
    assert.equal((await console.ask('customers')).status, 503);
    assert.equal((await console.ask('overview')).status, 200);
    assert.equal((await fetch(`${appliance.serving().url}/v1/health`)).status, 503);
  } finally {
    renameSync(`${path}-away`, path);
  }
  await until('the console works again', async () => (await console.ask('customers')).status === 200);
});

test('sessions and links end with a restart', async () => {
  const console = await openConsole(appliance);
  const link = linkOf(appliance);
  await appliance.restart();
  assert.equal((await console.ask('overview')).status, 401);
  assert.equal((await redeem(link)).status, 401);
});

test('whoever sends wrong links shuts nobody out, and does not fill the log', async () => {
  const logged = () =>
    appliance.serving().log.filter(({ msg }) => msg === 'a link into the console was refused').length;
  const before = logged();
  for (let tries = 0; tries < 100; tries += 1) {
    const reply = await send('POST', `${origin}/console/session`, OWN_PAGE, { token: 'x' });
    assert.equal(reply.status, 401);
  }
  const console = await openConsole(appliance);
  assert.equal((await console.ask('overview')).status, 200);
  // Ten a minute, and the test may take more than one.
  assert.ok(logged() - before <= 20, `${logged() - before}`);
});

test('a standby is offered the one action that it takes', async () => {
  const operations = testOperations(testFolder(), { live: () => ({ ...LIVE, role: 'standby' }) });
  const { body } = await operations.view({ path: 'operations', query: '', mayAct: true });
  const names = JSON.parse(body).operations.map(({ name }: { name: string }) => name);
  assert.deepEqual(names, ['promote']);
});

test('the operations thread is started again by the next request when it has died', () =>
  inFolder(async (folder) => {
    const options = operationsOptions(folder);
    const threads: Worker[] = [];
    const start = () => {
      const thread = startWorker({ role: 'operations', settings: options.settings });
      threads.push(thread);
      return thread;
    };
    const thread = createOperations(options, start);
    try {
      assert.equal((await thread.view({ path: 'jobs', query: '', mayAct: false })).status, 200);
      await threads[0]?.terminate();
      assert.equal((await thread.view({ path: 'jobs', query: '', mayAct: false })).status, 200);
      assert.equal(threads.length, 2);
    } finally {
      await thread.close();
    }
  }));

test('"wirewatch console" says what to do if the console is off or Wirewatch is not running', async () => {
  await using appliance = await startAppliance();
  const ask = (...options: string[]) => appliance.cli(['console', ...options], { anyStatus: true });
  assertFailed(ask(), 1, /\[admin\] port, 9464/);
  await appliance.serving().stop();
  assertFailed(ask(), 1, /wirewatch serve/);
  assert.equal(ask('--end-all', '--read-only').status, 2);
});

const startMs = Date.parse('2026-11-21T12:00:00Z');
const sessions = createSessions();
const linkAt = (nowMs: number) => {
  const link = makeTicket({ by: { actor: 'ada' }, read_only: false }, nowMs);
  sessions.addLink(link);
  return link.token;
};

test('a link lasts ten minutes, a session twelve hours', () => {
  assert.match(linkAt(startMs), /^[\w-]{32}$/, 'it can be typed');
  assert.equal(sessions.redeem(linkAt(startMs), startMs + LINK_MS), null);
  assert.equal(sessions.redeem(linkAt(startMs), startMs - 1), null, 'a link from the future is refused');
  const begunMs = startMs + LINK_MS - 1;
  const { token } = sessions.redeem(linkAt(startMs), begunMs) ?? { token: '' };
  assert.equal(sessions.open(token, begunMs + SESSION_MS - 1)?.by.actor, 'ada');
  assert.equal(sessions.open(token, begunMs + SESSION_MS), null);
  assert.equal(sessions.open(token, begunMs - 1), null);
  const earlierMs = startMs - HOUR_MS;
  assert.notEqual(sessions.redeem(linkAt(earlierMs), earlierMs), null, 'after the clock was set back');
});

test('an unusable certificate is refused by the name of its setting', () => {
  const tls = { WIREWATCH_ADMIN_TLS_CERTIFICATE: '/nowhere.pem', WIREWATCH_ADMIN_TLS_KEY: '/nowhere.key' };
  using installation = createInstallation({ WIREWATCH_ADMIN_PORT: '9', ...tls });
  const refused = installation.cli(['serve', '--port', '0'], { anyStatus: true });
  assertFailed(refused, 78, /\[admin\] tls_\w+, \/nowhere/);
});

test(
  "on a network address the console speaks https, with its own or the server's TLS",
  { skip: WITHOUT_OPENSSL },
  () =>
    inFolder(async (folder) => {
      const { certificate, key } = makeCertificate(folder, 'console');
      for (const section of ['SERVER', 'ADMIN']) {
        await using appliance = await startAppliance({
          WIREWATCH_ADMIN_PORT: `${await freePort()}`,
          WIREWATCH_ADMIN_HOST: '0.0.0.0',
          [`WIREWATCH_${section}_TLS_CERTIFICATE`]: certificate,
          [`WIREWATCH_${section}_TLS_KEY`]: key,
        });
        const { origin, hash } = new URL(linkOf(appliance));
        assert.match(origin, /^https:/);
        const sent = tlsRequest(`${origin}/console/session`, {
          method: 'POST',
          ca: readFileSync(certificate),
          headers: OWN_PAGE,
        }).end(JSON.stringify({ token: hash.slice('#login='.length) }));
        const [response] = await once(sent, 'response');
        assert.equal(response.resume().statusCode, 200, section);
        const silent = connect(Number(new URL(origin).port), '127.0.0.1');
        silent.resume();
        // Node's own limit is longer than a test may take.
        if (section === 'ADMIN') await once(silent, 'close');
        silent.destroy();
      }
    }),
);

test('as Host, IP addresses and private names are accepted, public DNS names are not', () => {
  const own = ownNames('Wire.Example.com', 'machine');
  const accepted = `127.0.0.1 127.0.0.1:9464 10.1.2.3:80 [::1]:9464 [2001:db8::1] localhost:9464 LOCALHOST wirewatch:9464
    a.internal. nas.home.arpa wire.example.com:9464 machine machine.local:9464`;
  const refused = `evil.example.com evil.example.com:9464 localhost.evil.com evil.local evil.machine.local
    evilsvc.cluster.local 127.0.0.1.evil.com x.0x7f 1.2.3 999.1.1.1 [::1 [evil.com] localhost:9464:1 localhost@evil.com
    -.com`;
  for (const host of words(accepted)) assert.ok(isHostAccepted(host, own), host);
  for (const host of [undefined, '', 'a b', ...words(refused)]) assert.ok(!isHostAccepted(host, own), host);
});

test('over TLS, names in the certificate are accepted, too', () => {
  const names = certificateNames('DNS:wire.example.org, IP Address:10.0.0.1, DNS:*.agency.example');
  assert.deepEqual(names, ['wire.example.org', '.agency.example']);
  assert.deepEqual(certificateNames(undefined), []);
  for (const host of ['wire.example.org:9464', 'console.agency.example'])
    assert.ok(isHostAccepted(host, names), host);
  for (const host of ['agency.example.evil.com', 'evilagency.example'])
    assert.ok(!isHostAccepted(host, names), host);
});
