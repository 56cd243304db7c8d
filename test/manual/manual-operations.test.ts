/** The manual for operators: each symptom is really caused, and its commands do what the text says. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { manualHtml } from '../../src/manual/html.ts';
import { formatWindowStart } from '../../src/time.ts';
import { createKey, sharedAppliance } from '../support/appliance.ts';
import { assertFailed, onPath, programCommand, succeed } from '../support/command.ts';
import { assertSameContent, contentOfDetections, withoutLog } from '../support/database-content.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { without } from '../support/installed.ts';
import { example, tableRows, topic } from '../support/manual.ts';
import { until } from '../support/until.ts';

const SETTINGS = {
  WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '20',
  WIREWATCH_LIMITS_UNSEEN_KEY_IDS_PER_MINUTE: '5',
  WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '2',
};
const NEEDED = { skip: without('jq') };

const appliance = await sharedAppliance(SETTINGS);
const bin = `${appliance.data}-bin`;
const PATH = onPath(bin);
// A fake journalctl prints the log of this run.
writeFileSync(join(bin, 'journalctl'), `#!/bin/sh\ncat '${bin}/log'\n`);
// The tests start and stop the appliance themselves.
writeFileSync(join(bin, 'systemctl'), '#!/bin/sh\n');
for (const name of ['journalctl', 'systemctl']) chmodSync(join(bin, name), 0o755);

/** Runs an example of the topic exactly as printed, except for the installation's paths. */
const run = (name: string, changes: Readonly<Record<string, string>> = {}) =>
  runExample('troubleshooting', name, changes);

function runExample(of: string, name: string, changes: Readonly<Record<string, string>>): string {
  const places = {
    '/srv/exports': appliance.drop,
    '/var/lib/wirewatch': appliance.data,
    'wirewatch healthcheck': `wirewatch healthcheck --url ${appliance.serving().url}`,
    ...changes,
  };
  let code = example(of, name);
  for (const [place, own] of Object.entries(places)) code = code.replaceAll(place, own);
  const log = appliance.serving().log.map((line) => `${JSON.stringify(line)}\n`);
  // The journal also has systemd's own lines.
  writeFileSync(join(bin, 'log'), `Started wirewatch.service.\n${log.join('')}`);
  const { env, cwd } = programCommand([]).options;
  const { stdout, stderr, status } = spawnSync('sh', ['-uc', code], {
    cwd: cwd ?? bin,
    env: { ...env, ...SETTINGS, PATH, WIREWATCH_DATA: appliance.data },
    encoding: 'utf8',
  });
  assert.ok(status === 0 || status === 1, `${name}: ${status} ${stderr}`);
  return `${stdout}${stderr}`;
}

const cli = (...args: string[]) => appliance.cli(args, { anyStatus: true });
const json = (text: string): Record<string, unknown>[] =>
  Array.from(text.matchAll(/^\{.*$/gm), ([line]) => JSON.parse(line));

test('every example runs', NEEDED, () => {
  const names = [...topic('troubleshooting').matchAll(/<!-- example: ([a-z-]+) -->/g)];
  assert.ok(names.length > 15);
  for (const [, name = ''] of names) run(name);
});

test('it links to each of its symptoms', () => {
  const text = topic('troubleshooting');
  const ids = Array.from(manualHtml(text, '').matchAll(/<h2 id="([^"]+)"/g), ([, id = '']) => id);
  const others = ids.filter((id) => !text.includes(`](#${id})`));
  assert.deepEqual(others, ['if-none-of-this-helps']);
});

describe('no detections arrive', () => {
  test('a pause is in the line ingest, and resume ends it', async () => {
    cli('ingest', 'pause');
    assert.match(run('no-detections'), /^ingest +paused since/m);
    appliance.cli(['ingest', 'resume']);
    assert.match(run('no-detections'), /^ingest +not paused/m);
  });

  test('rows without a subscription: CREATED is 0, an alert, and replay applies them', async () => {
    const name = fileName('newswire', nextWindowMs());
    const row = newRow({ subscription_id: 7009 });
    await appliance.dropped(name, ndjson([row]));
    assert.match(run('no-detections'), new RegExp(`${name} +applied +1 +0 +0 `));
    await until('the alert', () => run('no-detections').includes('rows skipped'));
    const replayed = runExample('operations', 'replay', { '7003': '7009', 'account acme': 'account agency' });
    assert.match(replayed, /1 detections? created/);
  });
});

test('a file that failed is explained, held when fixed, and read by a reset', async () => {
  const windowMs = nextWindowMs();
  const name = fileName('newswire', windowMs);
  await appliance.dropped(name, ndjson([newRow({ strength_score: 140 })]));
  const shown = run('file-failed', { 'newswire.20261121T1010Z.ndjson': name });
  assert.match(shown, /strength_score: expected .*, found 140 \(line 1\)/);
  assert.match(shown, /held/);
  assert.equal((await appliance.dropped(name, ndjson([newRow()]))).msg, 'file held');
  const reset = cli('window', 'reset', 'newswire', formatWindowStart(windowMs), '--json');
  assert.equal(JSON.parse(reset.stdout).status, 'done', reset.stderr);
});

describe('a client', NEEDED, () => {
  /** Waits for the log line of a request. */
  const logged = ({ headers }: Response) =>
    appliance.serving().logged('the request', ({ request_id }) => request_id === headers.get('x-request-id'));
  const refused = async (status: number, path: string, key: string) => {
    const answer = await appliance.get(path, key);
    const { detail } = JSON.parse(await answer.text());
    assert.equal(answer.status, status, detail);
    await logged(answer);
    return String(detail);
  };

  test('401: without a key the line has no claimed_key_id, a broken one is named, a revoked one is in the list', async () => {
    const key = createKey(appliance.cli, 'agency', '7001');
    const [, , id = ''] = key.split('_');
    const bare = await fetch(`${appliance.serving().url}/v1/me`);
    assert.equal(bare.status, 401);
    await logged(bare);
    await refused(401, '/v1/me', key.slice(0, -3));
    cli('key', 'revoke', id, '--yes');
    await refused(401, '/v1/me', key);
    const shown = run('refused-requests');
    const claimed = json(shown).map(({ claimed_key_id }) => claimed_key_id);
    assert.deepEqual(claimed, [undefined, id, id]);
    assert.match(shown, new RegExp(`${id} .*revoked`));
  });

  test('429: the line has the limit, and the table has every one', async () => {
    const { url } = appliance.serving();
    const key = createKey(appliance.cli, 'agency', '7001');
    const [, , id = ''] = key.split('_');
    const changes = `/v1/detections/changes?since=${new Date(Date.now() - 60_000).toISOString()}`;
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow(), newRow()]));
    cli('key', 'set', id, '--daily-rows', '1');
    assert.equal((await appliance.get(changes, key)).status, 200);
    assert.match(await refused(429, changes, key), /daily allowance/);
    cli('key', 'set', id, '--daily-rows', 'none');
    assert.equal((await appliance.get(changes, key)).status, 200);
    // Each from another address, of which ten lines are logged.
    const from = (last: number, bearer: string) => ({
      headers: { authorization: `Bearer ${bearer}`, 'x-forwarded-for': `192.0.2.${last}` },
    });
    await untilRefused(() => fetch(`${url}/v1/me`, from(1, key)));
    const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: 'x' });
    await untilRefused(() => fetch(`${url}/oauth/token`, { ...from(2, ''), method: 'POST', body }));
    // The id itself would be refused by the limit of its key.
    const letters = 'abcdefgh'.replace(id.charAt(0), 'i');
    let tried = 0;
    await untilRefused(() => {
      tried += 1;
      const other = `${letters.charAt(tried % 8)}${id.slice(1)}`;
      return fetch(`${url}/v1/me`, from(3, key.replace(id, other)));
    });
    const limits = new Set(json(run('limits')).map(({ limit }) => limit));
    assert.deepEqual([...limits].sort(), ['daily_rows', 'requests', 'token_requests', 'unseen_key_ids']);
    for (const limit of limits)
      assert.ok(topic('troubleshooting').includes(`| \`${limit}\` |`), String(limit));
  });

  async function untilRefused(ask: () => Promise<Response>): Promise<void> {
    for (let count = 0; count < 100; count += 1) {
      const answer = await ask();
      if (answer.status === 429) return void (await logged(answer));
    }
    assert.fail('no request was refused');
  }
});

test('health is 503: healthcheck shows why', async () => {
  assert.match(run('health'), /degraded: .*newswire.*wirewatch /s);
});

test('it does not start with a damaged log: new logs lose nothing, nor does a backup that has what is damaged', async () => {
  await appliance.serving().stop();
  damageLog();
  assertFailed(cli('serve', '--port', '0'), 78, /wirewatch compact.*restore BACKUP --replace/s);
  damageLog();
  assert.match(run('damaged'), /is intact/);
  const backup = `${appliance.data}-backup`;
  const content = withoutLog(contentOfDetections(appliance.data));
  appliance.cli(['backup', backup]);
  damageLog();
  assert.match(run('damaged'), /log damaged: 1/);
  const restored = runExample('operations', 'restore-over', { '/mnt/backups/wirewatch': backup });
  assert.match(run('damaged'), /is intact/, restored);
  // Nobody knows what clients have seen of a damaged log: the detections are announced again.
  const raised = withoutLog(contentOfDetections(appliance.data));
  assert.deepEqual(idsOf(raised), idsOf(content));
  damageLog();
  assert.match(runExample('operations', 'new-logs', {}), /Rewrote the log/);
  assert.match(run('damaged'), /is intact/);
  assertSameContent(withoutLog(contentOfDetections(appliance.data)), raised);
});

/** Flips a bit of the log; a second call repairs it. */
function damageLog(): void {
  const segment = join(appliance.data, 'log', readdirSync(join(appliance.data, 'log'))[0] ?? '');
  const bytes = readFileSync(segment);
  bytes.writeUInt8(bytes.readUInt8(300) ^ 1, 300);
  writeFileSync(segment, bytes);
}

const idsOf = ({ detection = [] }: ReturnType<typeof withoutLog>): unknown[] =>
  detection.map((row) => Object(row).id);

test('setup writes the listed files; another supervisor finds its configuration', () => {
  const root = `${appliance.data}-root`;
  const [, listed = ''] = /^## Under systemd$([\s\S]*?)^###/m.exec(topic('service')) ?? [];
  const [config = '', unit = ''] = tableRows(listed).map(([, file = '']) => file.replaceAll('`', ''));
  const there = `--config ${root}${config} --unit ${root}${unit} --data /srv/wirewatch`;
  const shown = runExample('service', 'setup', {
    'wirewatch setup': `wirewatch setup --program /usr/local/bin/wirewatch ${there}`,
    '/srv/exports': '/srv/exports',
  });
  for (const file of [config, unit]) assert.ok(existsSync(join(root, file)), `${file}: ${shown}`);

  const data = `${appliance.data}-supervised`;
  const [setup = '', serve = ''] = example('service', 'no-service').trim().split('\n');
  const words = (line: string) => line.replaceAll('/var/lib/wirewatch', data).split(' ').slice(1);
  succeed(words(setup));
  assert.ok(existsSync(join(data, 'wirewatch.toml')));
  assert.deepEqual(words(serve), ['serve', '--data', data]);
});
