/** `wirewatch setup`: the files that it writes, the unit among them, those that exist, and the steps that it prints. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import type { setUp } from '../../src/setup/setup.ts';
import { unitText } from '../../src/setup/unit.ts';
import { OTHER_ID } from '../support/another-user.ts';
import { assertFailed, runToEnd, succeed } from '../support/command.ts';
import { without } from '../support/installed.ts';
import { inFolder, runProgram } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const DATA = '/var/lib/wirewatch';
/** A program that exists on every system, and is not in a home folder. */
const PROGRAM = '/bin/sh';

/** The files of an installation that does not exist yet, in folders that do not exist either. */
function newPlaces() {
  const folder = path.join(testFolder(), 'new');
  const unit = path.join(folder, 'system', 'wirewatch.service');
  return { folder, config: path.join(folder, 'etc', 'wirewatch.toml'), unit };
}

type Result = ReturnType<typeof setUp>;

const runSetup = ({ config, unit }: ReturnType<typeof newPlaces>, ...more: string[]) =>
  runToEnd(['setup', '--config', config, '--unit', unit, '--program', PROGRAM, ...more]);

/** Sets up a service; @returns the parsed output of `--json` */
function setup(places: ReturnType<typeof newPlaces>, ...more: string[]): Result {
  const { stdout, stderr } = runSetup(places, '--json', ...more);
  assert.equal(stderr, '');
  return JSON.parse(stdout);
}

const outcomes = ({ files }: Result): string[] => files.map(({ what, outcome }) => `${what} ${outcome}`);

/** All values of a unit's settings, by name. */
function settingsOf(unit: string): Map<string, string[]> {
  const lines = [...readFileSync(unit, 'utf8').matchAll(/^(\w+)=(.*)$/gm)];
  const byName = Map.groupBy(lines, ([, name = '']) => name);
  return new Map([...byName].map(([name, found]) => [name, found.map(([, , value = '']) => value)]));
}

/** The commands among the steps. */
const commandsOf = ({ next }: Result) => next.filter((line) => !line.startsWith('#'));

test('writes the configuration and the unit; a second run changes nothing, not even an edited unit', () => {
  const places = newPlaces();
  const { config, unit } = places;
  const options = words('--drop /srv/exports --port 9000 --host :: --base-url https://d.example.org/');
  assert.deepEqual(outcomes(setup(places, ...options)), ['configuration written', 'unit written']);
  const { server, ingest } = loadConfig({ flags: {}, env: {}, file: config, dataFolder: DATA });
  const { host, port, base_url } = server;
  assert.deepEqual([host, port, base_url], ['::', 9000, 'https://d.example.org']);
  assert.equal(ingest.drop, '/srv/exports');
  const annotated = /^# Address to listen on[^\n]*\n[^\n]*default: "127\.0\.0\.1"\)\nhost = "::"$/m;
  assert.match(readFileSync(config, 'utf8'), annotated);
  const settings = settingsOf(unit);
  assert.deepEqual(settings.get('ExecStart'), [`${PROGRAM} serve --data ${DATA} --config ${config}`]);
  assert.deepEqual(settings.get('ReadWritePaths'), ['/srv/exports']);
  assert.deepEqual(settings.get('RequiresMountsFor'), [`${DATA} /srv/exports`]);
  writeFileSync(unit, '# mine\n', { flag: 'a' });
  const texts = () => [config, unit].map((file) => readFileSync(file, 'utf8'));
  const before = texts();
  assert.deepEqual(outcomes(setup(places, ...options)), ['configuration kept', 'unit kept']);
  assert.deepEqual(texts(), before);
  assert.equal(runSetup(places, ...options).status, 0);
});

test('every user may read the files, whatever the umask; a drop folder in the data folder is for the service', (t) => {
  const places = newPlaces();
  const before = process.umask(0o077);
  t.after(() => process.umask(before));
  const { next } = setup(places);
  assert.match(next.at(-1) ?? '', /which only root and wirewatch can enter.*ingest\.drop/);
  for (const file of [places.config, places.unit]) {
    assert.equal(statSync(file).mode & 0o777, 0o644);
    assert.equal(statSync(path.dirname(file)).mode & 0o777, 0o755);
    assert.deepEqual(readdirSync(path.dirname(file)), [path.basename(file)]);
  }
});

test('with --no-service: only the configuration, which serve finds', () =>
  inFolder(async (folder) => {
    const data = path.join(folder, 'data');
    const server = ['--port', '0', '--base-url', 'https://d.example.org'];
    const made = succeed(['setup', '--no-service', '--data', data, ...server]);
    assert.match(made.stdout, /^ {2}wirewatch serve --data /m);
    assert.deepEqual(readdirSync(data), ['wirewatch.toml']);
    assert.equal(statSync(data).mode & 0o777, 0o700);
    const run = runProgram(['serve', '--data', data]);
    await run.url();
    assert.equal(await run.stop(), 0);
    assert.ok(!run.log().some(({ msg }) => msg.startsWith('base_url is not set')));
  }));

test("with --no-service, root writes nothing into another user's folder", {
  skip: process.getuid?.() !== 0 && 'only root may give a folder away',
}, () => {
  const data = testFolder();
  chownSync(data, OTHER_ID, OTHER_ID);
  const run = runToEnd(['setup', '--no-service', '--data', data]);
  assertFailed(run, 78, /belongs to .*: run this as that user/);
  assert.deepEqual(readdirSync(data), []);
});

test("the unit's line starts the appliance", () =>
  inFolder(async (folder) => {
    const places = newPlaces();
    setup(places, '--port', '0');
    const [line = ''] = settingsOf(places.unit).get('ExecStart') ?? [];
    const [, ...args] = line.split(' ');
    await using run = runProgram(args.map((arg) => arg.replace(DATA, path.join(folder, 'data'))));
    await run.url();
  }));

const NOT_THERE = ['--user', 'no-such-user', '--data', '/nonexistent/data', '--drop', '/nonexistent/drop'];

test('next steps of a new installation: user, missing folders, start, first key', () => {
  const places = newPlaces();
  const [run, how] = ['runuser -u no-such-user -- /bin/sh', '-o no-such-user -g no-such-user'];
  assert.deepEqual(commandsOf(setup(places, ...NOT_THERE)), [
    'id -u no-such-user >/dev/null 2>&1 || useradd --system --user-group --home-dir /nonexistent/data --no-create-home --shell /usr/sbin/nologin no-such-user',
    `install -d -m 0700 ${how} /nonexistent/data`,
    `install -d -m 3770 ${how} /nonexistent/drop`,
    'systemctl daemon-reload',
    'systemctl enable wirewatch',
    'systemctl restart wirewatch',
    `export WIREWATCH_DATA=/nonexistent/data WIREWATCH_CONFIG=${places.config}`,
    `${run} account add acme --name "Acme News"`,
    `${run} subscription add 7001 --account acme --time-zone Europe/Berlin`,
    `${run} key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
    `${run} check`,
    'usermod -a -G no-such-user THAT_PROGRAMS_USER',
  ]);
});

test('next steps of an existing installation: a restart after an edit, and no second key', () => {
  const places = newPlaces();
  setup(places, ...NOT_THERE);
  const again = setup(places, ...NOT_THERE);
  const [hint = '', ...steps] = again.next;
  assert.match(hint, /^# After a change .* restart the service:$/);
  assert.deepEqual(steps.slice(0, 2), ['systemctl daemon-reload', 'systemctl restart wirewatch']);
  assert.ok(!commandsOf(again).some((line) => /enable|key create|useradd/.test(line)));
});

test('an existing configuration is kept, whatever the options, and a new unit follows it', () => {
  const places = newPlaces();
  const { config, unit } = places;
  const own =
    '[server]\nport = 7000\n[ingest]\ndrop = "/srv/own"\n[copy]\nto = "/srv/copy"\n[log]\nfile = "/var/log/wirewatch/log"\n';
  mkdirSync(path.dirname(config), { recursive: true });
  writeFileSync(config, own);
  const end = runSetup(places, '--port', '9000', '--drop', '/srv/own');
  assert.equal(end.status, 0);
  const kept =
    /\(configuration\): it exists, and stays as it is\. Edit it, or remove it and run setup again\n/;
  assert.match(end.stdout, kept);
  assert.equal(readFileSync(config, 'utf8'), own);
  const settings = settingsOf(unit);
  // A missing disk of the copy must not prevent the service from starting.
  assert.deepEqual(settings.get('RequiresMountsFor'), ['/var/lib/wirewatch /srv/own']);
  assert.deepEqual(settings.get('ReadWritePaths'), ['/srv/own -/srv/copy -/var/log/wirewatch']);
});

test('it is found by the variables that the first run prints', () => {
  const places = newPlaces();
  const WIREWATCH_CONFIG = places.config;
  setup(places, '--data', '/srv/wirewatch');
  const args = ['setup', '--json', '--unit', `${places.unit}-2`, '--program', PROGRAM];
  const again = runToEnd(args, { WIREWATCH_DATA: '/srv/wirewatch', WIREWATCH_CONFIG });
  assert.deepEqual(outcomes(JSON.parse(again.stdout)), ['configuration kept', 'unit written']);
  const exec = settingsOf(`${places.unit}-2`).get('ExecStart');
  assert.deepEqual(exec, settingsOf(places.unit).get('ExecStart'));
});

test('an invalid configuration stops it, with nothing written', () => {
  const places = newPlaces();
  mkdirSync(path.dirname(places.config), { recursive: true });
  writeFileSync(places.config, '[server]\nport = "x"\n');
  assertFailed(runSetup(places), 78, /\[server\] port: expected a whole number/);
  assert.throws(() => readFileSync(places.unit), { code: 'ENOENT' });
});

test('what cannot work is refused, with a hint', () => {
  const refused = (status: number, why: RegExp, ...args: string[]) =>
    assertFailed(runSetup(newPlaces(), ...args), status, why);
  refused(1, /could not run \/home\/1\/wirewatch.*--program/, '--program', '/home/1/wirewatch');
  refused(1, /\/tmp\/exports: the service could not access it/, '--drop', '/tmp/exports');
  const file = path.join(testFolder(), 'tmp.toml');
  writeFileSync(file, '[admin]\ntls_certificate = "/tmp/a.pem"\ntls_key = "/tmp/a.key"\n');
  refused(1, /\/tmp\/a\.pem: the service could not access it/, '--config', file);
  refused(2, /--user: expected a user name/, '--user', 'No Body');
  refused(78, /--port: expected/, '--port', '70000');
});

test('without permission, it says what to do, and leaves nothing', {
  skip: process.getuid?.() === 0 && 'root may write everywhere',
}, () => {
  const places = newPlaces();
  mkdirSync(places.folder, { recursive: true });
  chmodSync(places.folder, 0o500);
  const why = /cannot write .*permission denied.*Run the command as root, or .*--config and --unit/;
  assertFailed(runSetup(places), 1, why);
  assert.deepEqual(readdirSync(places.folder), []);
});

const TERMS = {
  program: ['/usr/local/bin/wirewatch'],
  data: DATA,
  config: '/etc/wirewatch/wirewatch.toml',
  user: 'wirewatch',
  needed: [],
  optional: [],
  readable: [],
  ports: [8080, 0],
};

test('the unit of the usual places is the sample', () => {
  const sample = path.join(import.meta.dirname, '../../config/wirewatch.service');
  assert.equal(unitText(TERMS), readFileSync(sample, 'utf8'));
});

test('a port below 1024 adds the one capability it needs', () => {
  const unit = unitText({ ...TERMS, ports: [443] });
  assert.match(unit, /^AmbientCapabilities=CAP_NET_BIND_SERVICE$/m);
  assert.match(unit, /^CapabilityBoundingSet=CAP_NET_BIND_SERVICE$/m);
  assert.match(unit, /^PrivateUsers=no$/m);
});

test('a data folder with a space in its name, and a percent sign', () => {
  const unit = unitText({ ...TERMS, data: '/srv/wire watch/100%' });
  assert.match(unit, /^ExecStart=.* serve --data "\/srv\/wire watch\/100%%" /m);
});

test('a home is closed, but for the paths that the configuration names in it', () => {
  const home = (readable: readonly string[]) =>
    /ProtectHome=(.*)/.exec(unitText({ ...TERMS, readable }))?.[1];
  assert.deepEqual([home([]), home(['/home/1/photos'])], ['yes', 'read-only']);
});

const folder = testFolder();
const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

describe('systemd-analyze', { skip: without('systemd-analyze') }, () => {
  const terms = { ...TERMS, program: ['/bin/sh'], user: 'root' };

  function written(more: Partial<Parameters<typeof unitText>[0]>): string {
    const file = path.join(folder, 'wirewatch.service');
    writeFileSync(file, unitText({ ...terms, ...more }));
    return file;
  }

  test('finds nothing wrong with any unit', () => {
    for (const more of [
      {},
      { ports: [443] },
      { data: '/srv/the agency\'s "100 %" $HOME', needed: ['/home/1/drop'], optional: ['/srv/a b'] },
    ]) {
      const found = analyze('verify', '--man=no', '--recursive-errors=no', written(more));
      assert.deepEqual([found.status, found.stdout, found.stderr], [0, '', '']);
    }
  });

  test('rates the exposure below 1.5 of 10', () => {
    for (const more of [{}, { needed: ['/srv/exports'], optional: ['/srv/copy'] }]) {
      const unit = written({ user: 'wirewatch', ...more });
      const options = ['--offline=true', '--threshold=15', '--no-pager'];
      const { status, stdout } = analyze('security', ...options, unit);
      assert.match(stdout, /Overall exposure level/);
      assert.equal(status, 0, stdout.slice(-200));
    }
  });
});
