/** What was used of the daily allowances outlives restarts and crashes, and is written beside whatever else happens. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { nextDayMs, type UsedRows } from '../src/limits/daily-rows.ts';
import { readUsage } from '../src/limits/usage.ts';
import { createUsageWriter, type UsageWriter } from '../src/limits/usage-keeper.ts';
import { openAccess } from '../src/store/access.ts';
import { openReader } from '../src/store/database.ts';
import { type Appliance, createKey, showLogOfFailures, startAppliance } from './support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from './support/export-files.ts';

/** Far longer than these tests take. */
const MIDNIGHT_MS = 120_000;
/** Only a test that must fail waits so long. */
const PATIENCE_MS = 30_000;
/** At midnight all counts begin anew, in the middle of a test too. */
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
    path = join(folder, 'access.db');
    openAccess(folder, { create: true }).close();
    writer = createUsageWriter({ data: folder });
  });
  afterEach(async () => {
    await writer.close();
    rmSync(folder, { recursive: true });
  });

  function stored(): UsedRows[] {
    const db = openReader(path);
    try {
      return readUsage(db).sort(byId);
    } finally {
      db.close();
    }
  }

  test('writes counts over those before, and deletes the days that are not kept', async () => {
    const count = (day: number, id: string, rows: number): UsedRows => ({ day, holder: 'key', id, rows });
    await writer.write({ counts: [count(1, 'a', 5), count(2, 'a', 6)], days: [1, 2] });
    await writer.write({ counts: [count(2, 'a', 7), count(2, 'b', 1)], days: [1, 2] });
    assert.deepEqual(stored(), [count(1, 'a', 5), count(2, 'a', 7), count(2, 'b', 1)]);
    await writer.write({ counts: [count(3, 'b', 1)], days: [2, 3] });
    assert.deepEqual(stored(), [count(2, 'a', 7), count(2, 'b', 1), count(3, 'b', 1)]);
  });

  test('an account and a key of the same name are two', async () => {
    const counts: UsedRows[] = [
      { day: 1, holder: 'account', id: 'a', rows: 2 },
      { day: 1, holder: 'key', id: 'a', rows: 1 },
    ];
    await writer.write({ counts, days: [1] });
    assert.deepEqual(stored(), counts);
  });

  test('a store that is gone, empty or broken is told and left as it is; afterwards it writes again', async () => {
    const usage = { counts: [{ day: 1, holder: 'key', id: 'a', rows: 1 } as const], days: [1] };
    rmSync(path);
    await assert.rejects(writer.write(usage));
    assert.throws(() => statSync(path), 'it was made again');
    writeFileSync(path, '');
    await assert.rejects(writer.write(usage));
    assert.equal(statSync(path).size, 0);
    writeFileSync(path, 'no database at all'.repeat(1000));
    await assert.rejects(writer.write(usage));
    truncateSync(path);
    rmSync(path);
    openAccess(folder, { create: true }).close();
    await writer.write(usage);
    assert.deepEqual(stored(), usage.counts);
  });
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

  /** Rows in the store, of all that have read. */
  function writtenRows(): number {
    const db = openReader(join(appliance.data, 'access.db'));
    try {
      return readUsage(db).reduce((sum, { rows }) => sum + rows, 0);
    } finally {
      db.close();
    }
  }

  test('writes while it runs, so that a crash forgets little; a stop writes all; each start goes on', async () => {
    assert.equal(await read(first), 200);
    const untilMs = performance.now() + PATIENCE_MS;
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

  test('account set and key set hold from the next request on', async () => {
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

describe('an account', () => {
  let appliance: Appliance;
  showLogOfFailures(() => appliance?.serving());

  before(async () => {
    await untilMidnightIsFar();
    appliance = await startAppliance({ WIREWATCH_LIMITS_DAILY_ROWS: '1' });
  });
  after(() => appliance?.stop());

  /** Drops a row for the agency's subscription. @returns its path, to be read */
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

  test('suspended, resumed or renamed has used what it had used', async () => {
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

  test('removed and added again under its id has used nothing, beside the appliance and after a restart', async () => {
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
