/** Used rows survive restarts and crashes, and are written independently of other work. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, test } from 'node:test';
import { nextDayMs, type UsedRows } from '../../src/limits/daily-rows.ts';
import {
  keyUsage,
  NO_USAGE,
  readUsage,
  refusalsByKey,
  rowsToday,
  type Usage,
  writeUsageFile,
} from '../../src/limits/usage.ts';
import { DAY_MS } from '../../src/time.ts';
import { sharedAppliance, startAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { testFolder } from '../support/test-folder.ts';
import { inBody, postToken } from '../support/token-client.ts';
import { until } from '../support/until.ts';

/** Much longer than these tests take. */
const MIDNIGHT_MS = 120_000;
/** Waits if midnight is near: all counts restart at midnight, even during a test. */
async function untilMidnightIsFar(): Promise<void> {
  const leftMs = nextDayMs(Date.now()) - Date.now();
  if (leftMs < MIDNIGHT_MS) await new Promise((resolve) => setTimeout(resolve, leftMs));
}

await untilMidnightIsFar();
const appliance = await sharedAppliance({ WIREWATCH_LIMITS_DAILY_ROWS: '2' });
const [first, second] = [newRow(), newRow()];
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([first, second]));

const COUNT: UsedRows = { day: 1, holder: 'key', id: 'a', rows: 7 };
const USAGE: Usage = {
  ...NO_USAGE,
  rows: [COUNT, { ...COUNT, holder: 'account' }],
  uses: [
    { key_id: 'a', last_used_at: 1, position: null },
    { key_id: 'b', last_used_at: 2, position: 3 },
  ],
  seen: [{ key_id: 'a', network: 'n', seen_at: 1 }],
  hours: [{ hour: 1, key_id: 'a', requests: 1, refused: 0, position: 3 }],
  refusals: [{ day: 1, key_id: 'a', code: 'rate_limited', count: 2, last_at: 9 }],
};

describe('the file', () => {
  let path: string;
  let reasons: string[];

  beforeEach(() => {
    path = join(testFolder(), 'usage');
    reasons = [];
  });

  const start = () => readUsage(path, (reason) => reasons.push(reason));
  const fill = () => writeUsageFile(path, JSON.stringify(USAGE));

  test('a missing file is no usage, and a good one is read as it was written, both without a warning', async () => {
    assert.deepEqual(start(), NO_USAGE);
    await fill();
    assert.deepEqual([start(), reasons], [USAGE, []]);
  });

  const whole = JSON.stringify(USAGE);
  const unusable: Readonly<Record<string, () => void>> = {
    empty: () => writeFileSync(path, ''),
    'no JSON': () => writeFileSync(path, 'no usage at all'.repeat(1000)),
    'cut off': () => writeFileSync(path, whole.slice(0, -10)),
    'of another program': () => writeFileSync(path, '{"rows": []}'),
    'with a negative count': () => writeFileSync(path, whole.replace('"rows":7', '"rows":-7')),
  };
  for (const [how, make] of Object.entries(unusable)) {
    test(`one that is ${how} is not used, and replaced by the next write`, async () => {
      make();
      assert.equal(start(), null);
      assert.equal(reasons.length, 1);
      await fill();
      assert.deepEqual(start(), USAGE);
    });
  }

  test('usage of keys and accounts counts the rows of the day', () => {
    const yesterday = { ...COUNT, day: 0, rows: 1000 };
    const usage = { ...USAGE, rows: [yesterday, COUNT, { ...COUNT, holder: 'account' as const, rows: 9 }] };
    const a = { last_used_at: 1, position: null, rows_today: 7 };
    const b = { last_used_at: 2, position: 3, rows_today: 0 };
    assert.deepEqual(Object.fromEntries(keyUsage(usage, DAY_MS)), { a, b });
    assert.deepEqual([...rowsToday(usage, 'account', DAY_MS)], [['a', 9]]);
  });

  test('refusals are summed over days, the most frequent first', () => {
    const of = (day: number, code: string, count: number) => ({
      day,
      key_id: 'a',
      code,
      count,
      last_at: day,
    });
    const refusals = [of(2, 'x', 2), of(1, 'x', 2), of(1, 'y', 3), of(1, 'a', 3)];
    const sums = refusalsByKey({ ...USAGE, refusals });
    const shown = sums.get('a')?.map(({ code, count, last_at }) => `${code} ${count} ${last_at}`);
    assert.deepEqual([sums.size, shown], [1, ['x 4 2', 'a 3 1', 'y 3 1']]);
  });
});

describe('the program', () => {
  async function read(row: Readonly<Record<string, unknown>>) {
    const response = await appliance.get(`/v1/detections/${idOf(row)}`);
    await response.arrayBuffer();
    return response.status;
  }

  const limits = async () => (await appliance.read('/v1/me')).limits;

  /** The total of used rows in the file. */
  function writtenRows(): number {
    const { rows } = readUsage(join(appliance.data, 'usage')) ?? NO_USAGE;
    return rows.reduce((sum, count) => sum + count.rows, 0);
  }

  test('writes while it runs, so that a crash loses little; a stop writes all; each start continues', async () => {
    assert.equal(await read(first), 200);
    await until('it is written', () => writtenRows() >= 2);
    await appliance.serving().kill();
    await appliance.restart();
    assert.equal((await limits()).throttled, null);
    assert.equal(await read(second), 200);
    assert.equal(await read(second), 429);
    await appliance.restart();
    assert.equal(await read(second), 429);
    const { throttled, throttled_until, daily_rows } = await limits();
    assert.deepEqual([throttled, daily_rows], ['account', 2]);
    assert.match(throttled_until, /^\d{4}-\d\d-\d\dT00:00:00Z$/);
  });

  test('key list and key show print the last use and the rows of the day, with and without the appliance', async () => {
    const id = appliance.key.split('_')[2] ?? '';
    const shown = () => JSON.parse(appliance.cli(['key', 'show', id, '--json']).stdout);
    const before = new Date(Math.floor(Date.now() / 1000) * 1000).toISOString();
    assert.equal((await appliance.get('/v1/me')).status, 200);
    await until('it is written', () => Date.parse(shown().last_used_at ?? 0) >= Date.parse(before));
    assert.match(shown().last_used_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(shown().rows_today, 2);
    assert.deepEqual(JSON.parse(appliance.cli(['key', 'list', '--json']).stdout), [shown()]);
    assert.match(appliance.cli(['key', 'list']).stdout, /LAST USED AT +ROWS TODAY\n/);
    const last = shown();
    await appliance.serving().stop();
    assert.deepEqual(shown(), last, 'a stop must write all counts');
    writeFileSync(join(appliance.data, 'usage'), 'no usage');
    assert.deepEqual([shown().last_used_at, shown().rows_today], [null, null]);
    rmSync(join(appliance.data, 'usage'));
    await appliance.restart();
  });
});

test('after a restart, whoever knows a client id cannot lock out a network that proved it', async () => {
  await using appliance = await startAppliance({ WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '2' });
  const id = appliance.key.split('_')[2] ?? '';
  const ask = async (address: string, secret: string) => {
    const headers = { 'x-forwarded-for': address };
    return (await postToken(appliance.serving(), inBody({ id, secret }), headers)).status;
  };
  assert.equal(await ask('192.0.2.1', appliance.key), 200);
  await appliance.restart();
  for (const guesser of ['203.0.113.1', '203.0.113.2']) assert.equal(await ask(guesser, 'x'), 401);
  assert.deepEqual([await ask('203.0.113.3', 'x'), await ask('203.0.113.4', appliance.key)], [429, 429]);
  assert.equal(await ask('192.0.2.1', appliance.key), 200);
});
