/** Operations that nothing may hold up: a key is revoked while access.db cannot take it, a command beside long operations. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { after, test } from 'node:test';
import { type AccessReader, createAccessReader, type StoredKey } from '../../src/auth/access-reader.ts';
import { addAccount } from '../../src/auth/accounts.ts';
import { createDenials, noteEnded, prepareRevocations, readEnded } from '../../src/auth/denials.ts';
import { createKey } from '../../src/auth/key-form.ts';
import { addKey } from '../../src/auth/keys.ts';
import { openAccess } from '../../src/auth/open-access.ts';
import { NO_COUNTS } from '../../src/ingest/apply/apply-rows.ts';
import type { IngestRequest } from '../../src/ingest/threads/ingest-messages.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { testOperations } from '../support/live.ts';
import { testFolder } from '../support/test-folder.ts';

const ID = createKey('ww').id;
const BY = { actor: 'ada' };
const COUNTS = { files: 0, rows: 0, ...NO_COUNTS, left_out: 0, unreadable: [] };
/** Of an account whose suspension fills the file `revocations`. */
const LONG = 'x'.repeat(64 * 1024 - 60);

/**
 * An installation of which a table can be damaged and made good: by default the audit trail, to which each change adds.
 * Its ingest thread answers replays once they are served.
 */
function installation(table = 'audit') {
  const root = testFolder();
  const folder = dataFolder(root);
  prepareRevocations(folder);
  let at = 0;
  let bytes = 0;
  {
    using access = openAccess(root, { create: true, operation: { kind: 'command' } });
    addAccount(access, { id: 'acme', name: 'Acme' }, 1);
    addAccount(access, { id: LONG, name: 'Long' }, 1);
    const { key: _, ...made } = { ...createKey('ww'), id: ID };
    addKey(access, { ...made, account_id: 'acme', name: 'A', scopes: [], subscriptions: [] }, 1);
    bytes = Number(access.pragma('page_size', { simple: true }));
    const root_of = access.prepare<[string], number>('SELECT rootpage FROM sqlite_schema WHERE name = ?');
    at = (Number(root_of.pluck().get(table)) - 1) * bytes;
  }
  const file = openSync(folder.access, 'r+');
  after(() => closeSync(file));
  const sound = Buffer.alloc(bytes);
  readSync(file, sound, 0, bytes, at);
  const denials = createDenials();
  const asked: IngestRequest[] = [];
  const served = Promise.withResolvers<void>();
  const ask = async (request: IngestRequest) => {
    asked.push(request);
    await served.promise;
    return COUNTS as never;
  };
  const operations = testOperations(root, { ingest: { ask, wake() {}, async promote() {} }, denials });
  const reader: AccessReader = createAccessReader(folder.access);
  after(reader.close);
  return {
    ...{ folder, operations, asked, served },
    damage: () => writeSync(file, Buffer.alloc(bytes, 0xff), 0, bytes, at),
    mend: () => writeSync(file, sound, 0, bytes, at),
    async run(path: string, given: object) {
      const told = await operations.run({ path, given, way: 'command', by: BY });
      assert.equal(told.status, 200, told.body);
      return JSON.parse(told.body);
    },
    stored: () => reader.findKey(ID, () => true),
    /** What is known of a key, with what is denied. */
    known: (key: StoredKey | null) =>
      denials.over({ ...reader, findKey: () => key }, () => {}).findKey(ID, () => true),
  };
}

for (const table of ['audit', 'api_key'])
  test(`a key is revoked while the table ${table} of access.db is damaged`, async () => {
    const { folder, damage, run, stored, known } = installation(table);
    const key = stored();
    assert.equal(key?.revoked_at, null);
    damage();
    const { value, warning, failed } = await run('key-revoke', { id: ID });
    assert.deepEqual([value.id, value.status], [ID, 'revoked']);
    assert.match(warning, /is revoked, but access.db could not be written: .*malformed/);
    assert.equal(failed, false);
    assert.equal(known(key)?.revoked_at, 0);
    const ended = readEnded(folder).map(({ kind, id }) => `${kind} ${id}`);
    assert.deepEqual(ended, [`key ${ID}`]);
  });

test('what only the memory has is in access.db before the next change, which can take it back', async () => {
  const { folder, damage, mend, run, stored, known } = installation();
  // No room is left in the file.
  noteEnded(folder, { kind: 'account', id: LONG, at: 1 });
  damage();
  const { warning, failed } = await run('account-suspend', { id: 'acme' });
  assert.match(warning, /only in the memory of the running Wirewatch/);
  assert.equal(failed, true);
  assert.equal(known(stored())?.account.suspended_at, 0);
  await run('key-revoke', { id: ID });
  mend();
  assert.equal((await run('account-resume', { id: 'acme' })).value.status, 'active');
  const key = known(stored());
  assert.equal(key?.account.suspended_at, null, 'it works again, as the command said');
  assert.ok((key?.revoked_at ?? 0) > 0, 'the revocation is in access.db');
  assert.deepEqual(readEnded(folder), []);
});

test('a replay of another period, or after a licence changed, does not pass for one that runs', async () => {
  const { operations, asked, served } = installation();
  const run = (path: string, given: object) => operations.run({ path, given, way: 'command', by: BY });
  const replay = (given: object) => run('ingest-replay', given);
  const week = { from: '2026-11-01T00:00:00Z', to: '2026-11-08T00:00:00Z' };
  const replays = [replay(week), replay({}), replay({ from: week.from }), replay(week), replay({})];
  // It comes after them.
  assert.equal((await run('account-set', { id: 'acme', print_metadata: true })).status, 200);
  replays.push(replay({}), replay({}));
  await operations.view({ path: 'jobs', query: '', mayAct: false });
  served.resolve();
  for (const { status, body } of await Promise.all(replays)) assert.equal(status, 200, body);
  const [from, to, end] = [Date.parse(week.from), Date.parse(week.to), Number.MAX_SAFE_INTEGER];
  const spans = asked.map((request) => request.kind === 'replay' && `${request.from} to ${request.to}`);
  assert.deepEqual(spans, [`${from} to ${to}`, `0 to ${end}`, `${from} to ${end}`, `0 to ${end}`]);
});

test('whatever consoles and scripts wait for, a command is done', async () => {
  const { operations, served } = installation();
  const suspend = (way: 'api' | 'command') =>
    operations.run({ path: 'account-suspend', given: { id: 'acme' }, way, by: BY });
  const replay = () => operations.run({ path: 'ingest-replay', given: {}, way: 'api', by: BY });
  const waiting = Array.from({ length: 100 }, replay);
  assert.equal((await suspend('api')).status, 503);
  assert.equal((await suspend('command')).status, 200);
  served.resolve();
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 200);
});
