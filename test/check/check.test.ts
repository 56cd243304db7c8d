/** `wirewatch check`: its findings; it leaves nothing behind. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import Driver from 'better-sqlite3';
import { listSegments } from '../../src/log/segment.ts';
import { openAccess } from '../support/access.ts';
import { check, snapshot, startAndStop, withAccount } from '../support/check.ts';
import { runBeside, succeedBeside } from '../support/command.ts';
import { flipBit } from '../support/flip-bit.ts';
import { inFolder, runProgram, serve } from '../support/program.ts';

test('before the first start nothing is bad, and nothing is created', () =>
  inFolder(async (folder) => {
    const { code, of } = await check(join(folder, 'data'), '--port', '0');
    assert.equal(code, 0);
    assert.equal(of('data folder').status, 'warn');
    assert.match(of('data folder').what_to_do ?? '', /first start/);
    assert.deepEqual(readdirSync(folder), []);
  }));

test('an installation whose appliance does not run is bad, not reported as free of alerts, and left unchanged', () =>
  withAccount(async (data) => {
    const before = readdirSync(data);
    const never = await check(data, '--port', '0');
    assert.deepEqual([never.code, never.of('appliance').status], [0, 'ok']);
    assert.deepEqual(readdirSync(data), before, 'without write-ahead logs');
    await startAndStop(data);
    const { code, of, findings } = await check(data, '--port', '0');
    assert.deepEqual([code, of('appliance').status], [1, 'bad']);
    const why = /^not running: .*only alerts that follow from the databases are known/;
    assert.match(of('appliance').detail, why);
    assert.ok(!findings.some(({ check }) => check === 'alerts'));
  }));

/**
 * Runs `work`, which must leave every file in the data folder as it was. What runs there may still write its last
 * checkpoint after a start: what `work` itself changes is changed each time.
 */
async function undisturbed<Result>(data: string, work: () => Promise<Result>): Promise<Result> {
  for (let attempts = 3; ; attempts--) {
    const before = snapshot(data);
    const result = await work();
    const after = snapshot(data);
    if (attempts > 1 && !isDeepStrictEqual(after, before)) continue;
    assert.deepEqual(after, before);
    return result;
  }
}

test('with a running appliance it reports the state, and disturbs nothing', () =>
  withAccount(async (data) => {
    await using running = await serve(data);
    const { port } = new URL(running.url);
    await running.logged('ingest to be idle', ({ msg }) => msg === 'checked for missing windows');
    const { code, of, findings } = await undisturbed(data, () => check(data, '--port', port));
    assert.equal(code, 0, JSON.stringify(findings));
    for (const name of ['data folder', 'secret', 'drop folder'])
      assert.equal(of(name).status, 'ok', JSON.stringify(of(name)));
    assert.equal(of('appliance').detail, `running, listening on ${running.url}`);
    assert.ok(!running.stderr().includes('.check-'), running.stderr());
  }));

test('a wrong configuration is bad, with every problem, and the rest is checked', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'wrong.toml');
    writeFileSync(file, '[server]\nprot = 1\n');
    const { code, of } = await check(join(folder, 'data'), '--config', file);
    assert.equal(code, 1);
    assert.equal(of('configuration').status, 'bad');
    assert.match(of('configuration').detail, /prot: unknown setting; did you mean server\.port\?/);
    assert.ok(of('data folder'));
  }));

test('damage, a lost secret, open permissions and an invalid certificate are found', () =>
  withAccount(async (data, folder) => {
    writeFileSync(join(data, 'secret'), 'short', { mode: 0o600 });
    chmodSync(data, 0o755);
    const access = join(data, 'access.db');
    writeFileSync(access, readFileSync(access).fill(0xff, 0, 4096));
    writeFileSync(join(folder, 'none.pem'), 'nothing');
    const file = join(folder, 'tls.toml');
    const tls = 'tls_certificate = "none.pem"\ntls_key = "none.pem"\n';
    const others =
      '[copy]\nto = "none"\n[log]\nfile = "nowhere/log"\n[alerts]\ncommand = ["/nowhere/tell"]\n';
    writeFileSync(file, `[server]\n${tls}[admin]\nport = 9443\n${tls}${others}`);
    const { code, of } = await check(data, '--config', file);
    assert.equal(code, 1);
    assert.equal(of('appliance').status, 'bad');
    assert.match(of('appliance').detail, /access\.db cannot be used: it is damaged .*spare copy/);
    assert.match(of('secret').detail, /5 bytes instead of 32/);
    assert.equal(of('data folder').status, 'warn');
    assert.match(of('data folder').what_to_do ?? '', /chmod 0700/);
    assert.match(of('alert command').detail, /^no such file or folder \(\/nowhere\/tell\)$/);
    assert.match(of('log file').detail, /^no such file or folder \(.*\/nowhere\)$/);
    assert.match(of('TLS').detail, /no PEM certificate found/);
    assert.match(of('TLS of the console').detail, /^\[admin\] .*no PEM certificate found/);
    assert.match(of('copy').detail, /none does not exist$/);
    assert.ok(!existsSync(join(folder, 'none')), 'nothing is created');
  }));

test('a missing access.db and log of a database in use are reported', () =>
  withAccount(async (data) => {
    await succeedBeside(['subscription', 'add', '7001', '--account', 'acme', '--data', data]);
    const running = await serve(data);
    await succeedBeside(['generate', '--out', join(data, 'drop'), '--rows', '5', '--subscriptions', '7001']);
    await running.logged('the file', ({ msg }) => msg === 'file applied');
    await running.stop();
    const role = join(data, 'role.json');
    writeFileSync(role, JSON.stringify({ ...JSON.parse(readFileSync(role, 'utf8')), superseded: 'B' }));
    const segment = listSegments(join(data, 'log'))[0]?.path ?? '';
    flipBit(segment, statSync(segment).size >> 2);
    const refused = await check(data, '--port', '0');
    assert.match(refused.of('log').detail, /\.zst is damaged at byte \d+$/);
    assert.match(refused.of('role').detail, /another machine took over from this one \(B\)/);
    rmSync(role);
    for (const name of ['access.db', 'access.db-spare']) rmSync(join(data, name));
    rmSync(join(data, 'log'), { recursive: true });
    const { code, of, findings } = await check(data, '--port', '0');
    assert.deepEqual([code, of('appliance').status], [1, 'bad']);
    const lost = findings
      .filter(({ check }) => check === 'lost')
      .map(({ detail }) => detail.split('/').at(-1));
    const missing = ['access.db', 'log'].map((name) => `${name} is missing, although detections.db exists`);
    assert.deepEqual(lost, missing);
  }));

/** The findings that are bad, and whether a start ends with 78. */
interface Start {
  readonly bad?: readonly string[];
  readonly isRefused?: boolean;
  readonly config?: string;
  readonly arrange?: (folder: string) => unknown;
}

const STARTS: Readonly<Record<string, Start>> = {
  'a standby to which nothing was restored': {
    bad: ['role'],
    isRefused: true,
    config: '[copy]\nto = "copy"\nstandby = true\n',
  },
  'a secret that was lost with the database': {
    bad: ['secret'],
    isRefused: true,
    async arrange(folder) {
      await startAndStop(join(folder, 'data'));
      for (const name of ['secret', 'detections.db']) rmSync(join(folder, 'data', name));
    },
  },
  'a folder in place of the log file': {
    bad: ['log file'],
    isRefused: true,
    config: '[log]\nfile = "lines"\n',
    arrange: (folder) => mkdirSync(join(folder, 'lines')),
  },
  'certificates for a port that is off; a copy and a drop folder on a disk that is not mounted': {
    bad: ['copy', 'drop folder'],
    config: `[copy]\nto = "mnt/share/copy"\n[ingest]\ndrop = "mnt/share/drop"\n
      [admin]\nport = 0\ntls_certificate = "none.pem"\ntls_key = "none.pem"\n`,
  },
  'both behind links to a disk that is not mounted': {
    bad: ['copy', 'drop folder'],
    config: '[copy]\nto = "copy"\n[ingest]\ndrop = "exports"\n',
    arrange(folder) {
      for (const name of ['copy', 'exports']) symlinkSync(join(folder, 'mnt'), join(folder, name));
    },
  },
  'the folder of a demo': {
    bad: ['installation'],
    isRefused: true,
    arrange: (folder) => openAccess(join(folder, 'data'), { create: true, kind: 'demo' }).close(),
  },
  'the database of another program': {
    bad: ['installation'],
    isRefused: true,
    arrange(folder) {
      mkdirSync(join(folder, 'data'), { mode: 0o700 });
      new Driver(join(folder, 'data', 'detections.db')).exec('CREATE TABLE other (id)').close();
    },
  },
  'a restore that was interrupted': {
    bad: ['installation'],
    async arrange(folder) {
      const data = join(folder, 'data');
      await startAndStop(data);
      const incoming = join(data, 'incoming-20260101T000000Z');
      mkdirSync(incoming);
      for (const name of ['secret', 'log']) renameSync(join(data, name), join(incoming, name));
    },
  },
  'a standby, whose configured entries the writer creates': {
    config: '[copy]\nto = "copy"\nstandby = true\n[[subscriptions]]\nid = 7001\naccount = "nobody"\n',
    arrange: (folder) => startAndStop(join(folder, 'data')),
  },
  'a copy that was there before': {
    bad: ['copy'],
    config: '[copy]\nto = "copy"\n',
    async arrange(folder) {
      const config = join(folder, 'w.toml');
      const running = await serve(join(folder, 'data'), ['--config', config]);
      // It is noted before its log.
      await running.until('the copy', () => existsSync(join(folder, 'copy', 'log')) || undefined);
      await running.stop();
      rmSync(join(folder, 'copy'), { recursive: true });
    },
  },
};

for (const [state, { bad = [], isRefused = false, config = '', arrange }] of Object.entries(STARTS))
  test(`as a start sees it: ${state}`, () =>
    inFolder(async (folder) => {
      const data = join(folder, 'data');
      const file = join(folder, 'w.toml');
      writeFileSync(file, `[server]\nport = 0\n${config}`);
      await arrange?.(folder);
      const before = readdirSync(folder);
      const { findings } = await check(data, '--config', file);
      const found = findings.filter(({ check, status }) => check !== 'appliance' && status === 'bad');
      const names = found.map(({ check }) => check);
      assert.deepEqual(names, bad, JSON.stringify(found));
      assert.deepEqual(readdirSync(folder), before);
      const start = runProgram(['serve', '--data', data, '--config', file]);
      const code = await Promise.race([start.ended, start.logged('it', ({ msg }) => msg === 'listening')]);
      assert.equal(code === 78, isRefused, start.stderr());
      if (!isRefused) assert.equal(await start.stop(), 0);
    }));

test('a drop folder in which something else has the name of a Wirewatch folder is bad', () =>
  inFolder(async (folder) => {
    const drop = join(folder, 'drop');
    mkdirSync(drop);
    writeFileSync(join(drop, 'failed'), '');
    const { code, of } = await check(join(folder, 'data'), '--drop', drop, '--port', '0');
    assert.equal(code, 1);
    assert.match(of('drop folder').detail, /failed is not a folder: expected a real folder, not a link/);
    assert.deepEqual(readdirSync(drop), ['failed']);
  }));

test('a drop folder that is a folder of Wirewatch by another path is bad, and keeps it from starting', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const photos = join(folder, 'photos');
    await startAndStop(data);
    mkdirSync(photos);
    writeFileSync(join(folder, 'c.toml'), '[photos]\nfolder = "photos"\n');
    for (const [name, target] of [data, join(data, 'log'), photos].entries()) {
      const drop = join(folder, `${name}`);
      symlinkSync(target, drop);
      const options = ['--drop', drop, '--port', '0', '--config', join(folder, 'c.toml')];
      const { of } = await check(data, ...options);
      assert.equal(of('drop folder').status, 'bad');
      const { stderr } = await runBeside(['serve', '--data', data, ...options]);
      for (const text of [of('drop folder').detail, stderr])
        assert.match(text, new RegExp(`drop folder ${drop}: it is ${target}, which has files of Wirewatch`));
      assert.ok(!existsSync(join(target, 'refused')));
    }
  }));

test('text output: a line for each finding, its hint below, a count at the end', () =>
  inFolder(async (folder) => {
    const run = await succeedBeside(['check', '--data', join(folder, 'data'), '--port', '0']);
    assert.match(run.stdout, /^ok {4}configuration {2,}no configuration file/m);
    assert.match(run.stdout, /^warn {2}data folder .*\n +-> The first start/m);
    assert.match(run.stdout, /\n0 bad, \d+ warnings?, \d+ OK\.\n$/);
  }));

test('unencrypted keys on the network are reported by the check, and once by the start', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const isReported = async (...args: string[]) => {
      const { status, what_to_do } = (await check(data, '--port', '0', ...args)).of('TLS');
      if (status === 'warn') assert.match(what_to_do ?? '', /tls_certificate.*trusted_proxies/);
      const running = await serve(data, args);
      await running.stop();
      const lines = running.log().filter(({ msg }) => msg.startsWith('keys cross the network in the clear'));
      return [status, lines.length];
    };
    assert.deepEqual(await isReported('--host', '0.0.0.0'), ['warn', 1]);
    assert.deepEqual(await isReported(), ['ok', 0]);
  }));

test('settings that a running Wirewatch does not use yet are named, without secrets', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const file = join(folder, 'wirewatch.toml');
    const write = (more: string) => writeFileSync(file, `[server]\nport = 0\n${more}`);
    write('');
    await using running = await serve(data, ['--config', file]);
    const found = async () => {
      const { findings, of } = await check(data, '--config', file);
      assert.equal(of('appliance').detail, `running, listening on ${running.url}`);
      return findings.find(({ check }) => check === 'running settings');
    };
    assert.equal(await found(), undefined);
    write('[ingest]\nquiet_ms = 77\n[alerts]\ncommand = ["/bin/true", "token-of-a-pager"]\n');
    const changed = await found();
    const named = 'others than configured: ingest.quiet_ms, alerts.command';
    assert.deepEqual([changed?.status, changed?.detail], ['warn', named]);
    assert.match(changed?.what_to_do ?? '', /^Restart Wirewatch/);
    const status = await succeedBeside(['status', '--json', '--data', data]);
    assert.ok(!status.stdout.includes('token-of-a-pager'));
    assert.deepEqual(JSON.parse(status.stdout).settings.changed, [
      { name: 'ingest.quiet_ms', running: 500, configured: 77 },
      { name: 'alerts.command', running: null, configured: null },
    ]);
    write('[ingest]\nquiet = 1\n');
    const shown = await succeedBeside(['status', '--data', data]);
    assert.match(shown.stdout, /^settings .*quiet: unknown setting.*\n/m);
  }));

test('a proxy that is not trusted is reported', () =>
  inFolder(async (folder) => {
    await using running = await serve(join(folder, 'data'), [], { WIREWATCH_SERVER_TRUSTED_PROXIES: 'none' });
    await fetch(`${running.url}/v1/me`, { headers: { 'x-forwarded-for': '198.51.100.1' } });
    await running.logged('the alert', ({ alert }) => alert === 'proxy not trusted');
  }));
