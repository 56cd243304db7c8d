/** Runs the manual's examples for operators exactly as printed: backups, certificates, secrets, configurations. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAccessTokens } from '../../src/auth/token.ts';
import { openDatabase } from '../../src/store/database.ts';
import { AS_OTHER, OTHER_ID, withoutAnotherUser } from '../support/another-user.ts';
import { createInstallation, dropRows, type Installation, ingestRows } from '../support/appliance.ts';
import { connectTls, sendRequest, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { onPath, programCommand } from '../support/command.ts';
import { idOf, newRow } from '../support/export-files.ts';
import { without } from '../support/installed.ts';
import { CHANGES, readerOf } from '../support/lab.ts';
import { example, topic } from '../support/manual.ts';
import { inFolder, serve } from '../support/program.ts';

const TIMEOUT_MS = 120_000;

/** All code blocks of a language, including those within lists. */
function blocksOf(text: string, language: string): string[] {
  const fence = new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\`$`, 'gm');
  return [...text.matchAll(fence)].map(([, indent = '', code = '']) =>
    code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

/** Runs shell lines with `wirewatch` on the PATH. @returns their output */
function sh(folder: string, code: string, env: Readonly<Record<string, string>> = {}): string {
  const PATH = onPath(join(folder, 'bin'));
  const { options } = programCommand([]);
  const { status, stdout, stderr } = spawnSync('sh', ['-eu', '-c', code], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...options.env, ...env, PATH },
    timeout: TIMEOUT_MS,
  });
  assert.equal(status, 0, `${code}\n${stdout}\n${stderr}`);
  return stdout;
}

const withInstallation = (use: (installation: Installation, folder: string) => Promise<void>) =>
  inFolder(async (folder) => {
    using installation = createInstallation();
    await use(installation, folder);
  });

test('the commands of the topic backup', () =>
  withInstallation(async (installation, folder) => {
    await ingestRows(installation);
    const commands = blocksOf(topic('backup'), 'sh');
    const run = (code: string) => {
      const own = code.replaceAll('/mnt/backups/wirewatch', join(folder, 'backups'));
      const now = own.replaceAll('2026-11-21T10:00:00Z', new Date().toISOString());
      return sh(folder, now, { WIREWATCH_DATA: installation.data });
    };
    const [backup = '', rehearse = '', restore = '', until = '', ...more] = commands;
    assert.deepEqual(more, []);
    run(backup);
    assert.match(run(rehearse), /backups is intact.*Restored .* 1 detection,.*rehearsal is intact/s);
    const held = ['access', 'installation.json', 'log', 'secret', 'try'];
    assert.deepEqual(readdirSync(join(folder, 'backups')).sort(), held);
    for (const name of held) assert.match(topic('backup'), new RegExp(`^  ${name}/?( |$)`, 'm'), name);
    const replaced = () => readdirSync(installation.data).filter((name) => name.startsWith('replaced-'));
    assert.match(restore, /restore .*--replace/);
    run(restore);
    assert.equal(replaced().length, 1);
    assert.match(until, /--until/);
    run(until);
    await ingestRows(installation);
  }));

test('the commands of the topic disaster-recovery: a client goes on with its cursor on the new machine', () =>
  withInstallation(async (installation, folder) => {
    await ingestRows(installation);
    const copy = join(folder, 'share');
    installation.cli(['backup', copy]);
    const changesOf = (url: string, start: string) =>
      readerOf(url, installation.key).read(`${CHANGES}?${start}`);
    const first = await installation.serve();
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const { next_cursor } = await changesOf(first.url, `since=${since}`);
    await first.stop();
    const blocks = blocksOf(topic('disaster-recovery'), 'sh');
    assert.equal(blocks.length, 2);
    for (const [index, code] of blocks.entries()) {
      const data = join(folder, `machine-${index}`);
      mkdirSync(data, { mode: 0o700 });
      const own = code
        .replace('/mnt/share/wirewatch', copy)
        .replace('/mnt/var/lib/wirewatch/', `${installation.data}/`)
        .replace(' /var/lib/wirewatch/', ` ${data}/`);
      sh(folder, own, { WIREWATCH_DATA: data });
      const run = await serve(data);
      const row = newRow();
      await dropRows(run, join(data, 'drop'), [row]);
      const { data: changes } = await changesOf(run.url, `cursor=${next_cursor}`);
      const versions = changes.map(({ version }: { version: number }) => version);
      assert.ok(changes.some(({ id }: { id: string }) => id === idOf(row)));
      assert.equal(Math.max(...versions) >= 1000, index === 0, 'versions rise where it may be needed');
      assert.equal(await run.stop(), 0);
    }
  }));

test('a leaked secret and access.db can sign tokens until the secret is replaced: cursors end, keys stay', () =>
  withInstallation(async (installation, folder) => {
    await ingestRows(installation);
    const get = (url: string, path: string, key = installation.key) => readerOf(url, key).get(path);
    using access = openDatabase(join(installation.data, 'access.db'), 'inspect');
    type Key = Parameters<ReturnType<typeof createAccessTokens>['issue']>[0];
    const row = access.prepare<[], Key>('SELECT id, prefix, hash FROM api_key').get();
    assert.ok(row !== undefined);
    const secret = readFileSync(join(installation.data, 'secret'));
    const forged = createAccessTokens(secret).issue(row, ['detections:read'], Date.now());

    const first = await installation.serve();
    const since = `${CHANGES}?since=${new Date(Date.now() - 3_600_000).toISOString()}`;
    const { next_cursor } = await readerOf(first.url, forged).read(since);
    const next = `${CHANGES}?cursor=${next_cursor}`;
    assert.equal((await get(first.url, next)).status, 200);
    await first.stop();

    sh(folder, example('security', 'new-secret').replace('wirewatch-data', installation.data));
    const second = await installation.serve();
    assert.equal((await get(second.url, next)).status, 400);
    assert.equal((await get(second.url, since, forged)).status, 401);
    assert.equal((await get(second.url, since)).status, 200);
    await second.stop();
  }));

test('the certificate for localhost is served', { skip: WITHOUT_OPENSSL }, () =>
  withInstallation(async (installation, folder) => {
    sh(folder, example('security', 'self-signed'));
    const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const serving = await installation.serve({
      WIREWATCH_SERVER_TLS_CERTIFICATE: files.certificate,
      WIREWATCH_SERVER_TLS_KEY: files.key,
    });
    assert.match(serving.url, /^https:/);
    const socket = await connectTls(Number(new URL(serving.url).port), files);
    assert.match(await sendRequest(socket, '/v1/health'), /^HTTP\/1\.1 \d{3} /);
    socket.destroy();
    await serving.stop();
  }),
);

test('requests of an address, and those refused for a key', { skip: without('jq') }, () =>
  withInstallation(async (installation, folder) => {
    const serving = await installation.serve();
    const wrong = 'Bearer ww_live_abcdefghij23_'.concat('a'.repeat(52));
    await (await fetch(`${serving.url}/v1/me`, { headers: { authorization: wrong } })).arrayBuffer();
    await serving.logged('the request', ({ msg }) => msg === 'request');
    await serving.stop();
    writeFileSync(join(folder, 'log'), serving.log.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const calls = blocksOf(topic('security'), 'sh').filter((code) => code.includes('jq'));
    const own = calls.join('').replaceAll('journalctl -u wirewatch -o cat', 'cat log');
    const lines = sh(folder, own.replace('192.0.2.7', '127.0.0.1')).trim().split('\n');
    const found = lines.map((line) => JSON.parse(line)).map(({ msg, status }) => `${msg} ${status}`);
    assert.deepEqual(found, ['request 401', 'request 401']);
  }),
);

test('root makes the copy before an update', { skip: withoutAnotherUser() }, () =>
  inFolder(async (folder) => {
    sh(folder, 'wirewatch account add acme --name Acme; touch own.toml; chmod 755 .');
    sh(folder, `head -c 32 /dev/urandom > wirewatch-data/secret; chown -R ${OTHER_ID} wirewatch-data`);
    const [update = ''] = blocksOf(topic('installation'), 'sh').filter((code) => code.includes('backup'));
    const own = update
      .replace('/var/lib/wirewatch', join(folder, 'wirewatch-data'))
      .replace('/etc/wirewatch/wirewatch.toml', join(folder, 'own.toml'))
      .replaceAll('/mnt/backups', join(folder, 'backups'))
      .replace('-o wirewatch -g wirewatch', `-o ${OTHER_ID} -g ${OTHER_ID}`)
      .replace('runuser -u wirewatch --', ['setpriv', ...AS_OTHER].join(' '));
    sh(folder, own);
    assert.ok(existsSync(join(folder, 'backups', 'before-update', 'installation.json')));
  }),
);

test('the entries of the topic preseeding create a working installation', () =>
  inFolder(async (folder) => {
    const [generate = ''] = blocksOf(topic('preseeding'), 'sh');
    const { key, id, hash } = JSON.parse(sh(folder, `${generate.trim()} --json`));
    const entries = example('preseeding', 'preseed')
      .replace('"abcdefghij23"', `"${id}"`)
      .replace(/hash = "[0-9a-f]+"/, `hash = "${hash}"`);
    const config = join(folder, 'wirewatch.toml');
    writeFileSync(config, entries);
    const settings = { WIREWATCH_CONFIG: config, WIREWATCH_SERVER_PORT: '0' };
    const [, check = ''] = blocksOf(topic('preseeding'), 'sh');
    sh(folder, check.split('\n')[0] ?? '', settings);
    const run = await serve(join(folder, 'wirewatch-data'), [], settings);
    await readerOf(run.url, key).read('/v1/me');
    assert.equal(await run.stop(), 0);
  }));
