/** Commands on keys while the appliance runs: changes apply from the next request on. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
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

test('key set holds for the next request: scopes, addresses, subscriptions', async () => {
  for (const [option, value, status] of [
    ['--scopes', 'reports:read', 403],
    ['--scopes', 'detections:read', 200],
    ['--allow-address', '192.0.2.0/24', 403],
    ['--allow-address', '127.0.0.0/8', 200],
  ] as const) {
    appliance.cli(['key', 'set', id, option, value]);
    assert.equal(await statusOf(CHANGES), status, value);
  }
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
