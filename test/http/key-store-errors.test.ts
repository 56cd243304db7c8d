/**
 * A damaged access.db: the token endpoint and each endpoint that needs a credential are 503, and health reports an
 * alert. Afterwards everything works again without a restart (contract:
 * Authentication, 6; Errors).
 */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Driver from 'better-sqlite3';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { alertsOf } from '../support/installation-state.ts';
import { preloaded } from '../support/preload.ts';
import { inBody, postToken } from '../support/token-client.ts';
import { until } from '../support/until.ts';

const GARBAGE = 'no database ';
const PAGE_BYTES = 16_384;

let known: { id: string; key: string };

const appliance = await sharedAppliance({ WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '1000000' });
const store = join(appliance.data, 'access.db');
const options = ['--account', 'agency', '--subscriptions', '7001', '--name', 'test'];
const made = appliance.cli(['key', 'create', ...options, '--scopes', 'detections:read', '--json']);
known = JSON.parse(made.stdout);

/** Overwrites a part of the open file. @returns a function that restores it */
function spoiled(start: number, bytes: number): () => void {
  const content = readFileSync(store).subarray(start, start + bytes);
  const write = (part: Buffer) => {
    const file = openSync(store, 'r+');
    writeSync(file, part, 0, bytes, start);
    closeSync(file);
  };
  write(garbage(bytes));
  return () => write(content);
}

const garbage = (bytes: number) =>
  Buffer.from(GARBAGE.repeat(Math.ceil(bytes / GARBAGE.length))).subarray(0, bytes);

const OF_THIS = ['keys cannot be checked', 'ingest stopped', 'database damaged'] as const;

const TARGETS = [
  'GET /v1/detections/changes?since=SINCE',
  'GET /v1/detections?from=DAY&to=DAY',
  'GET /v1/detections/t.7001.1.1',
  'GET /v1/me',
  'GET /v1/schema/detection',
  'HEAD /v1/schema/detection',
];

async function statuses(credential: string): Promise<Record<string, number>> {
  const since = new Date(Date.now() - 60_000).toISOString();
  const found: Record<string, number> = {};
  for (const target of TARGETS) {
    const [method = '', path = ''] = target
      .replace('SINCE', since)
      .replaceAll('DAY', since.slice(0, 10))
      .split(' ');
    const headers = { authorization: `Bearer ${credential}` };
    const response = await fetch(appliance.serving().url + path, { method, headers });
    await response.arrayBuffer();
    found[target] = response.status;
  }
  return found;
}

function askToken(): Promise<Response> {
  return postToken(appliance.serving(), inBody({ id: known.id, secret: known.key }));
}

function everywhere(status: number): Record<string, number> {
  return Object.fromEntries(TARGETS.map((target) => [target, status]));
}

function unknownKey(): string {
  return String(JSON.parse(appliance.cli(['key', 'generate', '--json']).stdout).key);
}

const openAlerts = () => alertsOf(appliance);

test('while keys cannot be checked, whatever needs a credential is 503, and health says it', async () => {
  // After a start, all data is in the file itself, and none in the write-ahead log.
  await appliance.restart();
  const { access_token: token } = JSON.parse(await (await askToken()).text());
  const good = { ...everywhere(200), 'GET /v1/detections/t.7001.1.1': 404 };
  assert.deepEqual(await statuses(known.key), good);
  const stranger = unknownKey();
  const end = spoiled(PAGE_BYTES, statSync(store).size - PAGE_BYTES);
  try {
    for (const credential of [known.key, token, stranger]) {
      assert.deepEqual(await statuses(credential), everywhere(503), credential);
    }
    assert.equal((await askToken()).status, 503);
    const health = await fetch(`${appliance.serving().url}/v1/health`);
    assert.equal(health.status, 503);
    assert.ok(JSON.parse(await health.text()).alerts.page_worthy >= 1);
    await until('the alert', async () =>
      (await openAlerts()).some(({ name, page_worthy }) => name === 'keys cannot be checked' && page_worthy),
    );
  } finally {
    end();
  }
  assert.deepEqual(await statuses(known.key), good);
  assert.deepEqual(await statuses(token), good);
  assert.deepEqual(await statuses(stranger), everywhere(401));
  assert.equal((await askToken()).status, 200);
  await until('it is over', async () => {
    const names = (await openAlerts()).map(({ name }) => name);
    return OF_THIS.every((name) => !names.includes(name));
  });
});

test('damage that only ingest meets stops ingest until it is over, and is not taken for damage of detections.db', {
  skip: NO_PRELOAD,
}, async () => {
  const threads = join(appliance.data, '..', 'threads');
  // Each thread loads this.
  const counted = `import { appendFileSync } from 'node:fs'; appendFileSync(${JSON.stringify(threads)}, '.');`;
  await appliance.restart(preloaded(counted));
  const starts = () => statSync(threads).size;
  const db = new Driver(store);
  const page = Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'removal'").pluck().get());
  const at = (page - 1) * PAGE_BYTES;
  const end = spoiled(at, PAGE_BYTES);
  try {
    // After a commit, the ingest thread reads the file again.
    db.exec("UPDATE account SET name = name || '!'; UPDATE account SET name = rtrim(name, '!')");
    const stopped = async () => (await openAlerts()).find(({ name }) => name === 'ingest stopped');
    await until('the alert', async () => (await stopped()) !== undefined);
    assert.match((await stopped())?.detail ?? '', /^access\.db: /);
    // Several starts of the thread later it is the same alert, opened once.
    const begun = starts();
    await until('several starts', () => starts() > begun + 3);
    const alerts = appliance
      .serving()
      .log.filter(({ msg }) => msg === 'alert opened' || msg === 'alert closed');
    assert.deepEqual(
      alerts
        .map(({ msg, alert }) => [msg, alert])
        .filter(([, alert]) => OF_THIS.some((name) => name === alert)),
      [['alert opened', 'ingest stopped']],
    );
    assert.deepEqual(await statuses(known.key), { ...everywhere(200), 'GET /v1/detections/t.7001.1.1': 404 });
  } finally {
    db.close();
    end();
  }
  await until('it is over', async () => (await openAlerts()).every(({ name }) => name !== 'ingest stopped'));
  const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(line.msg, 'file applied');
});
