/** `wirewatch lab`: its folder, its data, its clock, its feed, and how it is asked. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Lab, startLab, withLab } from '../support/lab.ts';
import { inFolder, runProgram } from '../support/program.ts';

const CHANGES = '/v1/detections/changes';
const SPRING = '2026-03-29T00:00Z';

interface Row {
  readonly id: string;
  readonly version: number;
  readonly event: string;
  readonly strength: { readonly score: number };
  readonly last_scored_at: string;
}

/** Every change since a time, and the cursor behind it. */
async function follow(lab: Lab, start: string): Promise<{ rows: Row[]; cursor: string; as_of: string }> {
  const rows: Row[] = [];
  for (let query = start; ; ) {
    const page = await lab.read(`${CHANGES}?${query}&limit=1000`);
    rows.push(...page.data);
    if (!page.has_more) return { rows, cursor: page.next_cursor, as_of: page.as_of };
    query = `cursor=${page.next_cursor}`;
  }
}

/** What is new behind a cursor. */
async function news(lab: Lab, cursor: string): Promise<Row[]> {
  return (await follow(lab, `cursor=${cursor}`)).rows;
}

async function command(
  lab: Lab,
  ...args: string[]
): Promise<{ code: number | null; text: string; told: string }> {
  const run = runProgram(['lab', ...args, '--data', lab.data]);
  const code = await run.ended;
  return { code, text: run.printed(), told: run.told() };
}

test('one seed gives one month of detections and one key, whatever the clock shows', async () => {
  const seen: { ids: string[]; key: string }[] = [];
  for (const [seed, clock] of [
    ['7', SPRING],
    ['7', '2027-10-01T12:34Z'],
    ['8', SPRING],
  ] as const) {
    await inFolder(async (folder) => {
      const keyFile = join(folder, 'key.txt');
      await withLab(folder, ['--seed', seed, '--clock', clock, '--key-file', keyFile], async (lab) => {
        assert.equal(readFileSync(keyFile, 'utf8').trim(), lab.key);
        const { now } = await lab.control('GET', 'clock');
        const aheadMs = Date.parse(now) - Date.parse(clock);
        assert.ok(aheadMs >= 0 && aheadMs < 300_000, `the clock shows ${now}`);
        const { rows, as_of } = await follow(
          lab,
          `since=${new Date(Date.parse(clock) - 1000).toISOString()}`,
        );
        assert.ok(Date.parse(clock) - Date.parse(as_of) < 600_000 + 300_000, as_of);
        const me = await lab.read('/v1/me');
        assert.deepEqual(
          me.subscriptions.map((one: { id: number; content_types: string[] }) => [one.id, one.content_types]),
          [
            [7001, ['text', 'image']],
            [7002, ['text', 'image']],
          ],
        );
        const starts = me.subscriptions.map((one: { data_starts: { text: string } }) => one.data_starts.text);
        const daysAgo = (Date.parse(clock) - Math.min(...starts.map(Date.parse))) / 86_400_000;
        assert.ok(daysAgo > 28 && daysAgo < 32, `data start ${daysAgo} days ago`);
        assert.deepEqual(me.data_gaps, { text: [], image: [] });
        assert.equal((await lab.read('/v1/health')).status, 'ok');
        assert.doesNotMatch(lab.run.told(), /backfill-lab-month/, 'the month is not logged');
        seen.push({ ids: rows.map(({ id, version }) => `${id} ${version}`), key: lab.key });
      });
    });
  }
  const [first, second, third] = seen;
  assert.ok(first !== undefined && first.ids.length > 500);
  assert.deepEqual(second, first);
  assert.notDeepEqual(third?.ids, first.ids);
  assert.notEqual(third?.key, first.key);
});

test('a key can be given; it is refused where it is none', async () => {
  await inFolder(async (folder) => {
    const generated = runProgram(['key', 'generate', '--name', 'ci', '--json']);
    await generated.ended;
    const { key } = JSON.parse(generated.printed());
    await withLab(folder, ['--key', key], async (lab) => {
      assert.equal(lab.key, key);
      assert.equal((await lab.get('/v1/me')).status, 200);
    });
    assert.ok(!existsSync(join(folder, 'ready.json')), 'the ready file is gone with the lab');
    const wrong = runProgram(['lab', '--data', join(folder, 'other'), '--key', `${key}a`]);
    assert.equal(await wrong.ended, 2);
    assert.match(wrong.told(), /Expected a whole API key/);
  });
});

test('the folder of a lab is begun anew by a lab, and opened by no other command; nor does a lab open another', async () => {
  await inFolder(async (folder) => {
    const before = await startLab(folder, ['--clock', SPRING]);
    const month = await follow(before, 'since=2026-03-28T23:59:00Z');
    await before.control('POST', 'drop', { rows: 5 });
    const twice = runProgram(['lab', '--data', before.data, '--port', '0']);
    assert.equal(await twice.ended, 1);
    assert.match(twice.told(), /already using the data folder/);
    assert.equal((await before.get('/v1/me')).status, 200, 'the one that runs is not disturbed');
    await before.stop();
    for (const args of [
      ['serve', '--port', '0'],
      ['demo', '--port', '0'],
      ['status'],
      ['key', 'list'],
      ['log'],
      ['verify'],
    ]) {
      const run = runProgram([...args, '--data', before.data]);
      assert.equal(await run.ended, 78, args.join(' '));
      assert.match(run.told(), /belongs to "wirewatch lab"/);
    }
    const other = join(folder, 'installation');
    assert.equal(await runProgram(['account', 'add', 'acme', '--name', 'Acme', '--data', other]).ended, 0);
    const filled = join(folder, 'filled');
    mkdirSync(filled);
    writeFileSync(join(filled, 'thesis.txt'), 'the only copy');
    writeFileSync(join(filled, 'wirewatch-lab.json'), '{}');
    for (const data of [other, filled]) {
      const run = runProgram(['lab', '--data', data, '--port', '0']);
      assert.equal(await run.ended, 78);
      assert.match(run.told(), /is not empty and not the folder of a lab/);
    }
    assert.equal(readFileSync(join(filled, 'thesis.txt'), 'utf8'), 'the only copy');
    await withLab(folder, ['--clock', SPRING], async (lab) => {
      const { rows } = await follow(lab, 'since=2026-03-28T23:59:00Z');
      assert.equal(rows.length, month.rows.length);
      const drops = await lab.control('GET', 'report');
      assert.deepEqual(drops.actions, [], 'nothing is left of what the one before did');
    });
  });
});

describe('clock', () => {
  test('what is due by then happens at once: tokens, keys, the allowance, since, windows, waits', async () => {
    await inFolder((folder) =>
      withLab(folder, ['--clock', '2026-05-10T12:00Z', '--key-expires', '40d'], async (lab) => {
        const granted = await fetch(`${lab.url}/oauth/token`, {
          method: 'POST',
          body: new URLSearchParams({
            grant_type: 'client_credentials',
            client_id: lab.key.split('_')[2] ?? '',
            client_secret: lab.key,
          }),
        });
        const { access_token } = await lab.json(granted);
        const asToken = { authorization: `Bearer ${access_token}` };
        assert.equal((await lab.get('/v1/me', asToken)).status, 200);
        await lab.control('POST', 'allowance', {});
        const used = await lab.get(`${CHANGES}?since=2026-05-10T00:00:00Z`);
        assert.equal(used.status, 429);
        assert.match(String((await lab.json(used)).type), /daily_allowance$/);
        const cursor = await waitAndMove(lab);
        assert.equal((await lab.get('/v1/me', asToken)).status, 401, 'the token has expired');
        const me = await lab.get('/v1/me');
        assert.ok(
          Math.abs(Date.parse(me.headers.get('date') ?? '') - Date.parse('2026-05-11T14:00Z')) < 300_000,
        );
        const { data_gaps } = await lab.json(me);
        assert.equal(data_gaps.text.length, 11, 'windows are missing a day after they were due');
        assert.deepEqual(data_gaps.image, data_gaps.text);
        assert.equal((await lab.get('/v1/health')).status, 503);
        await lab.control('POST', 'clock', { advance: '32d' });
        assert.equal(
          (await lab.get(`${CHANGES}?since=2026-05-10T12:00:00Z`)).status,
          400,
          'since is too old',
        );
        assert.equal((await lab.get(`${CHANGES}?cursor=${cursor}`)).status, 200, 'a cursor never is');
        await lab.control('POST', 'clock', { to: '2026-06-19T13:00Z' });
        assert.equal((await lab.get('/v1/me')).status, 401, 'the key has expired');
      }),
    );
  });

  /** A request that waits for a change ends when the clock passes its time. @returns its cursor */
  async function waitAndMove(lab: Lab): Promise<string> {
    await lab.control('POST', 'allowance', { used: 0 });
    const { cursor } = await follow(lab, 'since=2026-05-10T00:00:00Z');
    const waiting = lab.get(`${CHANGES}?cursor=${cursor}`, { prefer: 'wait=60' });
    // It has to wait before the clock is moved.
    for (let begun = false; !begun; ) {
      const { requests } = await lab.control('GET', 'report');
      begun = requests.some(
        ({ prefer, status }: { prefer: string | null; status: number | null }) =>
          prefer !== null && status === null,
      );
    }
    const beganMs = performance.now();
    const { now } = await lab.control('POST', 'clock', { advance: '+26h' });
    assert.ok(Math.abs(Date.parse(now) - Date.parse('2026-05-11T14:00Z')) < 300_000);
    const waited = await waiting;
    assert.equal(waited.headers.get('preference-applied'), 'wait=60');
    assert.ok(performance.now() - beganMs < 55_000, 'it waited by the real clock');
    return (await lab.json(waited)).next_cursor;
  }

  test('missing windows are abandoned after thirty days; the clock can go back', async () => {
    await inFolder((folder) =>
      withLab(folder, ['--clock', SPRING], async (lab) => {
        const { window_start } = await lab.control('POST', 'gap', { export: 'newswire', status: 'missing' });
        const gaps = async () =>
          (await lab.read('/v1/me')).data_gaps.text as { window_start: string; status: string }[];
        assert.deepEqual(await gaps(), [{ window_start, status: 'missing' }]);
        const dropLate = async () => {
          const { now } = await lab.control('GET', 'clock');
          const age = `${Date.parse(now) - Date.parse(window_start) - 600_000}ms`;
          const { files } = await lab.control('POST', 'drop', { rows: 1, age, export: 'newswire' });
          assert.equal(files[0].window_start, window_start);
          return (await lab.get(`/v1/detections/${files[0].ids[0]}`)).status;
        };
        await lab.control('POST', 'clock', { advance: '31d' });
        assert.equal(await dropLate(), 404, 'the file of an abandoned window is held');
        const { now } = await lab.control('POST', 'clock', { to: '2026-03-29T02:00:00Z' });
        assert.ok(now.startsWith('2026-03-29T02:0'), now);
        assert.equal((await lab.get('/v1/me')).status, 200);
      }),
    );
  });
});

describe('feed', () => {
  test('drop, correct, rescore, late: as an export would bring them', async () => {
    await inFolder((folder) =>
      withLab(folder, ['--clock', SPRING], async (lab) => {
        const { cursor } = await follow(lab, 'since=2026-03-28T23:59:00Z');
        const { files } = await lab.control('POST', 'drop', { rows: 3 });
        const ids = files.flatMap((file: { ids: string[] }) => file.ids);
        assert.equal(ids.length, 3);
        const fresh = await follow(lab, `cursor=${cursor}`);
        assert.deepEqual(fresh.rows.map(({ id }) => id).sort(), ids.sort());
        assert.ok(fresh.rows.every(({ event, version }) => event === 'created' && version === 1));
        const text = ids.find((id: string) => id.startsWith('t.'));
        await lab.control('POST', 'correct', { id: text, score: 12 });
        const corrected = await follow(lab, `cursor=${fresh.cursor}`);
        assert.deepEqual(
          corrected.rows.map(({ id, event, version, strength }) => [id, event, version, strength.score]),
          [[text, 'updated', 2, 12]],
        );
        await lab.control('POST', 'clock', { advance: '1m' });
        await lab.control('POST', 'rescore', { id: text });
        const one = await lab.read(`/v1/detections/${text}`);
        const { event: _, ...expected } = { ...corrected.rows[0] };
        assert.deepEqual(
          { ...one, last_scored_at: '', exported_at: '' },
          { ...expected, last_scored_at: '', exported_at: '' },
          'nothing but its times is another',
        );
        assert.ok(one.last_scored_at > (corrected.rows[0]?.last_scored_at ?? ''));
        assert.deepEqual(await news(lab, corrected.cursor), []);
        const [first, second] = await Promise.all([
          lab.control('POST', 'drop', { rows: 2, export: 'newswire' }),
          lab.control('POST', 'drop', { rows: 2, export: 'newswire' }),
        ]);
        for (const id of [...first.files[0].ids, ...second.files[0].ids])
          await lab.read(`/v1/detections/${id}`);
        const only = await lab.control('POST', 'drop', {
          rows: 4,
          age: '3d',
          subscription: 7002,
          export: 'imagewire',
        });
        assert.equal(only.files[0].window_start, '2026-03-25T23:50:00Z');
        assert.deepEqual(
          only.files.flatMap((file: { ids: string[] }) => file.ids.map((id) => id.slice(0, 7))),
          Array(4).fill('i.7002.'),
        );
        const image = only.files[0].ids[0];
        const { source } = await lab.read(`/v1/detections/${image}`);
        assert.equal((await fetch(source.image_url)).status, 200, 'its photo is there');
        await lab.control('POST', 'correct', { id: image, score: 31 });
        assert.deepEqual((await lab.read(`/v1/detections/${image}`)).source, source);
        const gap = await lab.control('POST', 'gap', { export: 'imagewire', status: 'missing' });
        const late = await lab.control('POST', 'late', { rows: 2 });
        assert.deepEqual(
          late.files.map((file: { export: string; window_start: string }) => [
            file.export,
            file.window_start,
          ]),
          [['imagewire', gap.window_start]],
        );
        assert.deepEqual((await lab.read('/v1/me')).data_gaps.image, []);
      }),
    );
  });

  test('gaps of each status, a removed subscription, a lost end, the allowance', async () => {
    await inFolder((folder) =>
      withLab(folder, ['--clock', SPRING], async (lab) => {
        for (const status of ['missing', 'failed', 'abandoned']) {
          const { window_start } = await lab.control('POST', 'gap', { export: 'newswire', status });
          const { data_gaps } = await lab.read('/v1/me');
          assert.ok(
            data_gaps.text.some(
              (gap: { window_start: string; status: string }) =>
                gap.window_start === window_start && gap.status === status,
            ),
            `${status} ${window_start}`,
          );
        }
        const { rows, cursor } = await follow(lab, 'since=2026-03-28T23:59:00Z');
        await lab.control('POST', 'restore', {});
        const raised = await follow(lab, `cursor=${cursor}`);
        const known = new Map(rows.map(({ id, version }) => [id, version]));
        assert.equal(new Set(raised.rows.map(({ id }) => id)).size, known.size);
        for (const { id, version } of raised.rows)
          assert.ok(version >= 1000 + (known.get(id) ?? 0), `${id} ${version}`);
        await lab.control('POST', 'remove-subscription', { subscription: 7002 });
        const { subscriptions } = await lab.read('/v1/me');
        assert.deepEqual(
          subscriptions.map(({ id }: { id: number }) => id),
          [7001],
        );
        const { files } = await lab.control('POST', 'drop', { rows: 8 });
        for (const { ids } of files) for (const id of ids) assert.ok(id.includes('.7001.'), id);
        for (const action of ['drop', 'remove-subscription']) {
          const refused = await fetch(`${lab.url}/_lab/${action}`, {
            method: 'POST',
            body: '{"subscription": 7002}',
            headers: { 'content-type': 'application/json' },
          });
          assert.equal(refused.status, 400);
          assert.equal((await lab.json(refused)).detail, 'subscription: expected 7001, found 7002');
        }
        const left = await follow(lab, 'since=2026-03-28T23:59:00Z');
        assert.ok(left.rows.length > 0 && left.rows.every(({ id }) => id.includes('.7001.')));
        assert.deepEqual(await lab.control('POST', 'allowance', { used: 999_999 }), {
          used: 999_999,
          daily_rows: 1_000_000,
        });
        assert.equal((await lab.get(`${CHANGES}?since=2026-03-28T23:59:00Z`)).status, 200);
        assert.equal((await lab.get(`${CHANGES}?since=2026-03-28T23:59:00Z`)).status, 429);
        assert.equal((await lab.read('/v1/me')).limits.throttled, 'account');
      }),
    );
  });
});

test('the commands are clients of the running lab', async () => {
  await inFolder((folder) =>
    withLab(folder, ['--clock', SPRING], async (lab) => {
      const moved = await command(lab, 'clock', '+26h', '--json');
      assert.equal(moved.code, 0, moved.told);
      assert.ok(JSON.parse(moved.text).now.startsWith('2026-03-30T02:'));
      assert.ok(
        JSON.parse((await command(lab, 'clock', '2026-04-01T00:00Z')).text).now.startsWith('2026-04-01T00:'),
      );
      assert.ok(JSON.parse((await command(lab, 'clock', '-1h')).text).now.startsWith('2026-03-31T23:'));
      const dropped = JSON.parse((await command(lab, 'drop', '--rows', '2', '--age', '3d')).text);
      const [{ ids }] = dropped.files;
      const corrected = await command(lab, 'correct', ids[0], '--score', '12');
      assert.equal(corrected.code, 0, corrected.told);
      assert.equal((await lab.read(`/v1/detections/${ids[0]}`)).strength.score, 12);
      const gap = JSON.parse((await command(lab, 'gap', 'imagewire', '--status', 'failed')).text);
      assert.equal(gap.status, 'failed');
      assert.equal(JSON.parse((await command(lab, 'allowance', '--used')).text).used, 1_000_000);
      const args = '--status 429 --retry-after 7 --endpoint getMe --times 3'.split(' ');
      assert.equal(JSON.parse((await command(lab, 'fault', 'add', ...args)).text).id, 'f1');
      assert.equal((await lab.get('/v1/me')).headers.get('retry-after'), '7');
      assert.equal(JSON.parse((await command(lab, 'fault', 'list')).text)[0].fired, 1);
      assert.equal((await command(lab, 'fault', 'clear', 'f1')).code, 0);
      assert.equal((await lab.get('/v1/me')).status, 200);
      const report = JSON.parse((await command(lab, 'report')).text);
      assert.deepEqual(
        report.requests.map(({ status, fault }: { status: number; fault: string | null }) => [status, fault]),
        [
          [200, null],
          [429, 'f1'],
          [200, null],
        ],
      );
      const wrong = await command(lab, 'correct', ids[0], '--score', 'ten');
      assert.equal(wrong.code, 2);
      assert.match(
        wrong.told,
        /score: expected a score: 0 to 100 for text, 0 to 99 for an image, found "ten"/,
      );
      const typed = await command(lab, 'dorp');
      assert.equal(typed.code, 2);
      assert.match(typed.told, /unknown command "lab dorp"\. Did you mean drop\?/);
      const nobody = runProgram(['lab', 'drop', '--data', join(folder, 'none')]);
      assert.equal(await nobody.ended, 1);
      assert.match(nobody.told(), /no lab runs in .*none\. Start one with: wirewatch lab/);
    }),
  );
});

test('the lab is asked from its own machine, by its own name, and says what it expected', async () => {
  await inFolder((folder) =>
    withLab(folder, ['--clock', SPRING], async (lab) => {
      const asked = (headers: Readonly<Record<string, string>>) =>
        new Promise<number>((resolve, reject) => {
          request(`${lab.url}/_lab/clock`, { headers }, (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          })
            .on('error', reject)
            .end();
        });
      assert.equal(await asked({ host: 'localhost:8080' }), 200);
      assert.equal(await asked({ host: 'attacker.example' }), 403);
      assert.equal(await asked({ origin: 'https://attacker.example' }), 403);
      const post = async (name: string, body: string, type = 'application/json') => {
        const response = await fetch(`${lab.url}/_lab/${name}`, {
          method: 'POST',
          body,
          headers: { 'content-type': type },
        });
        return [response.status, (await lab.json(response)).detail];
      };
      assert.deepEqual(await post('drop', '{}', 'text/plain'), [
        400,
        'Content-Type: expected application/json',
      ]);
      assert.deepEqual(await post('drop', '{"rowz": 1}'), [400, 'rowz: unknown; did you mean rows?']);
      for (const name of ['constructor', '__proto__'])
        assert.deepEqual(await post('restore', `{"${name}": 1}`), [
          400,
          `${name}: unknown; expected nothing`,
        ]);
      assert.deepEqual(await post('drop', '{"rows": "many"}'), [
        400,
        'rows: expected a whole number from 0 to 10,000, found "many"',
      ]);
      assert.equal((await post('clock', '{}'))[0], 400);
      assert.equal((await post('clock', '{"advance": "40000d"}'))[0], 400);
      assert.equal((await post('correct', '{"id": "t.7001.1.1", "score": 1}'))[0], 404);
      assert.equal(
        (await post('gap', '{"export": "newswire", "status": "missing", "window": "2026-03-28T23:50Z"}'))[0],
        409,
      );
      assert.equal((await post('nothing', '{}'))[0], 404);
      const document = await lab.control('GET', 'openapi.json');
      assert.deepEqual(Object.keys(document.paths['/_lab/faults'].post.requestBody.content), [
        'application/json',
      ]);
      const { properties } =
        document.paths['/_lab/faults'].post.requestBody.content['application/json'].schema;
      for (const name of ['status', 'retry_after', 'endpoint', 'times', 'cut_after'])
        assert.ok(name in properties, name);
      assert.equal((await fetch(`${lab.url}/v1/me`)).status, 401, 'the API itself asks for its key');
    }),
  );
});

test('a scenario plays its steps by the clock of the lab', async () => {
  await inFolder(async (folder) => {
    const script = join(folder, 'script.toml');
    writeFileSync(
      script,
      `[[steps]]
at = "2h"
[steps.faults]
status = 503
endpoint = "getMe"

[[steps]]
at = "0s"
drop = { rows = 4 }
`,
    );
    await withLab(folder, ['--clock', SPRING, '--scenario', script], async (lab) => {
      const actions = async () =>
        (await lab.control('GET', 'report')).actions.map(({ action }: { action: string }) => action);
      for (let done: string[] = []; done.length < 1; ) done = await actions();
      assert.deepEqual(await actions(), ['drop']);
      assert.equal((await lab.get('/v1/me')).status, 200);
      await lab.control('POST', 'clock', { advance: '121m' });
      for (let done: string[] = []; done.length < 3; ) done = await actions();
      assert.equal((await lab.get('/v1/me')).status, 503);
    });
    writeFileSync(join(folder, 'wrong.json'), '{"steps": [{"at": "1h", "drop": {"rowz": 1}}]}');
    const wrong = runProgram([
      'lab',
      '--data',
      join(folder, 'other'),
      '--scenario',
      join(folder, 'wrong.json'),
    ]);
    assert.equal(await wrong.ended, 2);
    assert.match(wrong.told(), /wrong\.json, step 1: rowz: unknown; did you mean rows\?/);
  });
});
