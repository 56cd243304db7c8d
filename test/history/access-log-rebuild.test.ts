/** access.db is rebuilt from its log after any damage or loss: a revoked key stays revoked. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { addAccount, findAccount, setAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { addKey, findKey, revokeKey, setKey } from '../../src/auth/keys.ts';
import { preseed } from '../../src/auth/preseed.ts';
import { removeAccount } from '../../src/auth/removal.ts';
import { startNewAccessLog } from '../../src/history/access-log.ts';
import { pauseIngest, readPause } from '../../src/ingest/pause.ts';
import { Refused } from '../../src/refused.ts';
import { openAccess } from '../support/access.ts';
import {
  AT_MS,
  contentOf,
  db,
  folder,
  KEY,
  keyOf,
  lastEntry,
  OTHER_KEY,
  reopened,
  segment,
} from '../support/access-history.ts';

describe('every change of access.db can be rebuilt from its log', () => {
  /** Copies access.db; the copy lacks all later changes. */
  const copied = () => {
    db.pragma('wal_checkpoint(TRUNCATE)');
    copyFileSync(folder.access, `${folder.root}/older`);
  };
  /** Makes all kinds of changes. @returns the resulting content of access.db */
  const changed = () => {
    revokeKey(db, KEY, AT_MS);
    setKey(db, OTHER_KEY, { subscriptions: [{ id: 7001, content_types: ['text'] }] });
    setAccount(db, 'acme', { daily_rows: 5, print_metadata: true });
    suspendAccount(db, 'acme', AT_MS);
    addAccount(db, { id: 'gone', name: 'Gone', daily_rows: null }, AT_MS);
    addKey(db, { ...keyOf('abcdefghij25'), account_id: 'gone', subscriptions: [] }, AT_MS);
    removeAccount(db, 'gone');
    pauseIngest(db, AT_MS);
    return contentOf(db);
  };

  for (const compare of [false, true]) {
    test(`an older one was restored (${compare ? 'a start' : 'a command'})`, () => {
      copied();
      const entries = lastEntry();
      const content = changed();
      db.close();
      copyFileSync(`${folder.root}/older`, folder.access);
      const again = reopened(compare);
      assert.deepEqual(again.content, content);
      assert.deepEqual(again.recovered, [{ kind: 'brought up', entries: lastEntry() - entries }]);
      assert.deepEqual(reopened(compare).recovered, []);
      const reader = createAccessReader(folder.access);
      assert.equal(reader.findKey(KEY, () => true)?.revoked_at, AT_MS);
      reader.close();
      assert.equal(readPause(db), AT_MS);
    });
  }

  test('an older one was restored, and SQLite joined a left-over -wal of the newer one to it', () => {
    copied();
    const older = readFileSync(`${folder.root}/older`);
    for (let count = 0; count < 20; count += 1)
      addAccount(db, { id: `a${count}`, name: 'x'.repeat(2000), daily_rows: null }, AT_MS);
    db.pragma('wal_checkpoint(TRUNCATE)');
    const content = changed();
    const wal = readFileSync(`${folder.access}-wal`);
    db.close();
    writeFileSync(folder.access, older);
    writeFileSync(`${folder.access}-wal`, wal);
    const again = reopened(true);
    assert.deepEqual(again.content, content);
    assert.equal(again.recovered[0]?.kind, 'rebuilt');
  });

  const LOSSES: readonly (readonly [what: string, lose: () => void])[] = [
    ['it was deleted', () => rmSync(folder.access)],
    ['it was emptied', () => writeFileSync(folder.access, '')],
    ['it was overwritten', () => writeFileSync(folder.access, Buffer.alloc(200_000, 'no database '))],
    [
      'it was overwritten, and what a crash has left lies beside it',
      () => {
        const other = openAccess(join(folder.root, 'other'), { create: true });
        addAccount(other, { id: 'other', name: 'Other', daily_rows: null }, AT_MS);
        const wal = readFileSync(join(folder.root, 'other', 'access.db-wal'));
        other.close();
        writeFileSync(folder.access, Buffer.alloc(200_000, 'no database '));
        writeFileSync(`${folder.access}-wal`, wal);
      },
    ],
    [
      'a page of it was overwritten',
      () => {
        const content = readFileSync(folder.access);
        content.fill(0x55, 3 * 16_384, 4 * 16_384);
        writeFileSync(folder.access, content);
      },
    ],
    [
      'it has other tables',
      () => {
        const other = openAccess(folder.root);
        other.pragma('user_version = 1');
        other.close();
      },
    ],
    [
      'it is of another installation',
      () => {
        const other = openAccess(join(folder.root, 'other'), { create: true });
        addAccount(other, { id: 'other', name: 'Other', daily_rows: null }, AT_MS);
        other.close();
        copyFileSync(join(folder.root, 'other', 'access.db'), folder.access);
      },
    ],
  ];
  for (const [what, lose] of LOSSES) {
    test(what, () => {
      const content = changed();
      db.close();
      lose();
      const again = reopened();
      assert.deepEqual(again.content, content);
      assert.deepEqual(
        again.recovered.map(({ kind }) => kind),
        ['rebuilt'],
      );
      // Changes are logged as before.
      setAccount(db, 'acme', { name: 'New' });
      assert.deepEqual(reopened(true).recovered, []);
      assert.equal(findAccount(db, 'acme')?.name, 'New');
    });
  }

  test('a start undoes writes that bypassed the log', () => {
    const content = changed();
    db.prepare('UPDATE api_key SET revoked_at = NULL').run();
    const again = reopened(true);
    assert.deepEqual(again.content, content);
    assert.equal(again.recovered[0]?.kind, 'rebuilt');
  });
});

describe('refused, and nothing is changed', () => {
  const refused = () => {
    db.close();
    const before = readFileSync(folder.access);
    assert.throws(
      () => openAccess(folder.root, { compare: true }),
      (error) =>
        error instanceof Refused &&
        error.code === 'configuration' &&
        /is damaged: .*Nothing was changed\. If access\.db is sound, .*wirewatch rebuild --log --data \/.* restore a backup /.test(
          error.message,
        ),
    );
    assert.deepEqual(readFileSync(folder.access), before);
  };

  test('the log is missing', () => {
    renameSync(folder.accessLog, `${folder.accessLog}-away`);
    refused();
  });

  test('the log ends before access.db', () => {
    const before = readFileSync(segment());
    setAccount(db, 'acme', { name: 'Later' });
    writeFileSync(segment(), before);
    refused();
  });

  test('the log is damaged', () => {
    const content = readFileSync(segment());
    content.fill(0x55, 200, 230);
    writeFileSync(segment(), content);
    refused();
  });
});

test('a new log has all content of access.db, and continues', () => {
  revokeKey(db, KEY, AT_MS);
  db.close();
  copyFileSync(folder.access, `${folder.root}/older`);
  rmSync(folder.accessLog, { recursive: true });
  const { commit, aside } = startNewAccessLog(folder, { kind: 'command', actor: 'alice' }, AT_MS);
  assert.deepEqual([commit.entry, aside], [7, null]);
  assert.deepEqual(reopened(true).recovered, []);
  const content = contentOf(db);
  assert.equal(findKey(db, KEY)?.revoked_at, AT_MS);
  db.close();
  // A database older than the start of the log.
  copyFileSync(`${folder.root}/older`, folder.access);
  const again = reopened();
  assert.equal(again.recovered[0]?.kind, 'rebuilt');
  assert.deepEqual(again.content, content);
  const second = startNewAccessLog(folder, { kind: 'command' }, AT_MS);
  assert.equal(second.aside, `${folder.accessLog}-until-20261121T100000Z`);
  assert.ok(existsSync(second.aside ?? ''));
});

test('a key removed with its account is not created again by the configuration', () => {
  removeAccount(db, 'acme');
  rmSync(folder.access);
  reopened();
  const account = { place: '', id: 'acme', name: 'Acme', daily_rows: null, print_metadata: undefined };
  const seed = { ...keyOf(KEY), place: '', subscriptions: [] };
  const { created, differences } = preseed(
    db,
    { accounts: [account], subscriptions: [], keys: [seed] },
    AT_MS,
  );
  assert.deepEqual([created.accounts, created.keys], [['acme'], []]);
  assert.deepEqual(differences, [`key ${KEY}: removed with its account`]);
  assert.equal(findKey(db, KEY), null);
});
