/** How a lab is controlled: by commands, by HTTP from the same machine, and by a scenario. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENDPOINTS } from '../../../src/http/endpoints/all.ts';
import { ENDPOINT_IDS } from '../../../src/operations/lab.ts';
import { createInstallation } from '../../support/appliance.ts';
import { assertFailed, runBeside, succeedBeside } from '../../support/command.ts';
import { send } from '../../support/console-client.ts';
import { CHANGES, SINCE_SPRING, SPRING, startLab, withLab } from '../../support/lab.ts';
import { example } from '../../support/manual.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { until } from '../../support/until.ts';

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
    const score = /'--score <number>' argument 'ten' is .* a score: 0 to 100 for text, 0 to 99 for an image/;
    assertFailed(wrong, 2, score);
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
