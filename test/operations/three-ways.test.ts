/** Every operation of the table in its three ways: by command on a running appliance, by request, and by command on a stopped one. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { openControlSocket } from '../../src/admin/control-socket.ts';
import { commandWords } from '../../src/console/command-line.ts';
import { createLogger } from '../../src/logger.ts';
import { adminDocument } from '../../src/operations/openapi.ts';
import { isOfLab, type Operation } from '../../src/operations/operation.ts';
import { formOf, OPERATIONS } from '../../src/operations/table.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { readProcessId } from '../../src/store/noted-address.ts';
import { formatMs } from '../../src/time.ts';
import { createInstallation, type Installation, sharedAppliance } from '../support/appliance.ts';
import { assertFailed, runBeside, succeedBeside } from '../support/command.ts';
import { openConsole } from '../support/console-client.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { without } from '../support/installed.ts';
import { testOperations } from '../support/live.ts';
import { inFolder, serve } from '../support/program.ts';
import { shellWords } from '../support/shell-words.ts';
import { testFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

type Given = Readonly<Record<string, unknown>>;
const IMPOSSIBLE: Readonly<Record<string, readonly string[]>> = {
  'a request': ['console'],
  'a command on a stopped one': ['console', 'backup', 'verify'],
};

/** Those of a lab have tests of their own (test/tools/lab). What the others need is removed last. */
const LAST = ['subscription remove', 'account remove'];
const inOrder = OPERATIONS.filter((operation) => !isOfLab(operation)).toSorted(
  (a, b) => LAST.indexOf(a.name) - LAST.indexOf(b.name),
);

/** Members with which each operation is possible that needs more than an id, or has another; `key` is the id of a key. */
function samplesOf(key: string, window: string): ReadonlyMap<string, Given> {
  const terms = { account: 'acme', name: 'x', scopes: ['detections:read'], subscriptions: ['7501:text'] };
  return new Map<string, Given>([
    // JSON has U+2028 as it is.
    ['account add', { id: 'acme', name: "Ada's\u2028" }],
    ['account set', { id: 'acme', daily_rows: 5000, print_metadata: true }],
    ['subscription add', { id: 7501, account: 'acme', content_types: ['text'] }],
    ['subscription set', { id: 7501, time_zone: 'Europe/Berlin' }],
    ['key create', { ...terms, allow_address: ['192.0.2.0/24'] }],
    ['key set', { id: key, daily_rows: 7 }],
    ['key rotate', { id: key, overlap: '1h' }],
    ['window list', { export: 'newswire' }],
    ['window expect', { export: 'newswire', start: window }],
    ['window reset', { export: 'newswire', all: true }],
    ['window accept', { export: 'newswire', all: true }],
    ['console', { read_only: true }],
  ]);
}

function argsOf(operation: Operation, given: Given): string[] {
  const words = shellWords(commandWords(formOf(operation), given).join(' '));
  return [...words.slice(1), ...(operation.confirmedBy !== undefined ? ['--yes'] : [])];
}

const window = nextWindowMs();
const WIREWATCH_ADMIN_PORT = `${await freePort()}`;
const appliance = await sharedAppliance({
  WIREWATCH_ADMIN_PORT,
  WIREWATCH_COPY_TO: join(testFolder(), 'copy'),
});
await appliance.dropped(fileName('newswire', window), ndjson([newRow()]));
const ui = await openConsole(appliance);
const stopped = createInstallation();
after(() => stopped.remove());
await (await stopped.serve()).stop();

for (const way of ['a command on a running appliance', 'a request', 'a command on a stopped one'] as const)
  test(`every operation works as ${way}, and returns what it says`, async () => {
    const installation = way === 'a command on a stopped one' ? stopped : appliance;
    const made = ['--account', 'agency', '--scopes', 'detections:read', '--subscriptions', '7001'];
    const { id } = JSON.parse(installation.cli(['key', 'create', '--name', way, ...made, '--json']).stdout);
    const samples = samplesOf(id, formatMs(window));
    const ids: Given = { account: 'acme', subscription: 7501, key: id };
    for (const operation of inOrder) {
      const { name } = operation;
      const [noun = ''] = name.split(' ');
      const given = samples.get(name) ?? ('id' in operation.members ? { id: ids[noun] } : {});
      if (IMPOSSIBLE[way]?.includes(name)) continue;
      // Open alerts are exit code 1.
      const anyStatus = name === 'alert list';
      const command = () => installation.cli([...argsOf(operation, given), '--json'], { anyStatus });
      const value = way === 'a request' ? (await ui.act(name, given)).value : JSON.parse(command().stdout);
      assert.ok(Value.Check(operation.result ?? Type.Unknown(), value), `${name}: ${JSON.stringify(value)}`);
    }
  });

test('a refusal names the wrong member, what was expected and what was found, in each way', async () => {
  const wrong = { account: 'agency', name: 'x', scopes: ['all'], subscriptions: ['7001'] };
  const said = /scopes.*expected|expected.*scopes/is;
  const { status, text } = await ui.operate('key create', wrong);
  assert.deepEqual([status, said.test(text)], [400, true], text);
  const args = words('key create --account agency --name x --scopes all --subscriptions 7001');
  for (const installation of [appliance, stopped]) {
    const run = installation.cli(args, { anyStatus: true });
    assert.deepEqual([run.status, said.test(run.stderr)], [2, true], run.stderr);
  }
});

test('every operation is named in the audit trail, with its way', () => {
  const ways = (installation: Installation) => {
    const { stdout } = installation.cli(['audit', '--json']);
    const trail: { kind: string; command: string | null }[] = JSON.parse(stdout);
    return new Set(trail.map(({ kind, command }) => `${kind} ${command}`));
  };
  for (const name of ['account add', 'key create', 'window expect', 'ingest replay', 'account remove']) {
    assert.ok(ways(appliance).has(`command ${name}`), name);
    assert.ok(ways(appliance).has(`console ${name}`), name);
    assert.ok(ways(stopped).has(`command ${name}`), name);
  }
  const { stdout } = stopped.cli(['audit']);
  const change = `key revoke  key [a-z0-9]{12} changed: revoked_at none -> "\\d{4}-\\S+Z"`;
  assert.match(stdout, new RegExp(`^\\d{4}-\\S+Z  ${userInfo().username}  ${change}$`, 'm'));
  assert.doesNotMatch(stdout + stopped.cli(['audit', '--json']).stdout, /hash|[0-9a-f]{64}/i);
  assert.equal(stopped.cli(['audit', '--from', '2100-01-01T00:00:00Z']).stdout.trim(), 'No entries.');
});

test('a data folder on a long path is operated like any other; its socket is for its owner alone', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'd'.repeat(100), 'é'.repeat(60), 'data');
    mkdirSync(data, { recursive: true, mode: 0o700 });
    chmodSync(data, 0o700);
    assert.ok(Buffer.byteLength(join(data, 'control.sock')) > 200);
    const cli = async (line: string) => (await succeedBeside([...line.split(' '), '--data', data])).stdout;
    await cli('account add a --name A');
    const serving = await serve(data);
    assert.equal(lstatSync(join(data, 'control.sock')).mode & 0o777, 0o600);
    assert.equal(JSON.parse(await cli('status --json')).running, true);
    await serving.kill();
    assert.ok(existsSync(join(data, 'control.sock')), 'a killed process leaves its socket');
    await cli('account set a --name B');
    const again = await serve(data);
    assert.equal(JSON.parse(await cli('account list --json'))[0].name, 'B');
    assert.equal(await again.stop(), 0);
    assert.ok(!existsSync(join(data, 'control.sock')));
  }));

test('the example of the administration API works on the socket', { skip: without('curl') }, () => {
  const [, example = ''] = /`(curl [^`]*)`/.exec(adminDocument().info.description) ?? [];
  const [command = '', ...args] = shellWords(example);
  const { stdout } = spawnSync(command, args, { cwd: appliance.data, encoding: 'utf8' });
  assert.equal(JSON.parse(stdout).value[0].account, 'agency', stdout);
});

test('nobody else may connect to the socket, not even before its mode is set', () =>
  inFolder(async (folder) => {
    const operations = testOperations(folder);
    const umask = process.umask(0);
    const opening = openControlSocket(dataFolder(folder), operations, createLogger({ level: 'fatal' }));
    const { mode } = lstatSync(join(folder, 'control.sock'));
    process.umask(umask);
    await (await opening).close();
    assert.equal(mode & 0o077, 0);
  }));

test('an appliance that hangs is named with its process id, and its end frees the installation', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const serving = await serve(data);
    const pid = readProcessId(dataFolder(data)) ?? Number.NaN;
    process.kill(pid, 'SIGSTOP');
    const said = new RegExp(`Process ${pid} .* has not answered for 5 seconds.*kill -9 ${pid}`);
    assertFailed(await runBeside(['account', 'list', '--data', data]), 1, said);
    process.kill(pid, 'SIGKILL');
    await serving.ended;
    await succeedBeside(['account', 'list', '--data', data]);
  }));

test('an appliance that ends in the middle of its answer is said to have ended', () =>
  inFolder(async (folder) => {
    const server = createServer((_, response) => {
      response.write('{"outcome":{"value":[{"id":"ac', () => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(join(folder, 'control.sock'), resolve));
    const said = /^wirewatch: Wirewatch ended before it had answered\. Whether account list was done/;
    assertFailed(await runBeside(['account', 'list', '--data', folder]), 1, said);
    server.close();
  }));

test('a command whose connection is reset by an appliance that stops works on the stopped installation', () =>
  inFolder(async (folder) => {
    const server = createServer((request) => request.socket.destroy());
    await new Promise<void>((resolve) => server.listen(join(folder, 'control.sock'), resolve));
    const { status, stderr } = await runBeside(['account', 'add', 'acme', '--name', 'A', '--data', folder]);
    server.close();
    assert.deepEqual([status, stderr], [0, '']);
  }));
