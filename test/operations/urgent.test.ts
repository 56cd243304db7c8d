/** A key that is revoked while access.db cannot take it: the operations thread and what the main thread remembers. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { after, test } from 'node:test';
import { type AccessReader, createAccessReader, type StoredKey } from '../../src/auth/access-reader.ts';
import { addAccount } from '../../src/auth/accounts.ts';
import { Denials } from '../../src/auth/denials.ts';
import { createKey } from '../../src/auth/key-form.ts';
import { addKey } from '../../src/auth/keys.ts';
import { openAccess } from '../../src/auth/open-access.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { noteEnded, prepareRevocations, readEnded } from '../../src/store/revocations.ts';
import { testOperations } from '../support/live.ts';
import { testFolder } from '../support/test-folder.ts';

const ID = createKey('ww').id;
/** Of an account whose suspension fills the file `revocations`. */
const LONG = 'x'.repeat(64 * 1024 - 60);

/** An installation of which a table can be damaged and made good: by default the audit trail, to which each change adds. */
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
  const denials = new Denials();
  const ingest = { ask: async () => ({ ok: true }) as const, wake() {}, async promote() {} };
  const operations = testOperations(root, { ingest, denials });
  const reader: AccessReader = createAccessReader(folder.access);
  after(reader.close);
  return {
    folder,
    damage: () => writeSync(file, Buffer.alloc(bytes, 0xff), 0, bytes, at),
    mend: () => writeSync(file, sound, 0, bytes, at),
    async run(path: string, given: object) {
      const told = await operations.run({ path, given, way: 'command', by: { actor: 'ada' } });
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
