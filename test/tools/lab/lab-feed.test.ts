/** The feed of a lab: new detections, corrections, gaps, a removed subscription, a lost end, the allowance; its clock. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHANGES, follow, type Lab, SINCE_SPRING, SPRING, withLab } from '../../support/lab.ts';
import { granted, inBody, postToken } from '../../support/token-client.ts';

test('drop, correct, late: as in an export', () =>
  withLab(['--clock', SPRING], async (lab) => {
    const { cursor } = await follow(lab, SINCE_SPRING);
    const { files } = await lab.control('drop', { rows: 3 });
    const ids = files.flatMap((file: { ids: string[] }) => file.ids);
    assert.equal(ids.length, 3);
    const fresh = await follow(lab, `cursor=${cursor}`);
    assert.deepEqual(fresh.rows.map(({ id }) => id).sort(), ids.sort());
    assert.ok(fresh.rows.every(({ event, version }) => event === 'created' && version === 1));
    const text = ids.find((id: string) => id.startsWith('t.'));
    await lab.control('correct', { id: text, score: 12 });
    const corrected = await follow(lab, `cursor=${fresh.cursor}`);
    const shown = corrected.rows.map((row) => [row.id, row.event, row.version, row.strength.score]);
    assert.deepEqual(shown, [[text, 'updated', 2, 12]]);
    await lab.control('clock', { advance: '1m' });
    await lab.control('correct', { id: text, score: 12 });
    const one = await lab.read(`/v1/detections/${text}`);
    const { last_scored_at, exported_at } = one;
    const { event: _, ...before } = { ...corrected.rows[0] };
    assert.deepEqual(one, { ...before, last_scored_at, exported_at }, 'only its times may differ');
    assert.ok(last_scored_at > (before.last_scored_at ?? ''));
    assert.deepEqual((await follow(lab, `cursor=${corrected.cursor}`)).rows, []);
    const both = [1, 2].map(() => lab.control('drop', { rows: 2, export: 'newswire' }));
    for (const { files } of await Promise.all(both))
      for (const id of files[0].ids) await lab.read(`/v1/detections/${id}`);
    const only = await lab.control('drop', { rows: 4, age: '3d', subscription: 7002, export: 'imagewire' });
    assert.equal(only.files[0].window_start, '2026-03-25T23:50:00Z');
    const streams = only.files.flatMap((file: { ids: string[] }) => file.ids.map((id) => id.slice(0, 7)));
    assert.deepEqual(streams, Array(4).fill('i.7002.'));
    const image = only.files[0].ids[0];
    const { source } = await lab.read(`/v1/detections/${image}`);
    assert.equal((await fetch(source.image_url)).status, 200, 'its photo must exist');
    await lab.control('correct', { id: image, score: 31 });
    assert.deepEqual((await lab.read(`/v1/detections/${image}`)).source, source);
    const gap = await lab.control('gap', { export: 'imagewire', status: 'missing' });
    const late = await lab.control('late', { rows: 2 });
    assert.equal(late.files.length, 1);
    assert.deepEqual([late.files[0].export, late.files[0].window_start], ['imagewire', gap.window_start]);
    assert.deepEqual((await lab.read('/v1/me')).data_gaps.image, []);
  }));

test('gaps of each status, a removed subscription, a lost end, the allowance', () =>
  withLab(['--clock', SPRING], async (lab) => {
    for (const status of ['missing', 'failed', 'abandoned']) {
      const { window_start } = await lab.control('gap', { export: 'newswire', status });
      const { data_gaps } = await lab.read('/v1/me');
      const gap = data_gaps.text.find((one: { window_start: string }) => one.window_start === window_start);
      assert.equal(gap?.status, status, window_start);
    }
    const { rows, cursor } = await follow(lab, SINCE_SPRING);
    await lab.control('restore');
    const raised = await follow(lab, `cursor=${cursor}`);
    const known = new Map(rows.map(({ id, version }) => [id, version]));
    assert.equal(new Set(raised.rows.map(({ id }) => id)).size, known.size);
    for (const { id, version } of raised.rows)
      assert.ok(version >= 1000 + (known.get(id) ?? 0), `${id} ${version}`);
    await lab.control('restore');
    const again = await follow(lab, `cursor=${raised.cursor}`);
    const before = new Map(raised.rows.map(({ id, version }) => [id, version]));
    assert.equal(again.rows.length, before.size);
    for (const { id, version } of again.rows)
      assert.equal(version, 1001 + (before.get(id) ?? 0), `${id}: once each time`);
    await lab.command('subscription', 'remove', '7002', '--yes');
    const { subscriptions } = await lab.read('/v1/me');
    const ids = subscriptions.map(({ id }: { id: number }) => id);
    assert.deepEqual(ids, [7001]);
    const { files } = await lab.control('drop', { rows: 8 });
    for (const { ids } of files) for (const id of ids) assert.ok(id.includes('.7001.'), id);
    const [status, { detail }] = await lab.post('drop', '{"subscription": 7002}');
    assert.deepEqual([status, detail], [400, 'subscription: expected 7001, found 7002']);
    const left = await follow(lab, SINCE_SPRING);
    assert.ok(left.rows.length > 0 && left.rows.every(({ id }) => id.includes('.7001.')));
    const allowance = await lab.control('allowance', { used: 999_999 });
    assert.deepEqual(allowance, { used: 999_999, daily_rows: 1_000_000 });
    assert.equal((await lab.get(`${CHANGES}?${SINCE_SPRING}`)).status, 200);
    assert.equal((await lab.get(`${CHANGES}?${SINCE_SPRING}`)).status, 429);
    assert.equal((await lab.read('/v1/me')).limits.throttled, 'account');
  }));

test('due events happen at once: tokens, keys, the allowance, since, windows, waits', () =>
  withLab(['--clock', '2090-05-10T12:00Z'], async (lab) => {
    // The command checks the time by its own clock.
    const id = lab.key.split('_')[2] ?? '';
    await lab.command('key', 'set', id, '--expires', '2090-06-19T12:00:00Z');
    const { access_token } = await granted(await postToken(lab, inBody({ id, secret: lab.key })));
    const asToken = { authorization: `Bearer ${access_token}` };
    assert.equal((await lab.get('/v1/me', asToken)).status, 200);
    await lab.control('allowance');
    const used = await lab.get(`${CHANGES}?since=2090-05-10T00:00:00Z`);
    assert.equal(used.status, 429);
    assert.match(String((await lab.json(used)).type), /daily_allowance$/);
    const cursor = await waitAndMove(lab);
    assert.equal((await lab.get('/v1/me', asToken)).status, 401, 'the token has expired');
    const me = await lab.get('/v1/me');
    assert.ok(Math.abs(Date.parse(me.headers.get('date') ?? '') - Date.parse('2090-05-11T14:00Z')) < 300_000);
    const { data_gaps } = await lab.json(me);
    assert.equal(data_gaps.text.length, 11, 'windows are missing a day after they were due');
    assert.deepEqual(data_gaps.image, data_gaps.text);
    assert.equal((await lab.get('/v1/health')).status, 503);
    await lab.control('clock', { advance: '32d' });
    assert.equal((await lab.get(`${CHANGES}?since=2090-05-10T12:00:00Z`)).status, 400, 'since is too old');
    assert.equal((await lab.get(`${CHANGES}?cursor=${cursor}`)).status, 200, 'a cursor is never too old');
    await lab.control('clock', { to: '2090-06-19T13:00Z' });
    assert.equal((await lab.get('/v1/me')).status, 401, 'the key has expired');
  }));

/** Moves the clock past the end of a waiting request, which must then end. @returns its cursor */
async function waitAndMove(lab: Lab): Promise<string> {
  await lab.control('allowance', { used: 0 });
  const { cursor } = await follow(lab, 'since=2090-05-10T00:00:00Z');
  const waiting = lab.get(`${CHANGES}?cursor=${cursor}`, { prefer: 'wait=60' });
  // The request must be waiting before the clock is moved.
  type Asked = { readonly prefer: string | null; readonly status: number | null };
  const isWaiting = ({ prefer, status }: Asked) => prefer !== null && status === null;
  while (!(await lab.control('report')).requests.some(isWaiting));
  const beganMs = performance.now();
  const { now } = await lab.control('clock', { advance: '+26h' });
  assert.ok(Math.abs(Date.parse(now) - Date.parse('2090-05-11T14:00Z')) < 300_000);
  const waited = await waiting;
  assert.equal(waited.headers.get('preference-applied'), 'wait=60');
  assert.ok(performance.now() - beganMs < 55_000, 'it waited by the real clock');
  return (await lab.json(waited)).next_cursor;
}

test('missing windows are abandoned after thirty days; the clock can go back', () =>
  withLab(['--clock', SPRING], async (lab) => {
    const { window_start } = await lab.control('gap', { export: 'newswire', status: 'missing' });
    const gaps = async () =>
      (await lab.read('/v1/me')).data_gaps.text as { window_start: string; status: string }[];
    assert.deepEqual(await gaps(), [{ window_start, status: 'missing' }]);
    const dropLate = async () => {
      const { now } = await lab.control('clock');
      const age = `${Date.parse(now) - Date.parse(window_start) - 600_000}ms`;
      const { files } = await lab.control('drop', { rows: 1, age, export: 'newswire' });
      assert.equal(files[0].window_start, window_start);
      return (await lab.get(`/v1/detections/${files[0].ids[0]}`)).status;
    };
    await lab.control('clock', { advance: '31d' });
    assert.equal(await dropLate(), 404, 'the file of an abandoned window is held');
    const { now } = await lab.control('clock', { to: '2026-03-29T02:00:00Z' });
    assert.ok(now.startsWith('2026-03-29T02:0'), now);
    assert.equal((await lab.get('/v1/me')).status, 200);
  }));
