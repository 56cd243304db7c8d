/**
 * Commands on accounts, subscriptions and keys while the appliance runs: changes apply from the next request on, and a
 * store that cannot be read never makes a good key invalid (contract: Authentication, Errors).
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { DAY_MS } from '../../src/time.ts';
import { createKey, sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';

const CHANGES = `/v1/detections/changes?since=${new Date(Date.now() - DAY_MS).toISOString()}`;

let key: string;
let id: string;

const textRow = newRow({ subscription_id: 7001 });
const secondRow = newRow({ subscription_id: 7002 });
const foreignRow = newRow({ subscription_id: 8001 });
const imageRow = newRow({ subscription_id: 7001 });
const TEXT = idOf(textRow);
const SECOND = idOf(secondRow);
const FOREIGN = idOf(foreignRow);
const IMAGE = idOf(imageRow, 'imagewire');

const appliance = await sharedAppliance({
  WIREWATCH_INGEST_QUIET_MS: '0',
  WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '20',
});
appliance.cli(['account', 'add', 'other', '--name', 'Other']);
appliance.cli(['subscription', 'add', '8001', '--account', 'other']);
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([textRow, secondRow, foreignRow]));
await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([imageRow]));

// Each test changes its own key, so that tests do not affect each other.
beforeEach(() => {
  key = createKey(appliance.cli, 'agency', '7001,7002');
  id = key.split('_')[2] ?? '';
});

async function statusOf(path: string, credential = key): Promise<number> {
  const response = await appliance.get(path, credential);
  await response.arrayBuffer();
  return response.status;
}

/** The status, and the detail of a problem. */
async function answerTo(path: string, init: RequestInit = {}): Promise<{ status: number; detail: string }> {
  const response = await fetch(`${appliance.serving().url}${path}`, init);
  const body = JSON.parse(await response.text());
  return { status: response.status, detail: String(body.detail) };
}

/** The ids on the change stream, in order of arrival. */
async function streamOf(query = '', credential = key): Promise<string[]> {
  const response = await appliance.get(`${CHANGES}${query}`, credential);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text).data.map((row: { id: string }) => row.id);
}

test('a key works as soon as it is created, and never after it is revoked', async () => {
  assert.deepEqual(await streamOf(), [TEXT, SECOND, IMAGE]);
  appliance.cli(['key', 'revoke', id, '--yes']);
  assert.equal(await statusOf(CHANGES), 401);
  appliance.cli(['key', 'set', id, '--name', 'Still revoked']);
  assert.equal(await statusOf(CHANGES), 401);
  await appliance.restart();
  assert.equal(await statusOf(CHANGES), 401);
  assert.equal(await statusOf(CHANGES, appliance.key), 200);
});

test('key set --scopes holds for the next request', async () => {
  appliance.cli(['key', 'set', id, '--scopes', 'reports:read,exports:create']);
  assert.equal(await statusOf(CHANGES), 403);
  assert.equal(await statusOf(`/v1/detections/${TEXT}`), 403);
  appliance.cli(['key', 'set', id, '--scopes', 'detections:read']);
  assert.equal(await statusOf(CHANGES), 200);
});

test('key set --subscriptions holds for the next request, on the stream and for one detection', async () => {
  appliance.cli(['key', 'set', id, '--subscriptions', '7002']);
  assert.deepEqual(await streamOf(), [SECOND]);
  assert.equal(await statusOf(`/v1/detections/${TEXT}`), 404);
  assert.equal(await statusOf(`${CHANGES}&subscription_id=7001`), 400);
  appliance.cli(['key', 'set', id, '--subscriptions', '7001:image']);
  assert.deepEqual(await streamOf(), [IMAGE]);
  assert.equal(await statusOf(`/v1/detections/${IMAGE}`), 200);
  assert.equal(await statusOf(`/v1/detections/${TEXT}`), 404);
  assert.equal(await statusOf(`${CHANGES}&content_type=text`), 400);
  appliance.cli(['key', 'set', id, '--subscriptions', '7001,7002']);
  assert.deepEqual(await streamOf(), [TEXT, SECOND, IMAGE]);
});

test("a key never reads another account's detections, whatever it requests", async () => {
  assert.equal(await statusOf(`/v1/detections/${FOREIGN}`), 404);
  assert.equal(await statusOf(`${CHANGES}&subscription_id=8001`), 400);
  assert.deepEqual(await streamOf(`&article_id=${foreignRow.article_id}`), []);
  const refused = appliance.cli(['key', 'set', id, '--subscriptions', '7001,8001'], { anyStatus: true });
  assert.equal(refused.status, 1);
  assert.deepEqual(await streamOf(), [TEXT, SECOND, IMAGE]);
  assert.deepEqual(await streamOf('', createKey(appliance.cli, 'other', '8001')), [FOREIGN]);
});

test('key set --allow-address holds for the next request', async () => {
  appliance.cli(['key', 'set', id, '--allow-address', '192.0.2.0/24', '--allow-address', '2001:db8::/32']);
  assert.equal(await statusOf(CHANGES), 403);
  appliance.cli(['key', 'set', id, '--allow-address', '192.0.2.0/24', '--allow-address', '127.0.0.0/8']);
  assert.equal(await statusOf(CHANGES), 200);
  appliance.cli(['key', 'set', id, '--allow-address', '192.0.2.0/24']);
  assert.equal(await statusOf(CHANGES), 403);
  appliance.cli(['key', 'set', id, '--allow-address', 'none']);
  assert.equal(await statusOf(CHANGES), 200);
});

test('key set --expires: the key works until that instant', async () => {
  const beforeMs = performance.now();
  appliance.cli(['key', 'show', id]);
  // Late enough for the command that sets it, even on a busy machine.
  const endMs = Date.now() + Math.round(1000 + 10 * (performance.now() - beforeMs));
  appliance.cli(['key', 'set', id, '--expires', new Date(endMs).toISOString()]);
  // On a busy machine the expiry is far away: the requests until then must stay below the limit per minute.
  const intervalMs = Math.max(400, (endMs - Date.now()) / 8);
  let answered = 0;
  for (;;) {
    const askedMs = Date.now();
    const status = await statusOf(`/v1/detections/${TEXT}`);
    if (status === 401) {
      assert.ok(Date.now() >= endMs, 'the key expired early');
      break;
    }
    assert.equal(status, 200);
    assert.ok(askedMs < endMs, 'the key worked after its expiry');
    answered += 1;
    await sleep(Math.min(intervalMs, Math.max(endMs - Date.now(), 1)));
  }
  assert.ok(answered > 0, 'the command took longer than the key should live');
  appliance.cli(['key', 'set', id, '--expires', 'none']);
  assert.equal(await statusOf(`/v1/detections/${TEXT}`), 200, 'a removed expiry');
});

test('account suspend stops all keys of that account alone, until resume', async () => {
  const foreignKey = createKey(appliance.cli, 'other', '8001');
  appliance.cli(['account', 'suspend', 'agency']);
  try {
    assert.equal(await statusOf(CHANGES), 403);
    assert.equal(await statusOf(CHANGES, appliance.key), 403);
    assert.equal(await statusOf(CHANGES, foreignKey), 200);
    const made = createKey(appliance.cli, 'agency', '7001');
    assert.equal(await statusOf(CHANGES, made), 403, 'a key created meanwhile');
  } finally {
    appliance.cli(['account', 'resume', 'agency']);
  }
  assert.equal(await statusOf(CHANGES), 200);
});

test('a key without content types reads those that its subscriptions have now', async () => {
  const named = createKey(appliance.cli, 'agency', '7001:image');
  appliance.cli(['subscription', 'set', '7001', '--content-types', 'text']);
  try {
    assert.deepEqual(await streamOf(), [TEXT, SECOND]);
    assert.equal(await statusOf(`/v1/detections/${IMAGE}`), 404);
    assert.equal(await statusOf(`${CHANGES}&content_type=image`), 400);
    assert.deepEqual(
      await streamOf('', named),
      [],
      'a key for a content type that the subscription has lost',
    );
    assert.equal(await statusOf(`/v1/detections/${IMAGE}`, named), 404);
  } finally {
    appliance.cli(['subscription', 'set', '7001', '--content-types', 'text,image']);
  }
  assert.deepEqual(await streamOf(), [TEXT, SECOND, IMAGE]);
  assert.deepEqual(await streamOf('', named), [IMAGE]);
  appliance.cli(['subscription', 'set', '7002', '--content-types', 'text,image']);
  assert.deepEqual(await streamOf('&subscription_id=7002&content_type=image'), []);
});

test("a request with every error gets one error at a time, in the contract's order", async () => {
  const authorization = `Bearer ${key}`;
  const bad = '/v1/detections/changes?nope=1';
  appliance.cli(['key', 'set', id, '--scopes', 'reports:read', '--allow-address', '192.0.2.1']);
  appliance.cli(['account', 'suspend', 'agency']);
  const headers = { authorization };
  const first = await answerTo('/v1/detections/changes/?nope=1', { method: 'DELETE', headers: {} });
  assert.equal(first.status, 404);
  assert.equal((await answerTo(bad, { method: 'DELETE' })).status, 405);
  assert.equal((await answerTo(bad)).status, 401);
  const suspended = await answerTo(bad, { headers });
  appliance.cli(['account', 'resume', 'agency']);
  assert.equal(suspended.status, 403);
  assert.match(suspended.detail, /suspended/);
  const elsewhere = await answerTo(bad, { headers });
  assert.equal(elsewhere.status, 403);
  assert.match(elsewhere.detail, /address 127\.0\.0\.1/);
  appliance.cli(['key', 'set', id, '--allow-address', 'none']);
  // None of the earlier requests counted: the full rate is available.
  for (let count = 0; count < 18; count += 1) {
    const { status, detail } = await answerTo(bad, { headers });
    assert.equal(status, 403);
    assert.match(detail, /detections:read/);
  }
  appliance.cli(['key', 'set', id, '--scopes', 'detections:read']);
  assert.match((await answerTo(bad, { headers })).detail, /nope/);
  const missing = await answerTo('/v1/detections/t.7001.1.999', { headers });
  assert.equal(missing.status, 404);
  appliance.cli(['key', 'set', id, '--scopes', 'reports:read']);
  assert.equal((await answerTo(bad, { headers })).status, 429, 'the rate must be checked before the scope');
  appliance.cli(['key', 'set', id, '--allow-address', '192.0.2.1']);
  assert.equal((await answerTo(bad, { headers })).status, 403, 'the address must be checked before the rate');
  appliance.cli(['key', 'revoke', id, '--yes']);
  assert.equal((await answerTo(bad, { headers })).status, 401, 'the credential must be checked first');
});

test('keys are checked correctly while another process writes to the key store', async () => {
  const holder = await holdLock(join(appliance.data, 'access.db'));
  try {
    assert.equal(await statusOf(CHANGES), 200);
    assert.equal(await statusOf(CHANGES, mistyped(key)), 401);
    assert.equal(await statusOf(CHANGES, unknownKey()), 401);
  } finally {
    holder.kill('SIGKILL');
    await once(holder, 'exit');
  }
  assert.equal(await statusOf(CHANGES), 200);
  appliance.cli(['key', 'revoke', id, '--yes']);
  assert.equal(await statusOf(CHANGES), 401);
});

test('a missing key store is 503 for valid and unknown keys alike, until it is back', async () => {
  const path = join(appliance.data, 'access.db');
  renameSync(path, `${path}.away`);
  try {
    for (const credential of [key, unknownKey()]) {
      const response = await appliance.get(CHANGES, credential);
      const problem = JSON.parse(await response.text());
      assert.deepEqual([response.status, problem.title], [503, 'Service unavailable']);
      assert.equal(problem.type, `${appliance.serving().url}/errors/unavailable`);
      assert.equal(response.headers.has('ratelimit-limit'), false);
      assert.equal(response.headers.has('www-authenticate'), false);
      assert.doesNotMatch(problem.detail, /access\.db|sqlite/i);
    }
    assert.equal(await statusOf(CHANGES, mistyped(key)), 401, 'the form alone must decide');
    assert.equal((await answerTo('/nowhere')).status, 404);
  } finally {
    renameSync(`${path}.away`, path);
  }
  assert.equal(await statusOf(CHANGES), 200);
});

test('an overwritten key store is 503 until its content is back, and ingest continues', async () => {
  // After a start, all data is in the file itself, and none is cached in memory.
  await appliance.restart();
  assert.equal(await statusOf(CHANGES), 200);
  await withStoreReplaced('no database\n'.repeat(5000), async () => {
    assert.equal(await statusOf(CHANGES), 503);
    assert.equal(await statusOf(CHANGES, unknownKey()), 503);
  });
  assert.equal(await statusOf(CHANGES), 200);
  const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(line.msg, 'file applied');
});

test('an emptied key store is 503; nothing is lost once it is back', async () => {
  await withStoreReplaced('', async () => {
    const untilMs = Date.now() + 1000;
    do assert.equal(await statusOf(CHANGES), 503);
    while (Date.now() < untilMs);
    const { status, stderr } = appliance.cli(['key', 'list'], { anyStatus: true });
    assert.equal(status, 78, 'a command beside a running appliance must not create a new store');
    assert.match(stderr, /access\.db is empty\. The log next to it was not changed\./);
  });
  assert.equal(await statusOf(CHANGES), 200);
});

async function withStoreReplaced(content: string, use: () => Promise<void>): Promise<void> {
  const path = join(appliance.data, 'access.db');
  renameSync(path, `${path}.good`);
  try {
    writeFileSync(path, content);
    await use();
  } finally {
    renameSync(`${path}.good`, path);
  }
}

/** A well-formed key that does not exist. */
function unknownKey(): string {
  const { key } = JSON.parse(appliance.cli(['key', 'generate', '--json']).stdout);
  return String(key);
}

function mistyped(key: string): string {
  return key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
}

/** Starts a process that holds the write lock, as a long command or a backup program would. */
async function holdLock(path: string): Promise<ChildProcess> {
  const source = (file: string) =>
    JSON.stringify(pathToFileURL(join(import.meta.dirname, '..', '..', 'src', 'store', file)).href);
  const script = `
    import { ACCESS_SCHEMA } from ${source('access-schema.ts')};
    import { openDatabase } from ${source('database.ts')};
    openDatabase(${JSON.stringify(path)}, 'write', ACCESS_SCHEMA).exec('BEGIN EXCLUSIVE');
    console.log('held');
    setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: join(import.meta.dirname, '..', '..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [text] = await once(holder.stdout, 'data');
  assert.equal(String(text).trim(), 'held');
  return holder;
}
