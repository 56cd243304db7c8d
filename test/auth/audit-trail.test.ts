/** The audit trail: who changed which account, subscription and key, and never a hash. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addAccount, setAccount } from '../../src/auth/accounts.ts';
import { noteOperation, readTrail } from '../../src/auth/audit.ts';
import { revokeKey, setKey } from '../../src/auth/keys.ts';
import { removeAccount } from '../../src/auth/removal.ts';
import { pauseIngest } from '../../src/ingest/operator-pause.ts';
import { Refused } from '../../src/refused.ts';
import { writing } from '../../src/store/database.ts';
import { AT_MS, audited, db, HASH, KEY, lastEntry, OTHER_KEY, reopenAs } from '../support/access-history.ts';
import { contentOfDatabase } from '../support/database-content.ts';

test('the audit trail shows who did what to which account, subscription and key, and never a hash', () => {
  reopenAs({ kind: 'command', command: 'key revoke', actor: 'root', sudo_user: 'alice' });
  revokeKey(db, KEY, AT_MS);
  setKey(db, OTHER_KEY, { subscriptions: [{ id: 7001, content_types: ['text'] }] });
  // The same name: no change.
  setAccount(db, 'acme', { name: 'Acme' });
  pauseIngest(db, AT_MS);
  removeAccount(db, 'acme');
  const changes = audited();
  const found = changes.map(({ actor, subject, id, change }) => [actor, subject, id, change]);
  assert.deepEqual(found, [
    [null, 'installation', null, 'added'],
    [null, 'account', 'acme', 'added'],
    [null, 'subscription', 7001, 'added'],
    [null, 'key', KEY, 'added'],
    [null, 'key', OTHER_KEY, 'added'],
    ['root', 'key', KEY, 'changed'],
    ['root', 'key', OTHER_KEY, 'changed'],
    ['root', 'ingest', null, 'changed'],
    ['root', 'account', 'acme', 'removed'],
    ['root', 'subscription', 7001, 'removed'],
    ['root', 'key', KEY, 'removed'],
    ['root', 'key', OTHER_KEY, 'removed'],
  ]);
  assert.deepEqual(changes[5]?.members, { revoked_at: { from: null, to: '2026-11-21T10:00:00Z' } });
  assert.deepEqual(changes[6]?.members, { subscriptions: { from: ['7001'], to: ['7001:text'] } });
  const { at, entry, command, sudo_user } = Object(changes[5]);
  assert.deepEqual([entry, command, sudo_user], [6, 'key revoke', 'alice']);
  assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000);
  assert.doesNotMatch(JSON.stringify(changes), new RegExp(HASH.toString('hex').slice(0, 8), 'i'));
});

test('a changed or missing entry is an error beside all the others', () => {
  const wholeWithout = (number: number) => audited().filter(({ entry }) => entry !== number);
  const sound = contentOfDatabase(db).audit ?? [];
  for (const column of ['operation', 'changes', 'at', 'checksum']) {
    const value = db.prepare<[], unknown>(`SELECT ${column} FROM audit WHERE entry = 2`).pluck().get();
    const other = typeof value === 'number' ? value ^ 1 : String(value).replace('"', "'");
    db.prepare(`UPDATE audit SET ${column} = ? WHERE entry = 2`).run(other);
    const { changes, damage } = readTrail(db);
    assert.match(damage ?? '', /damaged: 1 entry \(number 2\) .*verify$/, column);
    assert.deepEqual(changes, wholeWithout(2));
    db.prepare(`UPDATE audit SET ${column} = ? WHERE entry = 2`).run(value);
  }
  assert.deepEqual(contentOfDatabase(db).audit, sound);
  // A number far ahead is no gap of as many entries; nor does the gap before the next entry fill the memory.
  const far = 2 ** 40;
  db.prepare('UPDATE audit SET entry = ? WHERE entry = 2').run(far);
  assert.match(readTrail(db).damage ?? '', /damaged: 2 entries \(number 2, 1099511627776\)/);
  setAccount(db, 'acme', { name: 'Next' });
  assert.match(readTrail(db).damage ?? '', /damaged: 1,099,511,627,\d\d\d entries \(number 2, 6, 7, .*, …\)/);
  db.prepare('DELETE FROM audit WHERE entry > ?').run(far);
  db.prepare('UPDATE audit SET entry = 2 WHERE entry = ?').run(far);
  setAccount(db, 'acme', { name: 'Acme' });
  db.prepare('DELETE FROM audit WHERE entry > 5').run();
  db.prepare('DELETE FROM audit WHERE entry = 3').run();
  const { changes, damage } = readTrail(db);
  assert.match(damage ?? '', /1 entry \(number 3\)/);
  assert.deepEqual(changes, wholeWithout(3));
});

test('what changes nothing, or is rolled back, makes no entry', () => {
  const last = lastEntry();
  assert.throws(() => addAccount(db, { id: 'acme', name: 'Acme', daily_rows: null }, AT_MS), Refused);
  assert.throws(() =>
    writing(db, () => {
      setAccount(db, 'acme', { name: 'Not' });
      noteOperation(db, { kind: 'compact' });
      throw new Error('given up');
    }),
  );
  // A deferred violation, which SQLite finds at the commit.
  assert.throws(
    () =>
      writing(db, () => {
        db.pragma('defer_foreign_keys = ON');
        db.prepare("UPDATE subscription SET account_id = 'nobody'").run();
      }),
    /FOREIGN KEY/,
  );
  assert.equal(lastEntry(), last);
  setAccount(db, 'acme', { name: 'Next' });
  assert.deepEqual(audited().at(-1)?.members, { name: { from: 'Acme', to: 'Next' } });
  assert.equal(lastEntry(), last + 1);
});

test('what SQLite keeps for a savepoint is in memory: a full disk refuses no revocation', () => {
  // https://sqlite.org/pragma.html#pragma_temp_store
  assert.equal(db.pragma('temp_store', { simple: true }), 2);
});
