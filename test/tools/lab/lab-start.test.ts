/** How a lab starts: the seed determines its detections and key, and no other lab may use its folder. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENDPOINTS } from '../../../src/http/endpoints/all.ts';
import { ENDPOINT_IDS } from '../../../src/operations/lab.ts';
import type { SampleSubscription } from '../../../src/tools/generate/rows.ts';
import { createInstallation } from '../../support/appliance.ts';
import { assertFailed, runBeside, succeedBeside } from '../../support/command.ts';
import { send } from '../../support/console-client.ts';
import { CHANGES, follow, SINCE_SPRING, SPRING, startLab, withLab } from '../../support/lab.ts';
import { example } from '../../support/manual.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { testFolder } from '../../support/test-folder.ts';
import { until } from '../../support/until.ts';

test('a seed gives the same month of detections and the same key at any time', async () => {
  const seen: { ids: string[]; photos: unknown; key: string }[] = [];
  const start = async (seed: string, clock: string) => {
    const keyFile = join(testFolder(), 'key.txt');
    await withLab(['--seed', seed, '--clock', clock, '--key-file', keyFile], async (lab) => {
      const since = `since=${new Date(Date.parse(clock) - 1000).toISOString()}`;
      assert.equal(readFileSync(keyFile, 'utf8').trim(), lab.key);
      const { now } = await lab.control('clock');
      const aheadMs = Date.parse(now) - Date.parse(clock);
      assert.ok(aheadMs >= 0 && aheadMs < 300_000, `the clock shows ${now}`);
      const { rows, as_of } = await follow(lab, since);
      assert.ok(Date.parse(clock) - Date.parse(as_of) < 600_000 + 300_000, as_of);
      const me = await lab.read('/v1/me');
      const read = me.subscriptions.map((one: SampleSubscription) => `${one.id} ${one.content_types}`);
      assert.deepEqual(read, ['7001 text,image', '7002 text,image']);
      const starts = me.subscriptions.map((one: { data_starts: { text: string } }) => one.data_starts.text);
      const daysAgo = (Date.parse(clock) - Math.min(...starts.map(Date.parse))) / 86_400_000;
      assert.ok(daysAgo > 28 && daysAgo < 32, `data start ${daysAgo} days ago`);
      assert.deepEqual(me.data_gaps, { text: [], image: [] });
      assert.equal((await lab.read('/v1/health')).status, 'ok');
      assert.doesNotMatch(lab.run.stderr(), /backfill-lab-month/, 'the initial month must not be logged');
      const { data } = await lab.read(`${CHANGES}?${since}&content_type=image&fields=source.image_url`);
      // Without the address of the lab.
      const photos = data.map(({ source }: { source: { image_url: string } }) =>
        source.image_url.slice(lab.url.length),
      );
      seen.push({ ids: rows.map(({ id, version }) => `${id} ${version}`), photos, key: lab.key });
    });
  };
  await start('7', SPRING);
  await start('7', '2027-10-01T12:34Z');
  await start('8', SPRING);
  const [first, second, third] = seen;
  assert.ok(first !== undefined && first.ids.length > 500);
  assert.match(JSON.stringify(first.photos), /signature=/);
  assert.deepEqual(second, first);
  assert.notDeepEqual(third?.ids, first.ids);
  assert.notEqual(third?.key, first.key);
});

test('another origin may read the header of a fault; a lab ends at once even during a delay, and its ready file with it', () =>
  inFolder(async (folder) => {
    mkdirSync(join(folder, 'lab'));
    const page = 'https://page.example';
    // A lab has no copy, and follows none.
    const copy = `[copy]\nto = "${join(folder, 'copy')}"\nstandby = true\n`;
    writeFileSync(join(folder, 'lab', 'wirewatch.toml'), `[server]\ncors_origins = ["${page}"]\n${copy}`);
    const lab = await startLab(folder, []);
    await lab.control('fault-add', { status: 503 });
    const faulty = await lab.get('/v1/me', { origin: page });
    assert.equal(faulty.status, 503);
    assert.match(faulty.headers.get('access-control-expose-headers') ?? '', /Retry-After.*X-Wirewatch-Lab/);
    await lab.control('fault-add', { delay: '1d' });
    const cut = assert.rejects(lab.get('/v1/me'));
    for (let left = 1; left > 0; ) [{ left }] = await lab.control('fault-list');
    await lab.stop();
    await cut;
    for (const name of ['ready.json', 'copy']) assert.ok(!existsSync(join(folder, name)), name);
  }));

test('a lab recreates its own folder, which no other command opens; nor does a lab open another', () =>
  inFolder(async (folder) => {
    const before = await startLab(folder, ['--clock', SPRING]);
    const month = await follow(before, SINCE_SPRING);
    await before.control('drop', { rows: 5 });
    const twice = await runBeside(['lab', '--data', before.data, '--port', '0']);
    assertFailed(twice, 1, /already using the data folder/);
    assert.equal((await before.get('/v1/me')).status, 200, 'the running lab must not be disturbed');
    const ofLab = (...args: string[]) => runBeside([...args, '--data', before.data]);
    assert.equal((await ofLab('healthcheck')).status, 0);
    await ofLab('ingest', 'pause');
    assertFailed(await ofLab('lab', 'drop'), 1, /ingest is paused, .* wirewatch ingest resume/);
    await ofLab('ingest', 'resume');
    await before.stop();
    for (const args of [['serve', '--port', '0'], ['status'], ['key', 'list'], ['audit'], ['verify']])
      assertFailed(await ofLab(...args), 78, /belongs to "wirewatch lab"/);
    assert.equal((await ofLab('demo', '--port', '0')).status, 78);
    const other = join(folder, 'installation');
    assert.equal(await runProgram(['account', 'add', 'acme', '--name', 'Acme', '--data', other]).ended, 0);
    const filled = join(folder, 'filled');
    mkdirSync(filled);
    writeFileSync(join(filled, 'thesis.txt'), 'the only copy');
    writeFileSync(join(filled, 'wirewatch-lab.json'), '{}');
    const names = (data: string) => readdirSync(data).filter((name) => !name.startsWith('lock'));
    for (const data of [other, filled])
      for (const command of ['lab', 'demo']) {
        const there = names(data);
        const refused = `is not empty and not a folder of "wirewatch ${command}", which would delete what is in it`;
        assertFailed(await runBeside([command, '--data', data, '--port', '0']), 78, new RegExp(refused));
        assert.deepEqual(names(data), there);
      }
    assert.equal(readFileSync(join(filled, 'thesis.txt'), 'utf8'), 'the only copy');
    const lab = await startLab(folder, ['--clock', SPRING]);
    const { rows } = await follow(lab, SINCE_SPRING);
    const versions = (list: typeof rows) => list.map(({ id, version }) => `${id} ${version}`);
    assert.deepEqual(versions(rows), versions(month.rows));
    await lab.stop();
  }));

test('the commands are clients of the running lab', () =>
  withLab(['--clock', SPRING], async (lab, folder) => {
    const done = async (line: string) =>
      JSON.parse((await succeedBeside(['lab', ...line.split(' '), '--data', lab.data])).stdout);
    for (const [when, now] of [
      ['+26h --json', '2026-03-30T02:'],
      ['2026-04-01T00:00Z', '2026-04-01T00:'],
      ['-1h', '2026-03-31T23:'],
      ['1h59m', '2026-04-01T0'],
    ] as const)
      assert.ok((await done(`clock ${when}`)).now.startsWith(now), when);
    const [{ ids }] = (await done('drop --rows 2 --age 3d')).files;
    await done(`correct ${ids[0]} --score 12`);
    assert.equal((await lab.read(`/v1/detections/${ids[0]}`)).strength.score, 12);
    assert.equal((await done('gap imagewire --status failed')).status, 'failed');
    assert.equal((await done('allowance --used')).used, 1_000_000);
    const fault = 'fault add --status 429 --retry-after 7 --endpoint getMe --times 3';
    assert.equal((await done(fault)).id, 'f1');
    assert.equal((await lab.get('/v1/me')).headers.get('retry-after'), '7');
    assert.equal((await done('fault list'))[0].fired, 1);
    const [{ id, fired, left }] = await done('fault clear f1');
    assert.deepEqual([id, fired, left], ['f1', 1, 2]);
    assert.deepEqual(await done('fault clear'), []);
    assert.equal((await lab.get('/v1/me')).status, 200);
    const { requests } = await done('report');
    const answers = requests.map((one: { status: number; fault: string }) => `${one.status} ${one.fault}`);
    assert.deepEqual(answers, ['200 null', '429 f1', '200 null']);
    const wrong = await runBeside(['lab', 'correct', ids[0], '--score', 'ten', '--data', lab.data]);
    assertFailed(wrong, 2, /--score: expected .*a score: 0 to 100 for text, 0 to 99 for an image/);
    const nobody = await runBeside(['lab', 'drop', '--data', join(folder, 'none')]);
    assertFailed(nobody, 1, /no lab runs in .*none\. Start one with: wirewatch lab/);
  }));

test('the lab accepts only local requests with its own Host, and explains refusals', () =>
  withLab(['--clock', SPRING], async (lab) => {
    const asked = async (headers: Readonly<Record<string, string>>) =>
      (await send('POST', `${lab.url}/operations/lab-clock`, headers)).status;
    assert.equal(await asked({ host: 'localhost:8080' }), 200);
    assert.equal(await asked({ host: 'attacker.example' }), 403);
    assert.equal(await asked({ origin: 'https://attacker.example' }), 403);
    const [plain, { detail: why }] = await lab.post('drop', '{}', 'text/plain');
    assert.deepEqual([plain, why], [400, 'Content-Type: expected application/json']);
    const gap = (status: string, window: string) => JSON.stringify({ export: 'newswire', status, window });
    for (const [name, given, expected, detail = /./] of [
      ['drop', '{"rowz": 1}', 400, /^rowz: unknown; did you mean rows\?$/],
      ['drop', '{"rows": "many"}', 400, /^rows: expected a whole number from 0 to 10,000, found "many"$/],
      ['restore', '{"constructor": 1}', 400, /^constructor: unknown; expected no members$/],
      ['restore', '{"__proto__": 1}', 400, /^__proto__: unknown; expected no members$/],
      ['fault-add', '{}', 400, /needs an effect: expected at least one of status, code, delay/],
      ['fault-add', '{"status": 418}', 400, /^status: expected one of 400, 401/],
      ['fault-add', '{"status": 500, "code": "rate_limited"}', 400, /belongs to the status 429, not to 500/],
      ['fault-add', '{"code": "daily_allowance", "retry_after": 5}', 400, /waits until 00:00 UTC/],
      ['fault-add', '{"delay": "soon"}', 400, /^delay: expected a duration such as 500ms/],
      ['fault-add', '{"status": 500, "endpoint": "getEverything"}', 400, /^endpoint: expected one of/],
      ['clock', '{"advance": "1h", "when": "1h"}', 400],
      ['clock', '{"advance": "40000d"}', 400],
      ['correct', '{"id": "t.7001.1.1", "score": 1}', 404],
      ['gap', gap('missing', '2026-03-28T23:50Z'), 409],
      ['gap', gap('failed', '2026-03-28T23:50Z'), 409, /^window 2026-03-28T23:50:00Z of newswire is done/],
      ['gap', gap('failed', '2026-03-29T00:00Z'), 409, /not ended/],
      ['nothing', '{}', 404],
      ['report', '{"after": "soon"}', 400, /^after: expected a whole number from 0 to .*, found "soon"$/],
      ['fault-clear', '{"id": "f9"}', 404],
    ] as const) {
      const [status, problem] = await lab.post(name, given);
      assert.equal(status, expected, `${name} ${given}`);
      assert.match(problem.detail, detail);
    }
    assert.equal((await fetch(`${lab.url}/operations/lab-clock`)).status, 405);
    assert.equal((await fetch(`${lab.url}/v1/me`)).status, 401, 'the API itself must require a key');
  }));

test('other operations work on a running lab, and a lab operation on no other installation', async () => {
  await withLab(['--clock', SPRING], async (lab) => {
    // So that the window that ended last is free.
    await lab.control('clock', { advance: '10m' });
    const { window_start } = await lab.control('gap', { export: 'newswire', status: 'failed' });
    const { files } = await lab.control('drop', { rows: 2, export: 'newswire' });
    assert.equal(files[0].window_start, window_start);
    const isServed = async () => (await lab.get(`/v1/detections/${files[0].ids[0]}`)).status;
    assert.equal(await isServed(), 404, 'its file is held');
    assert.equal((await lab.command('window', 'reset', 'newswire', window_start)).status, 'done');
    assert.equal(await isServed(), 200);
    await lab.command('account', 'add', 'other', '--name', 'Other');
    await lab.command('subscription', 'add', '9001', '--account', 'other');
    const terms = ['--scopes', 'detections:read', '--subscriptions', '9001'];
    const { key } = await lab.command('key', 'create', '--name', 'other', '--account', 'other', ...terms);
    const dropped = await lab.control('drop', { rows: 1, export: 'newswire', subscription: 9001 });
    const asOther = { authorization: `Bearer ${key}` };
    const target = `/v1/detections/${dropped.files[0].ids[0]}`;
    assert.deepEqual([(await lab.get(target)).status, (await lab.get(target, asOther)).status], [404, 200]);
    await lab.control('allowance', { account: 'other' });
    assert.deepEqual([(await lab.get(target)).status, (await lab.get(target, asOther)).status], [404, 429]);
    const trail = await lab.command('audit');
    assert.ok(trail.some(({ command }: { command: string }) => command === 'window reset'));
  });
  using installation = createInstallation();
  await using _ = await installation.serve();
  const refused = installation.cli(['lab', 'drop'], { anyStatus: true });
  assertFailed(refused, 1, /this is not a lab\. Start one with: wirewatch lab/);
});

test('an exam that is interrupted leaves no fault', () =>
  withLab([], async (lab) => {
    const exam = runProgram(['lab', 'exam', '--data', lab.data]);
    // Those of the first act: then it waits for a client.
    await until('its faults', async () => (await lab.control('fault-list')).length > 1);
    assert.equal(await exam.kill('SIGINT'), 1, exam.stderr());
    assert.deepEqual(await lab.control('fault-list'), []);
  }));

test('the ids of endpoints are those of the API', () => {
  assert.deepEqual([...ENDPOINT_IDS].sort(), ENDPOINTS.map(({ id }) => id).sort());
});

test('a scenario runs its steps by the clock of the lab', () =>
  inFolder(async (folder) => {
    const script = join(folder, 'script.json');
    writeFileSync(script, example('testing-your-client', 'scenario'));
    const lab = await startLab(folder, ['--clock', SPRING, '--scenario', script]);
    await lab.run.until('the drop', () => lab.run.log().find(({ msg }) => msg === 'file applied'));
    assert.equal((await lab.get(`${CHANGES}?${SINCE_SPRING}`)).status, 200);
    await lab.control('clock', { advance: '121m' });
    for (let faults: unknown[] = []; faults.length < 1; ) faults = await lab.control('fault-list');
    assert.equal((await lab.get(`${CHANGES}?${SINCE_SPRING}`)).status, 503);
    const help = await runBeside(['lab', '--help']);
    assert.match(help.stdout, /--scenario [\s\S]*"wirewatch manual\s+testing-your-client"/);
    await lab.stop();
    const scenario = join(folder, 'wrong.toml');
    writeFileSync(scenario, '[[steps]]\nat = "1h"\ndrop = { rowz = 1 }\n');
    const wrong = await runBeside(['lab', '--data', join(folder, 'other'), '--scenario', scenario]);
    assertFailed(wrong, 2, /wrong\.toml, step 1: rowz: unknown; did you mean rows\?/);
  }));
