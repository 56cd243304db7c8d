/** Used rows survive restarts and crashes, and are written independently of other work. */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { nextDayMs } from '../../src/limits/daily-allowance.ts';
import type { UsedRows } from '../../src/limits/daily-rows.ts';
import { openUsage, readUsageAtStart, readUsedRows, writeUsage } from '../../src/limits/usage.ts';
import { createUsageWriter, type UsageWriter } from '../../src/limits/usage-keeper.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DAY_MS } from '../../src/time.ts';
import { type Appliance, createKey, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { inBody, postToken } from '../support/token-client.ts';

/** Much longer than these tests take. */
const MIDNIGHT_MS = 120_000;
/** Only a failing test waits this long. */
const TIMEOUT_MS = 30_000;
/** Waits if midnight is near: all counts restart at midnight, even during a test. */
async function untilMidnightIsFar(): Promise<void> {
  const leftMs = nextDayMs(Date.now()) - Date.now();
  if (leftMs < MIDNIGHT_MS) await new Promise((resolve) => setTimeout(resolve, leftMs));
}

const byId = (a: UsedRows, b: UsedRows) => a.day - b.day || a.id.localeCompare(b.id);

describe('the writer of used rows', () => {
  let folder: string;
  let path: string;
  let writer: UsageWriter;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'wirewatch-usage-'));
    path = join(folder, 'usage.db');
    writer = createUsageWriter({ path });
  });
  afterEach(async () => {
    await writer.close();
    rmSync(folder, { recursive: true });
  });

  function stored(): UsedRows[] {
    const db = openDatabase(path, 'read');
    try {
      return readUsedRows(db).sort(byId);
    } finally {
      db.close();
    }
  }

  test('overwrites earlier counts, and deletes older days', async () => {
    const count = (day: number, id: string, rows: number): UsedRows => ({ day, holder: 'key', id, rows });
    await writer.write({ counts: [count(1, 'a', 5), count(2, 'a', 6)], days: [1, 2], uses: [] });
    await writer.write({ counts: [count(2, 'a', 7), count(2, 'b', 1)], days: [1, 2], uses: [] });
    assert.deepEqual(stored(), [count(1, 'a', 5), count(2, 'a', 7), count(2, 'b', 1)]);
    await writer.write({ counts: [count(3, 'b', 1)], days: [2, 3], uses: [] });
    assert.deepEqual(stored(), [count(2, 'a', 7), count(2, 'b', 1), count(3, 'b', 1)]);
  });

  test('an account and a key of the same name are counted separately', async () => {
    const counts: UsedRows[] = [
      { day: 1, holder: 'account', id: 'a', rows: 2 },
      { day: 1, holder: 'key', id: 'a', rows: 1 },
    ];
    await writer.write({ counts, days: [1], uses: [] });
    assert.deepEqual(stored(), counts);
  });

  test('a broken file is reported and left as it is; a missing one is created, and writes continue', async () => {
    const usage = { counts: [{ day: 1, holder: 'key', id: 'a', rows: 1 } as const], days: [1], uses: [] };
    const rubbish = 'no database at all'.repeat(1000);
    writeFileSync(path, rubbish);
    await assert.rejects(writer.write(usage));
    assert.equal(readFileSync(path, 'utf8'), rubbish);
    rmSync(path);
    await writer.write(usage);
    assert.deepEqual(stored(), usage.counts);
  });
});

describe('at the start', () => {
  const count: UsedRows = { day: 1, holder: 'key', id: 'a', rows: 7 };
  let folder: string;
  let path: string;
  let reasons: string[];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'wirewatch-usage-'));
    path = join(folder, 'usage.db');
    reasons = [];
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const start = () => readUsageAtStart(path, (reason) => reasons.push(reason)).rows;

  function fill(): void {
    const db = openUsage(path);
    writeUsage(db, { counts: [count], days: [1], uses: [{ key_id: 'a', last_used_at: 1, position: null }] });
    db.close();
  }

  test('a missing file is created, and a good one is used, both without a warning', () => {
    assert.deepEqual(start(), []);
    assert.ok(existsSync(path));
    fill();
    assert.deepEqual([start(), reasons], [[count], []]);
  });

  test('networks that proved a key are read back, without those of yesterday and beyond 50,000', () => {
    const db = openUsage(path);
    const seen = (count: number, from: number) =>
      Array.from({ length: count }, (_, at) => ({
        key_id: 'a',
        network: `n${from + at}`,
        seen_at: from + at,
      }));
    const write = (...more: ReturnType<typeof seen>) =>
      writeUsage(db, { counts: [], days: [], uses: [], seen: more });
    const readBack = () => readUsageAtStart(path, (reason) => reasons.push(reason)).seen;
    write(...seen(3, 0));
    write(...seen(1, DAY_MS + 1));
    assert.deepEqual(readBack(), [...seen(1, 2), ...seen(1, DAY_MS + 1)]);
    write(...seen(50_001, DAY_MS + 2));
    assert.deepEqual([readBack().length, readBack()[0]], [50_000, ...seen(1, DAY_MS + 3)]);
    db.close();
  });

  const unusable: Readonly<Record<string, () => void>> = {
    empty: () => writeFileSync(path, ''),
    'no database': () => writeFileSync(path, 'no database at all'.repeat(1000)),
    damaged() {
      fill();
      const content = readFileSync(path);
      writeFileSync(path, content.fill(0x55, content.length - 2000));
    },
    'of another program': () => openDatabase(path, 'write', ACCESS_SCHEMA).close(),
    'of another schema'() {
      fill();
      const db = openUsage(path);
      db.pragma('user_version = 99');
      db.close();
    },
    'without its table'() {
      const db = openUsage(path);
      db.exec('DROP TABLE row_usage');
      db.close();
    },
    'without its other table'() {
      const db = openUsage(path);
      db.exec('DROP TABLE key_use');
      db.close();
    },
    'without its refusals'() {
      const db = openUsage(path);
      db.exec('DROP TABLE refusal');
      db.close();
    },
    'a folder': () => mkdirSync(join(path, 'within'), { recursive: true }),
  };
  for (const [how, make] of Object.entries(unusable)) {
    test(`a file that is ${how} is set aside, also a second time, and a new one is created`, () => {
      for (const times of [1, 2]) {
        make();
        writeFileSync(`${path}-wal`, '');
        assert.deepEqual(start(), []);
        assert.equal(reasons.length, times);
        assert.deepEqual([existsSync(path), existsSync(`${path}-wal`)], [false, false]);
        assert.ok(existsSync(`${path}.damaged`));
      }
      fill();
      assert.deepEqual(start(), [count]);
    });
  }
});

describe('the program', () => {
  let appliance: Appliance;
  const first = newRow({ subscription_id: 7001 });
  const second = newRow({ subscription_id: 7001 });
  showLogOfFailures(() => appliance?.serving());

  before(async () => {
    await untilMidnightIsFar();
    appliance = await startAppliance({ WIREWATCH_LIMITS_DAILY_ROWS: '2' });
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([first, second]));
  });
  after(() => appliance?.stop());

  async function read(row: Readonly<Record<string, unknown>>) {
    const response = await appliance.get(`/v1/detections/${idOf(row)}`);
    await response.arrayBuffer();
    return response.status;
  }

  async function limits() {
    const response = await appliance.get('/v1/me');
    assert.equal(response.status, 200);
    return JSON.parse(await response.text()).limits;
  }

  /** The total of used rows in usage.db. */
  function writtenRows(): number {
    const db = openDatabase(join(appliance.data, 'usage.db'), 'read');
    try {
      return readUsedRows(db).reduce((sum, { rows }) => sum + rows, 0);
    } finally {
      db.close();
    }
  }

  test('writes while it runs, so that a crash loses little; a stop writes all; each start continues', async () => {
    assert.equal(await read(first), 200);
    const untilMs = performance.now() + TIMEOUT_MS;
    while (writtenRows() < 2) {
      assert.ok(performance.now() < untilMs, 'it was not written');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
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
    const untilMs = performance.now() + TIMEOUT_MS;
    while (Date.parse(shown().last_used_at ?? 0) < Date.parse(before)) {
      assert.ok(performance.now() < untilMs, 'it was not written');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.match(shown().last_used_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(shown().rows_today, 2);
    const listed = JSON.parse(appliance.cli(['key', 'list', '--json']).stdout);
    assert.deepEqual(listed, [shown()]);
    assert.match(appliance.cli(['key', 'list']).stdout, /LAST USED +ROWS TODAY\n/);
    const other = JSON.parse(
      appliance.cli([
        ...['key', 'create', '--account', 'agency', '--name', 'unused', '--scopes', 'detections:read'],
        ...['--subscriptions', '7001', '--json'],
      ]).stdout,
    );
    assert.deepEqual([other.last_used_at, other.rows_today], [null, 0]);
    appliance.cli(['key', 'revoke', other.id, '--yes']);
    const last = shown();
    await appliance.serving().stop();
    assert.deepEqual(shown(), last, 'a stop must write all counts');
    writeFileSync(join(appliance.data, 'usage.db'), 'no database');
    assert.deepEqual([shown().last_used_at, shown().rows_today], [null, null]);
    rmSync(join(appliance.data, 'usage.db'));
    await appliance.restart();
  });

  test('a damaged usage.db is replaced with a warning, a deleted one without', async () => {
    const path = join(appliance.data, 'usage.db');
    const warnings = () => appliance.serving().log.filter(({ msg }) => msg.startsWith('usage.db '));
    const startWithout = async (spoil: () => void) => {
      await appliance.serving().stop();
      spoil();
      await appliance.restart();
      assert.deepEqual([await read(first), await read(second), await read(second)], [200, 200, 429]);
    };
    await startWithout(() => writeFileSync(path, 'no database at all'.repeat(1000)));
    const [warning, ...more] = warnings();
    assert.deepEqual([warning?.level, more], ['warn', []]);
    assert.match(String(warning?.reason), /not a database/);
    await startWithout(() => {
      for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
    });
    assert.deepEqual(warnings(), []);
    await appliance.restart();
    assert.deepEqual([await read(second), warnings()], [429, []]);
  });

  test('account set and key set apply to the next request', async () => {
    const keyId = appliance.key.split('_')[2] ?? '';
    appliance.cli(['account', 'set', 'agency', '--daily-rows', '1000']);
    assert.equal(await read(second), 200);
    appliance.cli(['key', 'set', keyId, '--daily-rows', '1']);
    assert.equal(await read(second), 429);
    assert.deepEqual((await limits()).throttled, 'key');
    appliance.cli(['key', 'set', keyId, '--daily-rows', 'none']);
    assert.equal(await read(second), 200);
    appliance.cli(['account', 'set', 'agency', '--daily-rows', 'none']);
    assert.equal(await read(second), 429);
  });
});

test('after a restart, whoever knows a client id cannot lock out a network that proved it', async () => {
  const appliance = await startAppliance({ WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '2' });
  const id = appliance.key.split('_')[2] ?? '';
  const ask = async (address: string, secret: string) => {
    const headers = { 'x-forwarded-for': address };
    return (await postToken(appliance.serving(), inBody({ id, secret }), headers)).status;
  };
  try {
    assert.equal(await ask('192.0.2.1', appliance.key), 200);
    await appliance.restart();
    for (const guesser of ['203.0.113.1', '203.0.113.2']) assert.equal(await ask(guesser, 'x'), 401);
    assert.deepEqual([await ask('203.0.113.3', 'x'), await ask('203.0.113.4', appliance.key)], [429, 429]);
    assert.equal(await ask('192.0.2.1', appliance.key), 200);
  } finally {
    await appliance.stop();
  }
});

describe('an account', () => {
  let appliance: Appliance;
  showLogOfFailures(() => appliance?.serving());

  before(async () => {
    await untilMidnightIsFar();
    appliance = await startAppliance({ WIREWATCH_LIMITS_DAILY_ROWS: '1' });
  });
  after(() => appliance?.stop());

  /** Drops a row for the agency's subscription. @returns the path of its detection */
  async function dropRow(): Promise<string> {
    const row = newRow({ subscription_id: 7001 });
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([row]));
    return `/v1/detections/${idOf(row)}`;
  }

  async function status(path: string, key?: string): Promise<number> {
    const response = await appliance.get(path, key);
    await response.arrayBuffer();
    return response.status;
  }

  function removeAndAdd(): string {
    appliance.cli(['account', 'remove', 'agency', '--yes']);
    appliance.cli(['account', 'add', 'agency', '--name', 'Agency']);
    appliance.cli(['subscription', 'add', '7001', '--account', 'agency']);
    return createKey(appliance.cli, 'agency', '7001');
  }

  test('that is suspended, resumed or renamed keeps its count', async () => {
    const path = await dropRow();
    assert.deepEqual([await status(path), await status(path)], [200, 429]);
    appliance.cli(['account', 'suspend', 'agency']);
    assert.equal(await status(path), 403);
    appliance.cli(['account', 'resume', 'agency']);
    appliance.cli(['account', 'set', 'agency', '--name', 'Another']);
    assert.equal(await status(path), 429);
    await appliance.restart();
    assert.equal(await status(path), 429);
  });

  test('that is removed and added again starts at zero, with the appliance and after a restart', async () => {
    const second = removeAndAdd();
    const path = await dropRow();
    assert.deepEqual([await status(path, second), await status(path, second)], [200, 429]);

    const third = removeAndAdd();
    const another = await dropRow();
    await appliance.restart();
    assert.deepEqual([await status(another, third), await status(another, third)], [200, 429]);
    await appliance.restart();
    assert.equal(await status(another, third), 429);
  });
});
