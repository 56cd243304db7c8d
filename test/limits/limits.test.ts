/** The rules of the limits, on clocks of their own. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { accountUsageId, createDailyAllowance, createDailyRows } from '../../src/limits/daily-rows.ts';
import { createKeyUses, createSeenKeys } from '../../src/limits/key-uses.ts';
import { createRequestCounts } from '../../src/limits/request-counts.ts';
import { createRequestRate } from '../../src/limits/request-rate.ts';
import { createUsageKeeper, NO_USAGE } from '../../src/limits/usage.ts';
import { errorCode } from '../../src/refused.ts';
import { DAY_MS, formatMs, HOUR_MS, SECOND_MS } from '../../src/time.ts';
import { testFolder } from '../support/test-folder.ts';

const NOON_MS = Date.parse('2026-11-21T12:00:00Z');
const CREATED_MS = NOON_MS - DAY_MS;
const DAY = NOON_MS / DAY_MS - 0.5;
const ACCOUNT = accountUsageId({ id: 'agency', created_at: CREATED_MS });

const READER = {
  key_id: 'key1',
  daily_rows: null,
  account: { id: 'agency', created_at: CREATED_MS, daily_rows: null },
};

describe('the daily row allowance', () => {
  test('an account that is removed and added again starts at zero', () => {
    const allowance = createDailyAllowance(createDailyRows(), 5);
    allowance.count(READER, 5, NOON_MS);
    const again = { ...READER, account: { ...READER.account, created_at: NOON_MS } };
    assert.equal(allowance.throttle(again, NOON_MS), null);
  });

  test('a clock set back grants no day twice, and a clock that was ahead takes nothing away', () => {
    const rows = createDailyRows();
    const allowance = createDailyAllowance(rows, 5);
    const isThrottled = (nowMs: number) => allowance.throttle(READER, nowMs) !== null;
    const yesterdayMs = NOON_MS - DAY_MS;
    allowance.count(READER, 5, yesterdayMs);
    allowance.count(READER, 5, NOON_MS);
    assert.ok(isThrottled(yesterdayMs), 'set back to a used-up day');
    assert.ok(isThrottled(NOON_MS), 'and forward again');
    const farMs = NOON_MS + 1000 * DAY_MS;
    assert.ok(!isThrottled(farMs));
    allowance.count(READER, 5, farMs);
    assert.ok(isThrottled(NOON_MS), 'today must stay used up');
    assert.ok(!isThrottled(NOON_MS + DAY_MS), 'tomorrow has the full allowance');
    for (const away of [2000, 0]) allowance.count(READER, 1, NOON_MS + away * DAY_MS);
    assert.equal(rows.used('account', ACCOUNT, NOON_MS), 6);
    assert.equal(rows.all().length, 6, 'of three days, for key and account');
  });
});

describe('what is stored of other counts', () => {
  test('of each key the last use, and the position of its last cursor', () => {
    const uses = createKeyUses([{ key_id: 'key1', last_used_at: 1, position: 6 }]);
    uses.note('key2', NOON_MS, 7);
    uses.note('key2', NOON_MS + 1);
    uses.note('key1', NOON_MS + 2);
    assert.deepEqual(uses.all(), [
      { key_id: 'key2', last_used_at: NOON_MS + 1, position: 7 },
      { key_id: 'key1', last_used_at: NOON_MS + 2, position: 6 },
    ]);
  });

  test('networks that proved a key within a day', () => {
    const seen = createSeenKeys([{ key_id: 'key1', network: '192.0.2.1', seen_at: NOON_MS - DAY_MS }]);
    seen.markSeen('key1', '192.0.2.2', NOON_MS - 1);
    const [last, ...more] = seen.all(NOON_MS);
    assert.deepEqual([last?.network, last?.seen_at, more], ['192.0.2.2', NOON_MS - 1, []]);
    assert.deepEqual(seen.all(NOON_MS + DAY_MS), []);
    const isSeen = (atMs: number) => seen.isSeen('key1', '192.0.2.2', atMs);
    assert.deepEqual([isSeen(NOON_MS + DAY_MS - 2), isSeen(NOON_MS + DAY_MS - 1)], [true, false]);
    assert.ok(!isSeen(NOON_MS - 400 * DAY_MS), 'a clock set far back does not keep it for ever');
  });

  test('refusals of the last week, going on from what was stored', () => {
    let nowMs = NOON_MS;
    const first = createRequestCounts(() => nowMs, NO_USAGE);
    first.refuse('key1', 'rate_limited');
    const counts = createRequestCounts(() => nowMs, JSON.parse(JSON.stringify(first.history())));
    nowMs += DAY_MS;
    counts.refuse('key1', 'rate_limited');
    counts.refuse('key1', 'rate_limited');
    const refused = { key_id: 'key1', code: 'rate_limited' };
    assert.deepEqual(counts.history().refusals, [
      { day: DAY, ...refused, count: 1, last_at: NOON_MS },
      { day: DAY + 1, ...refused, count: 2, last_at: nowMs },
    ]);
    nowMs = NOON_MS + 7 * DAY_MS;
    const days = counts.history().refusals.map(({ day }) => day);
    assert.deepEqual(days, [DAY + 1]);
  });

  test('requests by hour, of this machine and of each key; older ones by six hours, then by day, then forgotten', () => {
    let nowMs = NOON_MS;
    const first = createRequestCounts(() => nowMs, NO_USAGE);
    first.answered({ status: 200, key_id: 'key1', position: 7 });
    first.answered({ status: 404, key_id: null });
    first.behind({ behind_since: formatMs(nowMs - 3 * SECOND_MS) });
    // A restart within the hour goes on.
    const counts = createRequestCounts(() => nowMs, JSON.parse(JSON.stringify(first.history())));
    counts.refuse('key1', 'rate_limited');
    counts.behind({ behind_since: formatMs(nowMs - 2 * SECOND_MS) });
    const hour = NOON_MS / HOUR_MS;
    const all = { hour, key_id: null, requests: 2, refused: 1, behind_seconds: 3 };
    const own = { hour, key_id: 'key1', requests: 1, refused: 1, position: 7 };
    assert.deepEqual(counts.history().hours, [all, own]);
    nowMs += HOUR_MS;
    counts.answered({ status: 200, key_id: 'key1' });
    counts.answered({ status: 200, key_id: 'key1', position: 8 });
    const later = { hour: hour + 1, requests: 2, refused: 0, position: 8 };
    assert.deepEqual(counts.history().hours[3], { ...own, ...later });
    const joined = { ...own, requests: 3, position: 8 };
    for (const [days, step] of [
      [2, 6],
      [8, 24],
    ] as const) {
      nowMs = NOON_MS + days * DAY_MS;
      const start = hour - (hour % step);
      assert.deepEqual(counts.history().hours, [
        { ...all, hour: start, requests: 4 },
        { ...joined, hour: start },
      ]);
    }
    nowMs = NOON_MS + 91 * DAY_MS;
    assert.deepEqual(counts.history().hours, []);
  });

  test('of counts of too many keys, the oldest go', () => {
    let nowMs = NOON_MS;
    const counts = createRequestCounts(() => nowMs, NO_USAGE);
    for (const hours of [0, 1]) {
      nowMs = NOON_MS + hours * HOUR_MS;
      for (let key = 0; key < 8000; key += 1) counts.answered({ status: 200, key_id: `key${key}` });
    }
    nowMs += HOUR_MS;
    const { hours } = counts.history();
    assert.equal(hours.length, 10_000);
    assert.equal(hours.filter(({ hour }) => hour === NOON_MS / HOUR_MS + 1).length, 8001);
  });
});

describe('the keeper of usage', () => {
  test('writes only what has changed, and at a stop what changed meanwhile', async () => {
    const path = join(testFolder(), 'usage');
    let text = '3';
    const onFailure = (error: unknown) => assert.fail(String(error));
    const keeper = createUsageKeeper(path, () => text, onFailure);
    void keeper.write();
    text = '5';
    await keeper.close();
    assert.equal(readFileSync(path, 'utf8'), '5');
    rmSync(path);
    await keeper.write();
    assert.ok(!existsSync(path));
  });

  test('a failure and its end are reported once, and nothing is lost', async () => {
    const path = join(testFolder(), 'missing', 'usage');
    const failures: unknown[] = [];
    const onFailure = (error: unknown) => failures.push(error === null ? null : errorCode(error));
    const keeper = createUsageKeeper(path, () => '3', onFailure);
    for (const _ of [1, 2]) await keeper.write();
    assert.deepEqual(failures, ['ENOENT']);
    mkdirSync(dirname(path));
    await keeper.close();
    assert.deepEqual([readFileSync(path, 'utf8'), failures[1]], ['3', null]);
  });
});

test('a window of requests ends, even one that began in the future, before the clock was set back', () => {
  const rate = createRequestRate(1);
  const waits = [NOON_MS + DAY_MS, NOON_MS, NOON_MS].map((atMs) => rate.secondsToWait('key1', atMs));
  assert.deepEqual(waits, [null, null, 60]);
});
