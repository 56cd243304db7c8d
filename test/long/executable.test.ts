/**
 * dist/wirewatch, the executable: it runs without other files, lists its components, and cannot be debugged. How it
 * loads SQLite's addon: executable-addon.test.ts.
 *
 * `npm run test:executable` runs all black-box tests on the executable; these are additional ones.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { NODE_FLAGS } from '../../src/packed.ts';
import { VERSION } from '../../src/version.ts';
import { assertFailed } from '../support/command.ts';
import { environment, executable, home, PROJECT, sqliteVersion, temporary } from '../support/executable.ts';
import { runProgram } from '../support/program.ts';
import { runScript } from '../support/scripts.ts';
import { inBody, postToken } from '../support/token-client.ts';

test('runs in an empty directory with an empty environment, and leaves it empty', () => {
  assert.ok(wirewatch('--version').includes(VERSION));
  assert.deepEqual(readdirSync(home), []);
});

/** Runs a command of the executable. @returns its output */
function wirewatch(...args: string[]): string {
  const result = spawnSync(executable, args, { cwd: home, env: {}, encoding: 'utf8', maxBuffer: 1e8 });
  assert.deepEqual([result.status, result.stderr], [0, '']);
  return result.stdout;
}

test('it is one file of less than 125 MB, with a checksum file for sha256sum', () => {
  const bytes = readFileSync(executable);
  assert.ok(bytes.length < 125_000_000, `${bytes.length} bytes`);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  assert.equal(readFileSync(`${executable}.sha256`, 'utf8'), `${sha256}  wirewatch\n`);
});

test('nothing in it names the build folder, and it has the flags of its Node', () => {
  const bytes = readFileSync(executable);
  assert.ok(!bytes.includes(dirname(executable)));
  for (const flag of NODE_FLAGS) assert.ok(bytes.includes(flag), flag);
});

test('--version shows the build and its components', () => {
  const built = `Node ${process.versions.node}, SQLite ${sqliteVersion()}, ${process.platform}-${process.arch}`;
  const commit = /\(commit ([0-9a-f]{12}(-dirty)?|unknown), /.exec(wirewatch('--version'))?.[1];
  assert.equal(wirewatch('--version'), `wirewatch ${VERSION} (commit ${commit}, ${built})\n`);
});

type Inside = Record<'name' | 'version' | 'license' | 'text', string>;

test('licenses has the text of every component, including Node and SQLite', () => {
  const inside: Inside[] = JSON.parse(wirewatch('licenses', '--json'));
  const named = new Map(inside.map((one) => [one.name, one]));
  for (const { name, version, license, text } of inside) {
    assert.ok(license.length > 0 && text.length > 200, name);
    assert.match(version, /^\d+\.\d+\.\d+/, name);
  }
  assert.equal(inside[0]?.name, 'wirewatch');
  assert.match(named.get('SQLite')?.text ?? '', /public domain[\s\S]*May you do good and not evil/);
  assert.match(named.get('Node.js')?.text ?? '', /OpenSSL[\s\S]*ICU/);
  assert.match(named.get('polka')?.text ?? '', /Copyright \(c\) Luke Edwards[\s\S]*WITHOUT WARRANTY/);
  const shown = wirewatch('licenses');
  for (const { name, version, text } of inside) {
    assert.ok(shown.includes(`${name} ${version}\n\n`), name);
    assert.ok(shown.includes(text.slice(-80)), name);
  }
});

interface Component {
  readonly name: string;
  readonly version: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests are about its form
  readonly [member: string]: any;
}

const readBom = (): Component & { readonly components: readonly Component[] } =>
  JSON.parse(readFileSync(`${executable}.cdx.json`, 'utf8'));

test('the component list has what CycloneDX 1.6 requires', () => {
  const bom = readBom();
  assert.equal(bom.bomFormat, 'CycloneDX');
  assert.equal(bom.specVersion, '1.6');
  assert.equal(bom.version, 1);
  const uuid = /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  assert.match(bom.serialNumber, uuid);
  if (bom.metadata.timestamp !== undefined)
    assert.match(bom.metadata.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/);
  const all = [bom.metadata.component, ...bom.components].flatMap((one) => [one, ...(one.components ?? [])]);
  for (const { type, name, version, licenses, hashes } of all) {
    assert.match(type, /^(application|library|platform)$/, name);
    assert.ok(name.length > 0 && version.length > 0, name);
    for (const { license, expression } of licenses ?? []) assert.ok(license?.id || expression, name);
    for (const { alg, content } of hashes ?? [])
      assert.match(content, alg === 'SHA-512' ? /^[0-9a-f]{128}$/ : /^[0-9a-f]{64}$/, name);
  }
  const refs = new Set(all.map((one) => one['bom-ref']));
  assert.equal(refs.size, all.length, 'each reference must be unique');
  for (const { ref, dependsOn } of bom.dependencies)
    for (const one of [ref, ...dependsOn]) assert.ok(refs.has(one), one);
});

test('the list names what licenses names: packages as in the lockfile, SQLite, Node with its libraries', () => {
  const { metadata, components } = readBom();
  const [sha256 = ''] = readFileSync(`${executable}.sha256`, 'utf8').split(' ');
  assert.deepEqual(metadata.component.hashes, [{ alg: 'SHA-256', content: sha256 }]);
  const inside: Inside[] = JSON.parse(wirewatch('licenses', '--json'));
  const renamed: Readonly<Record<string, string>> = { SQLite: 'sqlite', 'Node.js': 'node' };
  const expected = inside.slice(1).map(({ name, version }) => `${renamed[name] ?? name} ${version}`);
  assert.deepEqual(components.map(({ name, version }) => `${name} ${version}`).sort(), expected.sort());
  const lock = JSON.parse(readFileSync(join(PROJECT, 'package-lock.json'), 'utf8')).packages;
  const sqlite3 = components.find(({ name }) => name === 'better-sqlite3');
  const { version, integrity, license } = lock['node_modules/better-sqlite3'];
  assert.equal(sqlite3?.purl, `pkg:npm/better-sqlite3@${version}`);
  assert.deepEqual(sqlite3.licenses, [{ license: { id: license } }]);
  const content = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
  assert.deepEqual(sqlite3.hashes, [{ alg: 'SHA-512', content }]);
  const libraries = components
    .find(({ name }) => name === 'node')
    ?.components?.map(({ name }: Component) => name);
  for (const name of ['openssl', 'v8', 'uv', 'zlib']) assert.ok(libraries?.includes(name), name);
});

test('an unsupported platform is an error that lists the supported ones', () => {
  const supported = 'linux-x64, linux-arm64, darwin-x64, darwin-arm64';
  for (const [target, reason] of [
    ['win-x64', /no executable for Windows/],
    ['plan9-x64', new RegExp(`unknown target plan9-x64: expected one of ${supported}`)],
    ['darwin-arm64', /newest Node for darwin-arm64 is 24\.0\.0.*NODE_OPTIONS/],
    [process.platform === 'darwin' ? 'toString' : 'darwin-x64', /on such a Mac|unknown target/],
  ] as const) {
    const args = [join(PROJECT, 'build', 'executable.mjs'), '--target', target];
    const ended = spawnSync(process.execPath, args, { encoding: 'utf8' });
    assertFailed(ended, 1, reason);
    assert.doesNotMatch(ended.stderr, / at /, 'the message must have no stack');
  }
});

test("another platform's Node is used only as in the lockfile", () => {
  const other = process.arch === 'x64' ? 'linux-arm64' : 'linux-x64';
  // A fake npm returns other bytes.
  const npm = join(home, 'npm.js');
  const writes =
    "require('node:fs').writeFileSync(folder + '/' + name.replace('@', '-') + '.tgz', 'other bytes')";
  writeFileSync(npm, `const [, , , name, , folder] = process.argv; ${writes};`);
  const targets = JSON.stringify(join(PROJECT, 'build', 'targets.mjs'));
  const [downloads, staging] = [JSON.stringify(join(home, 'downloads')), JSON.stringify(temporary)];
  const script = `const { nodeOf } = await import(${targets}); nodeOf('${other}', ${staging}, ${downloads});`;
  const ended = runScript(script, { npm_execpath: npm });
  assertFailed(ended, 1, /is not what package-lock\.json names: the registry gave other bytes/);
  assert.deepEqual(readdirSync(join(home, 'downloads')), []);
});

test("a signal opens no debugger, Node's debug variables print nothing, and a thread's stack names its script", async () => {
  const debugging = { NODE_DEBUG: '*', NODE_OPTIONS: '--inspect=0', NODE_INSPECT_RESUME_ON_START: '1' };
  const data = join(home, 'data');
  process.env.WIREWATCH_PROGRAM = executable;
  const program = runProgram(['serve', '--data', data, '--port', '0'], environment(debugging));
  const output = () => `${program.stdout()}${program.stderr()}`;
  try {
    const url = await program.url();
    void program.kill('SIGUSR1');
    const headers = { authorization: 'Bearer a-secret-key' };
    assert.equal((await fetch(`${url}/v1/me`, { headers })).status, 401);
    assert.equal((await postToken({ url }, inBody({ id: 'x', secret: 'a-secret-key' }))).status, 401);
    writeFileSync(join(data, 'access.db'), Buffer.alloc(2 ** 18), { flag: 'r+' });
    writeFileSync(join(data, 'drop', 'newswire.backfill-1.ndjson'), '{}');
    const isTold = () => /at worker\.cjs:\d+/.test(output()) || undefined;
    await program.until('an error of the ingest thread', isTold);
  } finally {
    await program.stop();
  }
  assert.doesNotMatch(output(), /^(HTTP|NET|STREAM) \d+: /m, "Node's debug variables must have no effect");
  assert.ok(!output().includes('a-secret-key'));
  assert.ok(!output().includes(Buffer.from('secret').toString('hex')));
  assert.doesNotMatch(output(), /^Debugger listening/m);
});
