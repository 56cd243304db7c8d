/** The sample files: they equal those in config/, the program prints them, and each works as described. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { SCOPES } from '../../src/auth/scopes.ts';
import { createAccessTokens } from '../../src/auth/token.ts';
import { SAMPLES } from '../../src/cli/sample.ts';
import { WAIT_SECONDS_MAX } from '../../src/limits/api-limits.ts';
import { packedText } from '../../src/packed.ts';
import { DAY_MS, formatMs, MINUTE_MS } from '../../src/time.ts';
import { makeCertificate, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { assertFailed, runBeside, succeedBeside } from '../support/command.ts';
import { without } from '../support/installed.ts';
import { metricsOfManual } from '../support/manual.ts';
import { WITHOUT_NGINX } from '../support/nginx.ts';
import { inFolder, serve } from '../support/program.ts';
import { subscription, withService } from '../support/pull.ts';

const CONFIG = join(import.meta.dirname, '../../config');

test('config/ holds exactly the samples', () => {
  assert.deepEqual(readdirSync(CONFIG).sort(), SAMPLES.map(({ file }) => file).sort());
});

test('the program lists and prints them; another name is exit code 2', async () => {
  const listed = await succeedBeside(['sample']);
  for (const { file: name } of SAMPLES) assert.ok(listed.stdout.includes(name), name);
  const one = await succeedBeside(['sample', 'nginx.conf']);
  assert.equal(one.stdout.trim(), packedText('config', 'nginx.conf').trim());
  const named =
    /file: expected one of wirewatch\.toml, wirewatch\.service, nginx\.conf, .* found "apache\.conf"/;
  assertFailed(await runBeside(['sample', 'apache.conf']), 2, named);
});

describe('metrics in rules and dashboard', () => {
  const labels = new Map(metricsOfManual().map(({ name, labels: of }) => [name, of]));

  test('are all there', () => {
    for (const name of ['prometheus-rules.yml', 'grafana-dashboard.json']) {
      const named = [...packedText('config', name).matchAll(/\bwirewatch_\w+/g)].map(([metric]) => metric);
      assert.ok(named.length > 5, name);
      for (const metric of named)
        assert.ok(labels.has(metric.replace(/_(bucket|count)$/, '')), `${name}: ${metric}`);
    }
  });

  test('each rule has a severity and a summary, and uses existing labels', () => {
    const rules = packedText('config', 'prometheus-rules.yml').split('- alert: ').slice(1);
    assert.ok(rules.length > 5);
    const severities = rules.map((rule) => /labels: \{ severity: (page|warning|info) \}/.exec(rule)?.[1]);
    assert.deepEqual(new Set(severities), new Set(['page', 'warning', 'info']));
    for (const rule of rules) {
      assert.match(rule, /\n {8}annotations: \{ summary: (['"]).+\1 \}\n/, rule);
      const [metric = ''] = /\bwirewatch_\w+/.exec(rule) ?? [];
      for (const [, label = ''] of rule.matchAll(/\$labels\.(\w+)/g))
        assert.ok(label === 'instance' || labels.get(metric)?.includes(label), `${metric}: ${label}`);
    }
  });

  test('legends of the dashboard use existing labels', () => {
    for (const { title, targets } of JSON.parse(packedText('config', 'grafana-dashboard.json')).panels) {
      assert.ok(targets.length > 0, title);
      for (const { expr, legendFormat } of targets) {
        const [metric = ''] = /\bwirewatch_\w+/.exec(expr) ?? [];
        const base = metric.replace(/_(bucket|count)$/, '');
        for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          assert.ok(labels.get(base)?.includes(label), `${title}: ${label}`);
      }
    }
  });
});

describe('a sample client', () => {
  for (const [name, program] of Object.entries({ 'client-ts': process.execPath, 'client-py': 'python3' })) {
    const file = name.replace('-', '.');
    const skip = without(program);
    const { PATH } = process.env;
    /** Runs it until it has caught up. @param to the arguments of a pull from the service */
    const run = async (to: readonly string[], cwd: string, under = '') => {
      writeFileSync(join(cwd, file), packedText('config', name));
      const env = { PATH, BASE_URL: `${to[2]}${under}`, KEY: 'ww_live_x' };
      const child = spawn(program, [file, '--once'], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
      const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
      return { code, stderr };
    };
    const read = (requests: string[]) =>
      requests.splice(0).map((target) => {
        const { pathname, searchParams } = new URL(target, 'http://x');
        const sinceMs = Date.parse(searchParams.get('since') ?? '');
        const daysAgo = Math.floor((Date.now() - sinceMs - MINUTE_MS) / DAY_MS);
        const of = searchParams.get('subscription_id');
        const start = searchParams.has('cursor') ? 'cursor' : sinceMs > 0 && `${daysAgo} d`;
        return [pathname, of, start].filter((part) => part).join(' ');
      });

    test(`${name} copies what is ahead of the clock, of a new subscription and one added again`, {
      skip,
    }, () => {
      const subscriptions = [subscription(7001, 'text'), subscription(7002, 'text')];
      const [, { data_starts = {} } = {}] = subscriptions;
      data_starts.text = formatMs(Date.now() + DAY_MS);
      return withService(subscriptions, [], async (to, folder, requests, responses) => {
        assert.deepEqual(await run(to, folder), { code: 0, stderr: '' });
        const changes = '/v1/detections/changes';
        const caughtUp = `${changes} cursor`;
        const first = '/v1/detections 7001';
        assert.deepEqual(read(requests), [first, `${changes} 1 d`, first, caughtUp]);
        subscriptions.push(subscription(7003, 'text'));
        assert.deepEqual(await run(to, folder), { code: 0, stderr: '' });
        const added = (id: number) => [`${changes} ${id} 1 d`, caughtUp, `/v1/detections ${id}`, caughtUp];
        assert.deepEqual(read(requests), added(7003));

        // Removed, and added again, before all of its periods were read.
        const start = { text: formatMs(Date.now() - 40 * DAY_MS) };
        subscriptions.push({ ...subscription(7004, 'text'), data_starts: start });
        responses.push([200, {}], [200, {}], [400, {}]);
        assert.equal((await run(to, folder)).code, 1);
        subscriptions.splice(-1, 1, subscription(7004, 'text'));
        requests.length = 0;
        assert.deepEqual(await run(to, folder), { code: 0, stderr: '' });
        assert.deepEqual(read(requests), added(7004));
      });
    });

    test(`${name} asks each minute what the key reads, whatever happens to the clock`, () => {
      const loop = /asked = (performance\.now|time\.monotonic)\(\).*while \(?\1\(\) < asked \+ MINUTE/s;
      assert.match(packedText('config', name), loop);
    });

    test(`${name} takes an address with a path, and follows no redirect`, { skip }, () =>
      withService([subscription(7001, 'text')], [], async (to, folder, requests, responses) => {
        for (const under of ['/api', '/api/']) {
          assert.deepEqual(await run(to, folder, under), { code: 0, stderr: '' });
          for (const target of requests.splice(0)) assert.match(target, /^\/api\/v1\/detections/);
        }
        responses.push([302, { location: '/v1/detections' }]);
        const { code, stderr } = await run(to, folder);
        assert.deepEqual([code, requests.length], [1, 1]);
        assert.match(stderr, /changes: 302/);
      }),
    );
  }
});

for (const name of ['nginx.conf', 'nginx-standby.conf'])
  test(`nginx accepts ${name}`, { skip: WITHOUT_NGINX || WITHOUT_OPENSSL }, () =>
    inFolder(async (folder) => {
      const { certificate, key } = makeCertificate(folder, 'served');
      let listeners = 0;
      const text = packedText('config', name)
        // It opens what it listens on even to check its file.
        .replace(/listen (?:\[::\]:)?\d+( ssl)?;/g, (_, ssl = '') => {
          listeners += 1;
          return `listen unix:${folder}/${listeners}.sock${ssl};`;
        })
        .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
        .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`);
      const file = join(folder, name);
      const logs = `pid ${folder}/pid; error_log stderr;`;
      writeFileSync(file, `${logs} events {} http { access_log off;\n${text}\n}`);
      const args = ['-t', '-p', folder, '-c', file, '-e', 'stderr'];
      const { status, stderr } = spawnSync('nginx', args, { encoding: 'utf8' });
      assert.deepEqual([status, listeners], [0, 4], stderr);
    }),
  );

for (const name of ['nginx.conf', 'nginx-standby.conf'])
  test(`${name} waits for longer than a request may wait for a change`, () => {
    const [, seconds = ''] = /proxy_read_timeout (\d+)s;/.exec(packedText('config', name)) ?? [];
    assert.ok(Number(seconds) > WAIT_SECONDS_MAX, seconds);
  });

test('nginx-standby.conf: a key and its tokens go to one machine', () => {
  const text = packedText('config', 'nginx-standby.conf');
  const [, pattern = '', by = ''] = /map \$http_authorization \$(?:\w+) \{\s*"~(.+)" (\S+);/.exec(text) ?? [];
  assert.equal(by, '$1');
  assert.match(text, /hash \$wirewatch_key consistent;/);
  const { key, ...stored } = createKey('ww');
  const token = createAccessTokens(Buffer.alloc(32)).issue(stored, SCOPES, 0);
  for (const credential of [key, token])
    assert.equal(new RegExp(pattern).exec(`Bearer ${credential}`)?.[1], stored.id);
});

test('nginx-standby.conf: a machine whose health is 503 is passed over for health only', () => {
  const text = packedText('config', 'nginx-standby.conf');
  const [, asked = ''] = /location = \/v1\/health \{\s*proxy_pass http:\/\/(\w+);\s*\}/.exec(text) ?? [];
  const machines = (upstream: string) => {
    const [, block = ''] = new RegExp(`upstream ${upstream} \\{([^}]*)\\}`).exec(text) ?? [];
    return [...block.matchAll(/server (\S+) (.*);/g)].map(([, address, rule]) => ({ address, rule }));
  };
  const asMachines = machines('wirewatch').map(({ address }) => ({ address, rule: 'max_fails=0' }));
  assert.ok(asMachines.length > 1);
  assert.deepEqual(machines(asked), asMachines);
});

test("certbot's hook installs both files for its own domain, and ignores others", () =>
  inFolder(async (folder) => {
    const group = spawnSync('id', ['-gn'], { encoding: 'utf8' }).stdout.trim();
    const target = join(folder, 'tls');
    const hook = join(folder, 'hook.sh');
    const text = packedText('config', 'certbot-hook.sh')
      .replace(/^folder=.*$/m, `folder=${target}`)
      .replace(/^group=.*$/m, `group=${group}`);
    writeFileSync(hook, text);
    const lineage = join(folder, 'live');
    mkdirSync(lineage);
    const run = (domains: string, content: string) => {
      for (const name of ['fullchain', 'privkey'])
        writeFileSync(join(lineage, `${name}.pem`), `${name} ${content}`);
      const env = { ...process.env, RENEWED_DOMAINS: domains, RENEWED_LINEAGE: lineage };
      const { status, stderr } = spawnSync('sh', [hook], { env, encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    };
    const held = () =>
      ['fullchain', 'privkey'].map((name) => readFileSync(join(target, `${name}.pem`), 'utf8'));
    run('www.example.org detections.example.org', 'one');
    assert.deepEqual(held(), ['fullchain one', 'privkey one']);
    assert.equal(statSync(join(target, 'privkey.pem')).mode & 0o777, 0o640);
    run('detections.example.org', 'two');
    assert.deepEqual(held(), ['fullchain two', 'privkey two']);
    run('other.example.org detections.example.org.evil', 'three');
    assert.deepEqual(held(), ['fullchain two', 'privkey two']);
    assert.deepEqual(readdirSync(target).sort(), ['fullchain.pem', 'privkey.pem']);
  }));

test('Fluent Bit is told how the time of a line is written', async () => {
  const [, key = '', format = ''] =
    /time_key: (\w+)\n +time_format: "(.+)"/.exec(packedText('config', 'fluent-bit.yml')) ?? [];
  const parts: Readonly<Record<string, string>> = { Y: '\\d{4}', L: '\\d{3}', z: 'Z' };
  const pattern = format
    .replaceAll('.', '\\.')
    .replaceAll(/%(\w)/g, (_, part: string) => parts[part] ?? '\\d\\d');
  await inFolder(async (folder) => {
    const running = await serve(folder);
    await fetch(`${running.url}/v1/health`);
    const line = await running.until('a request', () => running.log().find(({ msg }) => msg === 'request'));
    assert.match(String(line[key]), new RegExp(`^${pattern}$`));
    await running.stop();
  });
});

test('Fluent Bit accepts fluent-bit.yml', { skip: without('fluent-bit') }, () => {
  const file = join(CONFIG, 'fluent-bit.yml');
  const { status, stderr } = spawnSync('fluent-bit', ['--dry-run', '--config', file], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});
