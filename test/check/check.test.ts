/** `wirewatch check`: what it finds, what it leaves behind (nothing), and the rules it judges by. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createKey } from '../../src/auth/key.ts';
import { newState, noteRehearsal, writeState } from '../../src/backup/branch.ts';
import { checkClock } from '../../src/check/clock.ts';
import { roomFinding, syncFinding } from '../../src/check/disk.ts';
import { fileSystemFinding, fileSystemOf } from '../../src/check/file-system.ts';
import type { Finding } from '../../src/check/finding.ts';
import { checkOpenFiles } from '../../src/check/open-files.ts';
import { DAY_MS, formatMs, MINUTE_MS } from '../../src/time.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { programCommand } from '../support/command.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';

interface Checked {
  readonly code: number | null;
  readonly findings: readonly Finding[];
  of(check: string): Finding;
}

async function check(data: string, ...args: string[]): Promise<Checked> {
  return checked(runProgram(['check', '--json', '--data', data, ...args]));
}

async function checked(run: RunningProgram): Promise<Checked> {
  const code = await run.ended;
  assert.equal(run.told(), '');
  const findings: Finding[] = JSON.parse(run.printed());
  for (const finding of findings) {
    assert.deepEqual(Object.keys(finding), ['check', 'status', 'detail', 'what_to_do']);
    assert.equal(finding.what_to_do === null, finding.status === 'ok', JSON.stringify(finding));
  }
  return {
    code,
    findings,
    of: (name) =>
      findings.find((finding) => finding.check === name) ??
      assert.fail(`${name} was not looked at: ${JSON.stringify(findings)}`),
  };
}

async function command(data: string, ...args: string[]): Promise<void> {
  const run = runProgram([...args, '--data', data]);
  assert.equal(await run.ended, 0, run.told());
}

async function takePort(): Promise<{ port: string; close: () => void }> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? String(address.port) : '';
  return { port, close: () => server.close() };
}

/** Rights do not bind root: then it is run as a user who has none. */
const OTHER_ID = 65_534;
const isRoot = process.getuid?.() === 0;
const AS_OTHER = [`--reuid=${OTHER_ID}`, `--regid=${OTHER_ID}`, '--clear-groups'];
const WITHOUT_ANOTHER_USER = isRoot && !canBeRunByAnother() ? 'it cannot be run as another user here' : false;

/** The program may lie where that user cannot get. */
function canBeRunByAnother(): boolean {
  if (process.env.WIREWATCH_PROGRAM !== undefined) return false;
  const { command, args } = programCommand(['version']);
  return spawnSync('setpriv', [...AS_OTHER, command, ...args]).status === 0;
}

function asAnother(args: readonly string[]): RunningProgram {
  const through = (program: string, own: readonly string[]): [string, readonly string[]] =>
    isRoot ? ['setpriv', [...AS_OTHER, program, ...own]] : [program, own];
  return runProgram(args, {}, { through });
}

/** Everything in the folder, and the folder, to the user of {@link asAnother}. */
function giveAway(folder: string): void {
  if (!isRoot) return;
  chownSync(folder, OTHER_ID, OTHER_ID);
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    chownSync(join(folder, name), OTHER_ID, OTHER_ID);
}

async function stoppedAfterStart(data: string): Promise<void> {
  const running = runProgram(['serve', '--port', '0', '--data', data]);
  await running.url();
  running.kill('SIGTERM');
  await running.ended;
}

/** Every path below a folder with what could have changed of it; logs of SQLite belong to who writes there. */
function picture(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/-(wal|shm)$/.test(name) && name !== 'alerts.json')
    .map((name) => {
      const { size, mode, mtimeMs, ino } = statSync(join(folder, name));
      return [name, size, mode, ino, name.includes('drop') ? '' : mtimeMs].join(' ');
    })
    .sort();
}

test('before the first start nothing is bad, and nothing is made', () =>
  inFolder(async (folder) => {
    const { code, of } = await check(join(folder, 'data'), '--port', '0');
    assert.equal(code, 0);
    assert.equal(of('data folder').status, 'warn');
    assert.match(of('data folder').what_to_do ?? '', /first start/);
    assert.deepEqual(readdirSync(folder), []);
  }));

test('a folder that was set up and stopped is left as it was, without the logs of SQLite', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    await command(data, 'account', 'add', 'acme', '--name', 'Acme');
    const before = readdirSync(data);
    const { code, of } = await check(data, '--port', '0');
    assert.equal(code, 0);
    assert.equal(of('access.db').status, 'ok');
    assert.match(of('subscriptions').what_to_do ?? '', /subscription add ID --account acme/);
    assert.deepEqual(readdirSync(data), before);
  }));

test('an appliance that was started and does not run is bad, and nobody says that no alert is open', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    await command(data, 'account', 'add', 'acme', '--name', 'Acme');
    assert.equal((await check(data, '--port', '0')).of('appliance').status, 'ok');
    await stoppedAfterStart(data);
    const { code, of, findings } = await check(data, '--port', '0');
    assert.equal(code, 1);
    assert.equal(of('appliance').status, 'bad');
    assert.match(
      of('appliance').detail,
      /^not running: .*only alerts that follow from detections\.db are known/,
    );
    assert.ok(!findings.some(({ check }) => check === 'alerts'));
  }));

test('beside a running appliance it says what there is, and disturbs nothing', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    await command(data, 'account', 'add', 'acme', '--name', 'Acme');
    await command(data, 'subscription', 'add', '7001', '--account', 'acme');
    const soon = new Date(Date.now() + 5 * 86_400_000).toISOString();
    const key = ['--account', 'acme', '--scopes', 'detections:read', '--subscriptions', '7001'];
    await command(data, 'key', 'create', ...key, '--name', 'Soon', '--expires', soon);
    const running = runProgram(['serve', '--port', '0', '--data', data]);
    try {
      const { port } = new URL(await running.url());
      // The last that a start writes.
      await running.until('that it is at rest', () =>
        running.log().find(({ msg }) => msg === 'checked for missing windows'),
      );
      const before = picture(data);
      const { code, of, findings } = await check(data, '--port', port);
      assert.equal(code, 0, JSON.stringify(findings));
      for (const name of [
        'data folder',
        'detections.db',
        'access.db',
        'log',
        'access-log',
        'secret',
        'drop folder',
      ])
        assert.equal(of(name).status, 'ok', JSON.stringify(of(name)));
      assert.match(of('appliance').detail, /^running$/);
      assert.match(of('listening address').detail, /in use, as expected while Wirewatch is running/);
      assert.match(of('administration').detail, /off/);
      assert.match(of('keys').detail, /^1 key expires within 14 days: [a-z2-7]{12} \(Soon\)/);
      assert.ok(['ok', 'warn'].includes(of('drop events').status));
      assert.deepEqual(picture(data), before);
      assert.ok(!running.told().includes('.check-'), running.told());
      assert.match(
        (await check(data, '--port', '1')).of('listening address').detail,
        /another address|cannot listen/,
      );
    } finally {
      running.kill('SIGTERM');
      await running.ended;
    }
  }));

test('a wrong configuration is bad, with every problem, and the rest is looked at', () =>
  inFolder(async (folder) => {
    const file = join(folder, 'wrong.toml');
    writeFileSync(file, '[server]\nprot = 1\n');
    const { code, of } = await check(join(folder, 'data'), '--config', file);
    assert.equal(code, 1);
    assert.equal(of('configuration').status, 'bad');
    assert.match(of('configuration').detail, /prot: unknown setting; did you mean \[server\] port\?/);
    assert.ok(of('data folder'));
  }));

test('damage, a lost secret, open rights, a taken port and a certificate that is none are found', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    await command(data, 'account', 'add', 'acme', '--name', 'Acme');
    await command(data, 'subscription', 'add', '7001', '--account', 'acme');
    writeFileSync(join(data, 'secret'), 'short', { mode: 0o600 });
    chmodSync(data, 0o755);
    // The second page, of 16 KiB each: the first keeps what the file says of itself.
    const database = await open(join(data, 'access.db'), 'r+');
    await database.write(Buffer.alloc(4096, 0xff), 0, 4096, 16_384);
    await database.close();
    const certificate = join(folder, 'none.pem');
    writeFileSync(certificate, 'nothing');
    const file = join(folder, 'tls.toml');
    const taken = await Promise.all([takePort(), takePort()]);
    const [port = '', adminPort = ''] = taken.map(({ port }) => port);
    writeFileSync(
      file,
      `[server]\ntls_certificate = "none.pem"\ntls_key = "none.pem"\n[admin]\nport = ${adminPort}\n[log]\nfile = "nowhere/log"\n`,
    );
    try {
      const { code, of } = await check(data, '--config', file, '--port', port);
      assert.equal(code, 1);
      assert.equal(of('access.db').status, 'bad', JSON.stringify(of('access.db')));
      assert.match(of('access.db').what_to_do ?? '', /from its log/);
      assert.match(of('secret').detail, /5 bytes, expected 32/);
      assert.equal(of('data folder').status, 'warn');
      assert.match(of('data folder').what_to_do ?? '', /chmod 0700/);
      assert.match(of('listening address').detail, /in use by another program/);
      assert.match(of('administration').detail, /in use by another program/);
      assert.match(of('administration').what_to_do ?? '', /another \[admin\] port/);
      assert.match(of('log file').detail, /nowhere\/log: no such file or folder/);
      assert.match(of('TLS').detail, /no PEM certificate found/);
    } finally {
      for (const { close } of taken) close();
    }
  }));

test('what is missing beside a database in use is said: secret, log', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    await command(data, 'account', 'add', 'acme', '--name', 'Acme');
    await command(data, 'subscription', 'add', '7001', '--account', 'acme');
    const running = runProgram(['serve', '--port', '0', '--data', data]);
    await running.url();
    await command(data, 'generate', '--out', join(data, 'drop'), '--rows', '5', '--subscriptions', '7001');
    await running.until('the file', () => running.log().find(({ msg }) => msg === 'file applied'));
    running.kill('SIGTERM');
    await running.ended;
    rmSync(join(data, 'secret'));
    rmSync(join(data, 'access-log'), { recursive: true });
    const { code, of } = await check(data, '--port', '0');
    assert.equal(code, 1);
    assert.deepEqual([of('secret').status, of('access-log').status], ['bad', 'bad']);
    truncateSync(join(data, 'detections.db'), 0);
    assert.equal((await check(data, '--port', '0')).of('detections.db').status, 'bad');
  }));

test('a drop folder out of which others could move archive/ is warned of, with what to do', () =>
  inFolder(async (folder) => {
    const [data, drop] = [join(folder, 'data'), join(folder, 'drop')];
    mkdirSync(drop);
    const found = async (mode: number) => {
      chmodSync(drop, mode);
      return (await check(data, '--port', '0', '--drop', drop)).of('drop folder');
    };
    const open = await found(0o2770);
    assert.deepEqual([open.status, open.what_to_do], ['warn', `chmod +t ${drop}`]);
    assert.deepEqual([(await found(0o3770)).status, (await found(0o755)).status], ['ok', 'ok']);
  }));

test('a drop folder whose own folder is something else is bad', () =>
  inFolder(async (folder) => {
    const drop = join(folder, 'drop');
    mkdirSync(drop);
    writeFileSync(join(drop, 'failed'), '');
    const { code, of } = await check(join(folder, 'data'), '--drop', drop, '--port', '0');
    assert.equal(code, 1);
    assert.match(of('drop folder').detail, /failed: this user cannot write to it/);
    assert.deepEqual(readdirSync(drop), ['failed']);
  }));

test('a private key that everybody can read, with how to close it', { skip: WITHOUT_OPENSSL }, () =>
  inFolder(async (folder) => {
    const { certificate, key } = makeCertificate(folder, 'own');
    const tls = ['tls_certificate', 'tls_key'].map((name, at) => `${name} = "${[certificate, key][at]}"\n`);
    const file = join(folder, 'tls.toml');
    writeFileSync(file, `[server]\nhost = "0.0.0.0"\nport = 0\n${tls.join('')}`);
    chmodSync(key, 0o644);
    const open = await check(join(folder, 'data'), '--config', file);
    assert.deepEqual([open.of('TLS').status, open.of('TLS key').status], ['ok', 'warn']);
    assert.equal(open.of('TLS key').what_to_do, `chmod o-r ${key}`);
    chmodSync(key, 0o640);
    const closed = await check(join(folder, 'data'), '--config', file);
    assert.ok(!closed.findings.some(({ check }) => check === 'TLS key'));
  }),
);

test('keys that cross the network in the clear: the check says so, and the start once', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const isSaid = async (...args: string[]) => {
      const { status, what_to_do } = (await check(data, '--port', '0', ...args)).of('TLS');
      if (status === 'warn') assert.match(what_to_do ?? '', /tls_certificate.*trusted_proxies/);
      const running = runProgram(['serve', '--data', data, '--port', '0', ...args]);
      await running.until('its last word', () => running.log().find(({ msg }) => /^nobody can/.test(msg)));
      running.kill('SIGTERM');
      await running.ended;
      const lines = running.log().filter(({ msg }) => msg.startsWith('keys cross the network in the clear'));
      return [status, lines.length];
    };
    assert.deepEqual(await isSaid('--host', '0.0.0.0'), ['warn', 1]);
    assert.deepEqual(await isSaid(), ['ok', 0]);
  }));

test('a proxy on this machine brings each client under its own address; one that is not trusted is told of', () =>
  inFolder(async (folder) => {
    const statuses = async (name: string, ...proxies: string[]) => {
      const data = join(folder, name);
      const file = `${data}.toml`;
      const trusted = `trusted_proxies = ${JSON.stringify(proxies)}`;
      writeFileSync(file, `[server]\nport = 0\n${trusted}\n[limits]\nunseen_key_ids_per_minute = 1\n`);
      const running = runProgram(['serve', '--data', data, '--config', file]);
      try {
        const url = await running.url();
        const found: number[] = [];
        for (const address of ['198.51.100.1', '198.51.100.1', '198.51.100.2']) {
          const headers = { authorization: `Bearer ${createKey('ww').key}`, 'x-forwarded-for': address };
          found.push((await fetch(`${url}/v1/me`, { headers })).status);
        }
        const isTold = () => running.log().some(({ alert }) => alert === 'proxy not trusted');
        if (proxies.length > 0) await running.until('the alert', () => isTold() || undefined);
        const alerts = (await check(data, '--config', file)).findings.filter(
          ({ check }) => check === 'alert',
        );
        return [...found, alerts.some(({ detail }) => detail.startsWith('proxy not trusted:')), isTold()];
      } finally {
        running.kill('SIGTERM');
        await running.ended;
      }
    };
    assert.deepEqual(await statuses('default'), [401, 429, 401, false, false]);
    assert.deepEqual(await statuses('untrusted', 'none'), [401, 429, 429, true, true]);
  }));

describe('backups', () => {
  const findingOf = async (folder: string, more: string) => {
    const file = join(folder, 'wirewatch.toml');
    writeFileSync(file, `[server]\nport = 0\n[backup]\n${more}`);
    return (await check(join(folder, 'data'), '--config', file)).of('backups');
  };

  test('none is scheduled: that is said, and how to make one', () =>
    inFolder(async (folder) => {
      const { status, detail } = await findingOf(folder, '');
      assert.equal(status, 'ok');
      assert.match(detail, /^not scheduled: .*wirewatch backup FOLDER$/);
    }));

  test('scheduled: the folder, or its parent, must be usable', () =>
    inFolder(async (folder) => {
      const yet = await findingOf(folder, 'every_minutes = 60\n');
      assert.equal(yet.status, 'warn');
      assert.match(yet.detail, /no backup in .*data\/backups yet/);
      const lost = await findingOf(folder, 'every_minutes = 60\nfolder = "disk/backups"\n');
      assert.equal(lost.status, 'bad');
      assert.match(lost.detail, /disk\/backups cannot be created: .*disk does not exist/);
      assert.match(lost.what_to_do ?? '', /^Mount its disk/);
      mkdirSync(join(folder, 'disk'));
      assert.equal((await findingOf(folder, 'every_minutes = 60\nfolder = "disk/backups"\n')).status, 'warn');
      writeFileSync(join(folder, 'disk', 'backups'), '');
      const file = await findingOf(folder, 'every_minutes = 60\nfolder = "disk/backups"\n');
      assert.deepEqual([file.status, /is not a folder/.test(file.detail)], ['bad', true]);
    }));

  test('scheduled: it must not be older than the alert allows, and a restore from it rehearsed', () =>
    inFolder(async (folder) => {
      const branch = join(folder, 'backups', 'wirewatch-20261121T101000Z');
      mkdirSync(branch, { recursive: true });
      const members = { program: '1', log: null, access_log: null, secret_sha256: '' };
      const place = (minutes: number) =>
        writeState(branch, newState({ ...members, at: formatMs(Date.now() - minutes * MINUTE_MS) }));
      const settings = 'every_minutes = 60\nfolder = "backups"\n';
      place(100);
      const late = await findingOf(folder, settings);
      assert.equal(late.status, 'warn');
      assert.match(
        late.detail,
        /^overdue: every 60 minutes; .* was last updated at .*Z, 100 minutes ago, and a restore from it has never been rehearsed$/,
      );
      place(80);
      const untried = await findingOf(folder, settings);
      assert.equal(untried.status, 'warn');
      assert.match(untried.what_to_do ?? '', /wirewatch restore --rehearse .*backups\.$/);
      noteRehearsal(branch, Date.now() - 31 * DAY_MS);
      const longAgo = await findingOf(folder, settings);
      assert.deepEqual([longAgo.status, /more than 30 days ago$/.test(longAgo.detail)], ['warn', true]);
      noteRehearsal(branch, Date.now() - 29 * DAY_MS);
      const fine = await findingOf(folder, settings);
      assert.equal(fine.status, 'ok', fine.detail);
      assert.match(fine.detail, /80 minutes ago, and a restore from it was last rehearsed at .*Z$/);
    }));
});

test('what a start would refuse of the configured accounts is found; trying it changes nothing', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    const file = join(folder, 'wirewatch.toml');
    const account = '[[accounts]]\nid = "acme"\nname = "Acme"\n';
    const keyOf = (owner: string) =>
      `[[keys]]\nid = "abcdefghij23"\nhash = "${'0'.repeat(64)}"\naccount = "${owner}"\nname = "K"\nscopes = ["detections:read"]\nsubscriptions = [7001]\n`;
    const subscription = '[[subscriptions]]\nid = 7001\naccount = "acme"\n';
    const judged = async (text: string) => {
      writeFileSync(file, `[server]\nport = 0\n${text}`);
      const { code, of } = await check(data, '--config', file);
      return { code, ...of('configured accounts') };
    };
    const right = `${account}${subscription}${keyOf('acme')}`;
    assert.match((await judged(right)).detail, /^the next start creates 3 missing entries$/);
    const wrong = await judged(`${account}${subscription}${keyOf('other')}`);
    assert.deepEqual([wrong.code, wrong.status], [1, 'bad']);
    assert.match(wrong.detail, /keys\[0\]\.account: account other does not exist/);
    const run = runProgram(['serve', '--data', data, '--config', file]);
    assert.equal(await run.ended, 78);
    assert.ok(run.told().includes(wrong.detail), 'the start says the same');

    await command(data, 'account', 'add', 'acme', '--name', 'Acme');
    const before = picture(data);
    assert.match((await judged(right)).detail, /^the next start creates 2 missing entries$/);
    assert.equal((await judged(`${account}${keyOf('acme')}`)).status, 'bad', 'there is no subscription 7001');
    const differing = await judged('[[accounts]]\nid = "acme"\nname = "Another"\n');
    assert.equal(differing.status, 'warn');
    assert.match(differing.detail, /account acme: name/);
    assert.equal((await judged(account)).detail, 'all exist');
    assert.deepEqual(picture(data), before);
  }));

describe('what this user has no rights to', { skip: WITHOUT_ANOTHER_USER }, () => {
  test('is to be given to the right user, and never replaced by a backup', () =>
    inFolder(async (folder) => {
      const data = join(folder, 'data');
      await command(data, 'account', 'add', 'acme', '--name', 'Acme');
      await stoppedAfterStart(data);
      for (const name of ['access.db', 'detections.db', 'secret', 'log']) {
        giveAway(folder);
        if (name !== 'log') writeFileSync(join(data, name), '', { flag: 'a' });
        chmodSync(join(data, name), 0o000);
        const { code, of } = await checked(asAnother(['check', '--json', '--data', data, '--port', '0']));
        assert.equal(code, 1);
        assert.equal(of(name).status, 'bad', name);
        assert.match(of(name).what_to_do ?? '', /chown/, JSON.stringify(of(name)));
        assert.doesNotMatch(of(name).what_to_do ?? '', /backup/i);
        chmodSync(join(data, name), name === 'log' ? 0o700 : 0o600);
      }
    }));

  test('a data folder that is missing and may not be made is not called one without rights', () =>
    inFolder(async (folder) => {
      chmodSync(folder, 0o555);
      const run = asAnother(['serve', '--data', join(folder, 'data'), '--port', '0']);
      assert.equal(await run.ended, 78);
      assert.match(
        run.told(),
        /cannot use the data folder .*: it does not exist, and this user has no permission to create it in /,
      );
      chmodSync(folder, 0o755);
    }));

  test('a data folder that may not be entered is a finding among others', () =>
    inFolder(async (folder) => {
      const data = join(folder, 'data');
      await command(data, 'account', 'add', 'acme', '--name', 'Acme');
      giveAway(folder);
      const file = join(folder, 'wirewatch.toml');
      writeFileSync(file, '[server]\nport = 0\n[backup]\nevery_minutes = 60\n');
      for (const mode of [0o600, 0o000]) {
        chmodSync(data, mode);
        const run = asAnother(['check', '--json', '--data', data, '--config', file]);
        const { code, of } = await checked(run);
        assert.equal(code, 1);
        assert.deepEqual([of('data folder').status, of('backups').status], ['bad', 'bad']);
        assert.ok(of('open files'), 'the rest is looked at');
      }
      chmodSync(data, 0o700);
    }));
});

test('text for people: a line for each, what to do below it, a count at the end', () =>
  inFolder(async (folder) => {
    const run = runProgram(['check', '--data', join(folder, 'data'), '--port', '0']);
    assert.equal(await run.ended, 0);
    assert.match(run.printed(), /^ok {4}configuration {2,}no configuration file/m);
    assert.match(run.printed(), /^warn {2}data folder .*\n +-> The first start/m);
    assert.match(run.printed(), /\n0 bad, \d+ warnings?, \d+ OK\.\n$/);
  }));

describe('the rules', () => {
  const MIB = 1024 ** 2;

  test('room: bad below 64 MiB, to look after while the alert would be open', () => {
    const room = (freeMib: number, allMib = 1_000_000) =>
      roomFinding('disk', freeMib * MIB, allMib * MIB).status;
    assert.deepEqual([room(63), room(100), room(600), room(900_000)], ['bad', 'warn', 'warn', 'ok']);
  });

  test('sync: slow and impossibly fast disks are to be looked after', () => {
    const sync = (ms: number) => syncFinding('sync', ms).status;
    assert.deepEqual(
      [sync(0.001), sync(0.02), sync(10), sync(60), sync(61)],
      ['warn', 'ok', 'ok', 'ok', 'warn'],
    );
  });

  test('file systems: network is bad, FUSE and memory are to be looked after', {
    skip: process.platform !== 'linux',
  }, () => {
    const judged = (type: number) => fileSystemFinding('disk', fileSystemOf(type)).status;
    assert.deepEqual([0x6969, 0xff534d42, 0xfe534d42, 0x517b, 0x01021997].map(judged), [
      'bad',
      'bad',
      'bad',
      'bad',
      'bad',
    ]);
    assert.deepEqual([0x65735546, 0x01021994, 0xef53, 0x58465342, 1].map(judged), [
      'warn',
      'warn',
      'ok',
      'ok',
      'ok',
    ]);
    // The number may come with its sign.
    assert.equal(judged(0xff534d42 | 0), 'bad');
  });

  test('clock: before what is on record, or before this program was made, is bad', () => {
    const nowMs = Date.UTC(2026, 10, 21);
    assert.equal(checkClock(0, nowMs).status, 'ok');
    assert.equal(checkClock(nowMs + 5000, nowMs).status, 'ok');
    assert.equal(checkClock(nowMs + 6000, nowMs).status, 'bad');
    assert.equal(checkClock(0, Date.UTC(1970, 0, 1)).status, 'bad');
  });

  test('open files: the connections and the own files must fit', () => {
    assert.equal(checkOpenFiles(1000, 1200).status, 'ok');
    assert.equal(checkOpenFiles(1000, 1199).status, 'warn');
    assert.equal(checkOpenFiles(1000, null).status, 'ok');
    // Both numbers have separators, or neither.
    assert.equal(checkOpenFiles(1000, 20_000).detail, '20,000 allowed, at most 1,200 needed');
    assert.equal(checkOpenFiles(1000, 1200).detail, '1200 allowed, at most 1200 needed');
  });
});
