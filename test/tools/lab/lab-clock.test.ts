/** The clock of a lab: everything due happens when it is moved. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHANGES, follow, type Lab, SPRING, withLab } from '../../support/lab.ts';
import { granted, inBody, postToken } from '../../support/token-client.ts';

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
