/** `wirewatch setup`: the files that it creates below a root, keeps and removes, and its use of systemd. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { nextSteps } from '../../src/setup/next-steps.ts';
import { planSetup } from '../../src/setup/plan.ts';
import { inFolder, runProgram } from '../support/program.ts';
import {
  CONFIG,
  everyFile,
  newRoot,
  outcomes,
  PROGRAM,
  type Result,
  read,
  refused,
  setup,
  UNIT,
  USER,
  wirewatch,
} from '../support/setup.ts';

/** All values of a unit's settings, by name. */
function settingsOf(unit: string): Map<string, string[]> {
  const lines = [...unit.matchAll(/^(\w+)=(.*)$/gm)];
  const byName = Map.groupBy(lines, ([, name = '']) => name);
  return new Map([...byName].map(([name, found]) => [name, found.map(([, , value = '']) => value)]));
}

function load(root: string) {
  return loadConfig({ flags: {}, env: {}, file: path.join(root, CONFIG), dataFolder: '/var/lib/wirewatch' });
}

describe('new installation', () => {
  test('writes the configuration, the unit and the user; a second run changes nothing', () => {
    const root = newRoot();
    const options = [
      '--drop',
      '/srv/exports',
      '--port',
      '9000',
      '--base-url',
      'https://d.example.org/',
      '--host',
      '::',
    ];
    assert.deepEqual(outcomes(setup(root, ...options)), [
      `${CONFIG} written`,
      `${UNIT} written`,
      `${USER} written`,
    ]);
    const { server, ingest } = load(root);
    assert.deepEqual(
      [server.host, server.port, server.base_url, ingest.drop],
      ['::', 9000, 'https://d.example.org', '/srv/exports'],
    );
    assert.match(
      read(root, CONFIG),
      /^# Address to listen on[^\n]*\n[^\n]*default: "127\.0\.0\.1"\)\nhost = "::"$/m,
    );
    const unit = settingsOf(read(root, UNIT));
    assert.deepEqual(unit.get('ExecStart'), [
      `${PROGRAM} serve --data /var/lib/wirewatch --config ${CONFIG}`,
    ]);
    assert.deepEqual(unit.get('StateDirectory'), ['wirewatch']);
    assert.deepEqual(unit.get('ReadWritePaths'), ['/srv/exports']);
    assert.deepEqual(unit.get('User'), ['wirewatch']);
    assert.deepEqual(unit.get('RestartPreventExitStatus'), ['78']);
    assert.match(read(root, UNIT), /\n# OnFailure=wirewatch-failed\.service\n[^[]*\[Service\]/);
    assert.equal(unit.has('OnFailure'), false, 'a missing unit would only cause a warning');
    assert.match(read(root, USER), /^u wirewatch - "Wirewatch" \/var\/lib\/wirewatch$/m);
    const again = setup(root, ...options);
    assert.deepEqual(outcomes(again), [`${CONFIG} kept`, `${UNIT} unchanged`, `${USER} unchanged`]);
    assert.deepEqual(again.not_applied, []);
  });

  test('a dry run shows the files, and writes nothing', () => {
    const root = newRoot();
    const shown = setup(root, '--dry-run');
    assert.deepEqual(everyFile(root), []);
    assert.equal(shown.dry_run, true);
    setup(root);
    for (const file of shown.files) assert.equal(file.text, read(root, file.path));
  });

  test('without systemd, or with --no-service: only the configuration, which serve finds', async () => {
    const bare = newRoot();
    const { stdout } = wirewatch('setup', '--root', bare, '--data', '/data', '--json');
    const result: Result = JSON.parse(stdout);
    assert.deepEqual(outcomes(result), ['/data/wirewatch.toml written']);
    assert.match(result.next[0] ?? '', /^# No unit was written, because systemd was not found\. --service /);
    await inFolder(async (folder) => {
      const data = path.join(folder, 'data');
      const made = wirewatch(
        'setup',
        '--no-service',
        '--data',
        data,
        '--port',
        '0',
        '--base-url',
        'https://d.example.org',
      );
      assert.equal(made.status, 0, made.stderr);
      assert.match(made.stdout, /^ {2}wirewatch serve --data /m);
      assert.doesNotMatch(made.stdout, /systemd was not found/, 'setup must not look for systemd');
      const run = runProgram(['serve', '--data', data]);
      await run.url();
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
      assert.equal(
        run.log().find(({ msg }) => msg.startsWith('base_url is not set')),
        undefined,
      );
    });
  });

  test("the unit's line starts the appliance", async () => {
    await inFolder(async (folder) => {
      const root = newRoot();
      setup(root, '--port', '0');
      const [line = ''] = settingsOf(read(root, UNIT)).get('ExecStart') ?? [];
      const [, ...args] = line.split(' ');
      const here = args.map((arg) =>
        arg === CONFIG
          ? path.join(root, CONFIG)
          : arg.replace('/var/lib/wirewatch', path.join(folder, 'data')),
      );
      const run = runProgram(here);
      await run.url();
      run.kill('SIGTERM');
      assert.equal(await run.ended, 0);
    });
  });

  test('an existing user is used; --dynamic-user needs none', () => {
    const root = newRoot();
    mkdirSync(path.join(root, 'etc'));
    writeFileSync(path.join(root, 'etc', 'passwd'), 'root:x:0:0::/:/bin/sh\nnews:x:9:9::/:/bin/sh\n');
    assert.deepEqual(outcomes(setup(root, '--user', 'news')), [`${CONFIG} written`, `${UNIT} written`]);
    assert.deepEqual(settingsOf(read(root, UNIT)).get('User'), ['news']);
    assert.deepEqual(outcomes(setup(root, '--dynamic-user')), [`${CONFIG} kept`, `${UNIT} renewed`]);
    assert.deepEqual(settingsOf(read(root, UNIT)).get('DynamicUser'), ['yes']);
  });

  test('the unit type depends on systemd-notify', () => {
    const root = newRoot();
    mkdirSync(path.join(root, 'usr/lib/systemd'), { recursive: true });
    writeFileSync(path.join(root, 'usr/lib/systemd/systemd'), '');
    const typeOf = () => {
      const { stdout } = wirewatch('setup', '--root', root, '--program', PROGRAM, '--json');
      assert.ok(
        outcomes(JSON.parse(stdout)).some((one) => one.startsWith(UNIT)),
        'systemd must be detected',
      );
      return settingsOf(read(root, UNIT)).get('Type');
    };
    assert.deepEqual(typeOf(), ['exec']);
    mkdirSync(path.join(root, 'usr/bin'));
    writeFileSync(path.join(root, 'usr/bin/systemd-notify'), '');
    assert.deepEqual(typeOf(), ['notify']);
  });

  test('a port below 1024 adds the one capability it needs', () => {
    const root = newRoot();
    setup(root, '--port', '443');
    const unit = settingsOf(read(root, UNIT));
    assert.deepEqual(unit.get('AmbientCapabilities'), ['CAP_NET_BIND_SERVICE']);
    assert.deepEqual(unit.get('CapabilityBoundingSet'), ['CAP_NET_BIND_SERVICE']);
    assert.equal(unit.has('PrivateUsers'), false);
  });
});

test('prints the next steps: missing folders, the start, the first key', () => {
  const here = wirewatch(
    ...['setup', '--dry-run', '--json', '--service', '--program', PROGRAM, '--user', 'no-such-user'],
    ...[
      '--data',
      '/nonexistent/data',
      '--drop',
      '/nonexistent/drop',
      '--config',
      '/nonexistent/wirewatch.toml',
    ],
  );
  assert.equal(here.status, 0, here.stderr);
  const { next }: Result = JSON.parse(here.stdout);
  const lines = next.filter((line) => !line.startsWith('#'));
  const [run, how] = ['runuser -u no-such-user -- /bin/sh', '-o no-such-user -g no-such-user'];
  assert.deepEqual(lines, [
    'systemd-sysusers /etc/sysusers.d/wirewatch.conf',
    `install -d -m 0700 ${how} /nonexistent/data`,
    `install -d -m 3770 ${how} /nonexistent/drop`,
    'systemctl daemon-reload',
    'systemctl enable --now wirewatch',
    'export WIREWATCH_DATA=/nonexistent/data WIREWATCH_CONFIG=/nonexistent/wirewatch.toml',
    `${run} account add acme --name "Acme News"`,
    `${run} subscription add 7001 --account acme --time-zone Europe/Berlin`,
    `${run} key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
    `${run} check`,
    'usermod -a -G no-such-user THAT_PROGRAMS_USER',
  ]);
});

describe('existing installation', () => {
  test('an existing configuration is kept, the unit follows it, and overruled options are named', () => {
    const root = newRoot();
    const file = path.join(root, CONFIG);
    const own =
      '[server]\nport = 7000\n[ingest]\ndrop = "/srv/own"\n[backup]\nfolder = "/srv/backups"\n[log]\nfile = "/var/log/wirewatch/log"\n';
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, own);
    const args = ['setup', '--root', root, '--service', '--program', PROGRAM];
    const end = wirewatch(...args, '--port', '9000', '--drop', '/srv/own');
    assert.equal(end.status, 1);
    assert.match(end.stdout, /kept, setup never overwrites a configuration/);
    assert.match(
      end.stdout,
      /^ {2}--port 9000: the existing configuration has 7000; change server\.port there$/m,
    );
    assert.doesNotMatch(end.stdout, /--drop "/);
    assert.equal(readFileSync(file, 'utf8'), own);
    const unit = settingsOf(read(root, UNIT));
    // A missing backup disk must not prevent the service from starting.
    assert.deepEqual(unit.get('RequiresMountsFor'), ['/var/lib/wirewatch /srv/own']);
    assert.deepEqual(unit.get('ReadWritePaths'), ['/srv/own -/srv/backups -/var/log/wirewatch']);
    assert.equal(wirewatch(...args, '--port', '7000').status, 0);
  });

  test('an invalid configuration stops it, with nothing written', () => {
    const root = newRoot();
    mkdirSync(path.join(root, 'etc/wirewatch'), { recursive: true });
    writeFileSync(path.join(root, CONFIG), '[server]\nport = "x"\n');
    const end = wirewatch('setup', '--root', root, '--service', '--program', PROGRAM);
    assert.equal(end.status, 78);
    assert.match(end.stderr, /\[server\] port: expected a whole number/);
    assert.deepEqual(everyFile(root), [CONFIG.slice(1)]);
  });

  test('an unmodified unit is updated; a modified or foreign one is left alone', () => {
    const root = newRoot();
    setup(root);
    assert.deepEqual(outcomes(setup(root, '--user', 'news')).slice(1, 2), [`${UNIT} renewed`]);
    const file = path.join(root, UNIT);
    for (const text of [`${readFileSync(file, 'utf8')}# mine\n`, '[Service]\n']) {
      writeFileSync(file, text);
      assert.deepEqual(outcomes(setup(root)).slice(1, 2), [`${UNIT} kept`]);
      assert.equal(readFileSync(file, 'utf8'), text);
    }
  });

  test('a modified unit that differs from the request is reported, with exit code 1', () => {
    const root = newRoot();
    const args = ['setup', '--root', root, '--service', '--program', PROGRAM];
    assert.equal(wirewatch(...args).status, 0);
    const file = path.join(root, UNIT);
    writeFileSync(file, `${readFileSync(file, 'utf8')}# mine\n`);
    assert.equal(wirewatch(...args).status, 0, 'the same options: nothing is missing');
    const end = wirewatch(...args, '--data', '/srv/elsewhere');
    assert.equal(end.status, 1);
    assert.match(
      end.stdout,
      /Not applied:\n {2}\S*wirewatch\.service: it was modified after.*run the command again/,
    );
    const { files } = setup(root, '--data', '/srv/elsewhere', '--dry-run');
    assert.match(files.find(({ what }) => what === 'unit')?.text ?? '', /--data \/srv\/elsewhere /);
    writeFileSync(file, '[Service]\n');
    assert.match(setup(root).not_applied.join(), /^[^,]*wirewatch\.service: setup did not write it, /);
  });
});

test('for an enabled service, a restart is printed: enable --now would leave the old one running', () => {
  const choices = {
    root: '/',
    data: '/nonexistent/data',
    config: '/nonexistent/wirewatch.toml',
    flags: {},
    service: { user: 'no-such-user', isDynamic: false, program: [PROGRAM], isProgramNamed: true },
    isSystemdMissing: false,
  };
  const plan = planSetup(choices);
  const again = nextSteps(choices, plan, true);
  assert.ok(again.includes('systemctl restart wirewatch') && again.includes('systemctl daemon-reload'));
  assert.ok(!again.some((line) => /enable --now|key create/.test(line)), again.join('\n'));
  const first = nextSteps(choices, plan, false);
  assert.ok(
    first.includes('systemctl enable --now wirewatch') && !first.includes('systemctl restart wirewatch'),
  );

  // --drop alone is refused together with --dynamic-user.
  const service = { ...choices.service, isDynamic: true };
  const dynamic = { ...choices, data: '/var/lib/wirewatch', service };
  const steps = nextSteps(dynamic, planSetup(dynamic), false);
  // Root would act as a user that cannot enter /var/lib/private.
  const commands = steps.filter((line) => line.includes(PROGRAM));
  assert.ok(
    commands.length > 0 && commands.every((line) => /^systemd-run .* -p DynamicUser=yes /.test(line)),
  );
  const dropping = steps.at(-1) ?? '';
  assert.match(
    dropping,
    /Only root can write there: .* run setup without --dynamic-user, and with --drop\.$/,
  );
});

test('below a root, paths are printed as they are here', () => {
  const root = newRoot();
  const { stdout } = wirewatch('setup', '--root', root, '--no-service', '--data', '/data');
  assert.ok(
    stdout.startsWith(`${path.join(root, 'data/wirewatch.toml')} (configuration): written\n`),
    stdout,
  );
  assert.match(stdout, /in the finished system:\n {2}wirewatch serve --data \/data\n/);
  assert.ok(stdout.includes(`  wirewatch serve --data ${path.join(root, 'data')}\n`), stdout);
});

test('what cannot work is refused, with a hint', () => {
  assert.match(refused(1, '--program', '/opt/none'), /--program: \S+\/opt\/none does not exist\. Copy/);
  assert.match(refused(1, '--program', '/home/1/wirewatch'), /could not run \/home\/1\/wirewatch.*--program/);
  assert.match(refused(1, '--drop', '/tmp/exports'), /\/tmp\/exports: the service could not access it/);
  assert.match(refused(2, '--dynamic-user', '--drop', '/srv/exports'), /--dynamic-user: .*\/srv\/exports/);
  assert.match(refused(2, '--dynamic-user', '--user', 'news'), /give only one of them/);
  assert.match(refused(2, '--user', 'No Body'), /Expected a user name/);
  assert.match(refused(78, '--port', '70000'), /--port: expected/);
  const root = newRoot();
  writeFileSync(path.join(root, 'etc'), '');
  const end = wirewatch('setup', '--root', root, '--service', '--program', PROGRAM);
  assert.equal(end.status, 1);
  assert.match(end.stderr, /cannot read .*Run the command as root/);
});
