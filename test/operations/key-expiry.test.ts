/** When a key may expire: judged by the clock of the installation, which a lab can set. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import type { Context } from '../../src/operations/operation.ts';
import { operationAt } from '../../src/operations/table.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { DAY_MS, formatMs } from '../../src/time.ts';
import { db, root } from '../support/access-store.ts';

const EXPIRES = '2027-01-01T00:00:00Z';
const TERMS = { account: 'acme', name: 'K', scopes: ['detections:read'], subscriptions: [7001] };

async function run(path: string, given: object, nowMs: number) {
  const context: Partial<Context> = {
    ...{ folder: dataFolder(root), nowMs, live: null, access: () => db },
    config: loadConfig({ flags: {}, env: {}, file: undefined, dataFolder: root }),
    change: (work) => work(db),
  };
  return Object((await operationAt(path)?.run(context as Context, given))?.value);
}

test('a key is given an end after the present of its installation only, whatever the clock of the machine', async () => {
  const endMs = Date.parse(EXPIRES);
  const { id, expires_at } = await run('key-create', { ...TERMS, expires: EXPIRES }, endMs - 1);
  assert.equal(expires_at, EXPIRES);
  const ways = { 'key-create': TERMS, 'key-set': { id }, 'key-rotate': { id, overlap: '0' } };
  for (const [path, given] of Object.entries(ways)) {
    const late = run(path, { ...given, expires: EXPIRES }, endMs);
    const message = /^expires: expected a time in the future, found 2027/;
    await assert.rejects(late, { code: 'invalid_request', message }, path);
    assert.equal((await run(path, { ...given, expires: EXPIRES }, endMs - 1)).expires_at, EXPIRES, path);
  }
});

test('a key is rotated only to one that ends after the overlap, also when that is repeated', async () => {
  const endMs = Date.parse(EXPIRES);
  const { id } = await run('key-create', { ...TERMS, expires: EXPIRES }, endMs - 30 * DAY_MS);
  const refused = (given: object, nowMs: number, ends = EXPIRES) =>
    assert.rejects(run('key-rotate', { id, ...given }, nowMs), {
      code: 'failed',
      message: new RegExp(`^key ${id} works until ${ends}, and the new key would end by then.*--expires`),
    });
  await refused({}, endMs - 7 * DAY_MS);
  await refused({ overlap: '12h' }, endMs - DAY_MS / 4);
  const withinOverlap = formatMs(endMs - 3 * DAY_MS);
  await refused({ expires: withinOverlap }, endMs - 9 * DAY_MS, formatMs(endMs - 2 * DAY_MS));
  await refused({ expires: withinOverlap, overlap: '6d' }, endMs - 9 * DAY_MS, withinOverlap);
  assert.equal((await run('key-rotate', { id }, endMs - 8 * DAY_MS)).expires_at, EXPIRES);
  const endsNow = formatMs(endMs - DAY_MS);
  await refused({}, endMs - 8 * DAY_MS + 1000, endsNow);
  const other = await run('key-rotate', { id, expires: null }, endMs - 7 * DAY_MS);
  assert.deepEqual([other.expires_at, other.replaced_expires_at], [null, endsNow]);
  assert.equal((await run('key-rotate', { id, overlap: '0' }, endMs - 2 * DAY_MS)).expires_at, endsNow);
});
