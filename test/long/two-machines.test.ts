/**
 * A writer and a standby behind what sites put in front of them, configured as `wirewatch sample` says: nginx, which
 * passes over a machine that is gone, and keepalived, which makes the standby the writer.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Serving } from '../support/appliance.ts';
import { programCommand } from '../support/command.ts';
import { freePort } from '../support/free-port.ts';
import { without } from '../support/installed.ts';
import { createMachinePair } from '../support/machine-pair.ts';
import { startNginx, WITHOUT_NGINX } from '../support/nginx.ts';
import { granted, inBody, postToken } from '../support/token-client.ts';
import { until } from '../support/until.ts';

const pair = createMachinePair({ WIREWATCH_COPY_WAIT: 'true' });
const { work, place, one, other } = pair;
let writer: Serving;
let standby: Serving;
const started: ChildProcess[] = [];

before(async () => {
  writer = await one.serve();
  pair.drop(1);
  await writer.logged('a file that is read', ({ msg }) => msg === 'file applied');
  other.cli(['restore', place, '--replace']);
  standby = await other.serve();
});

after(() => {
  for (const child of started) child.kill('SIGTERM');
  pair.remove();
});

const sample = (name: string) => one.cli(['sample', name]).stdout;

async function accessToken(at: Serving): Promise<string> {
  const [, id = '', secret = ''] = /_live_(.{12})_(.*)$/.exec(one.key) ?? [];
  return (await granted(await postToken(at, inBody({ id, secret })))).access_token;
}

test('behind nginx both serve, and one that is gone is passed over', { skip: WITHOUT_NGINX }, async () => {
  const port = await freePort();
  const [, server = ''] = sample('nginx-standby.conf').split(/(?=listen 443 ssl;)/);
  const [upstream = ''] = sample('nginx-standby.conf').split('server {\n    listen 80;');
  const text = `${upstream}server {\n${server}`
    .replace(/listen 443 ssl;/, `listen 127.0.0.1:${port};`)
    .replace(/ *listen \[::\]:443 ssl;\n/, '')
    .replace(/ *ssl_.*\n/g, '')
    .replaceAll('192.0.2.11:8080', new URL(writer.url).host)
    .replaceAll('192.0.2.12:8080', new URL(standby.url).host);
  assert.ok(!/server 192|listen .*443/.test(text), text);
  started.push(startNginx(work, text));
  const ask = (path: string, credential = one.key) => {
    const headers = { Authorization: `Bearer ${credential}`, Host: 'detections.example.org' };
    return fetch(`http://127.0.0.1:${port}${path}`, { headers });
  };
  const since = new Date(Date.now() - 86_400_000).toISOString().replace(/\.\d+/, '');
  const changes = `/v1/detections/changes?since=${since}`;
  const read = async () => {
    const response = await ask(changes).catch(() => null);
    return response?.status === 200 ? ((await response.json()) as { data: unknown[] }).data.length : -1;
  };
  const remaining = async (credential: string) =>
    Number((await ask('/v1/me', credential)).headers.get('ratelimit-remaining'));
  await until('nginx', async () => (await read()) === 1);
  // Both are degraded, without images, and serve.
  for (let asked = 0; asked < 6; asked += 1) assert.equal((await ask('/v1/health')).status, 503);
  assert.equal(await read(), 1);
  const counted = await Promise.all([1, 2, 3, 4, 5, 6].map(() => remaining(one.key)));
  for (let token = 0; token < 6; token += 1) counted.push(await remaining(await accessToken(writer)));
  const used = Math.max(...counted) - Math.min(...counted) + 1;
  assert.equal(used, counted.length, 'one machine counts them all');
  // A token comes from the other machine where the first one hangs.
  void writer.kill('SIGSTOP');
  assert.match(await accessToken({ ...standby, url: `http://127.0.0.1:${port}` }), /_token_/);
  void writer.kill('SIGCONT');
  await standby.stop();
  // Each is sent to one of the two by its key: one that is not known is refused there.
  for (let key = 0; key < 20; key += 1) {
    const id = String.fromCharCode(97 + key).repeat(12);
    assert.equal((await ask(changes, `ww_live_${id}_`)).status, 401);
  }
  assert.equal(await read(), 1);
  standby = await other.serve();
});

/** It sends to nobody. */
const NETWORK = `
  ip link set lo up && ip link add one type veth peer name two && ip link set two up
  ip address add 192.0.2.1/24 dev one && ip link set one up`;
const withoutKeepalived =
  without('keepalived') ||
  (spawnSync('unshare', ['-n', 'sh', '-c', NETWORK]).status !== 0 && 'no network of its own is allowed here');

test('keepalived makes the standby the writer once the writer is gone', {
  skip: withoutKeepalived,
}, async () => {
  const { command, args } = programCommand(['promote', '--data', other.data], {});
  const promote = join(work, 'promote.sh');
  writeFileSync(promote, `#!/bin/sh\nexec ${[command, ...args].join(' ')} > ${work}/promoted 2>&1\n`, {
    mode: 0o755,
  });
  const text = sample('keepalived.conf')
    .replace('script_user wirewatch', 'script_user root')
    .replace('interface eth0', 'interface one')
    .replace(/script "\/bin\/sh .*"/, 'script "/bin/true"')
    .replace(/notify_master ".*"/, `notify_master "${promote}"`);
  const file = join(work, 'keepalived.conf');
  writeFileSync(file, text, { mode: 0o600 });
  await writer.kill();
  const keepalived = `keepalived -f ${file} -p ${work}/k.pid -r ${work}/v.pid -c ${work}/c.pid`;
  const script = `${NETWORK}
    ${keepalived} -t > ${work}/checked 2>&1 && exec ${keepalived} --dont-fork --log-console`;
  started.push(spawn('unshare', ['-n', 'sh', '-c', script], { stdio: 'ignore' }));
  await until(`the promotion, see ${work}/checked`, async () => {
    const health = (await (await standby.get('/v1/health')).json()) as { role: string };
    return health.role === 'writer';
  });
  assert.ok(existsSync(join(work, 'promoted')));
});

test("keepalived's question has the right answers", { skip: without('curl') }, async () => {
  const [, question = ''] = /script "\/bin\/sh -c '(.*)'"/.exec(sample('keepalived.conf')) ?? [];
  const ask = (url: string) => spawnSync('sh', ['-c', question.replace('http://127.0.0.1:8080', url)]).status;
  assert.notEqual(question, '');
  // Where keepalived did not do it.
  if (withoutKeepalived !== false) {
    await writer.kill();
    other.cli(['promote']);
  }
  assert.equal(ask(standby.url), 0);
  writer = await one.serve();
  await until('the takeover', () => ask(writer.url) === 1);
  await writer.stop();
  assert.equal(ask(writer.url), 1);
});
