/** access.db and its spare copy: whatever happens to one of them, a revoked key stays revoked. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { addAccount, findAccount, setAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { addKey, findKey, revokeKey, setKey } from '../../src/auth/keys.ts';
import { removeAccount } from '../../src/auth/removal.ts';
import { findCopy, findSpare, readAccessState } from '../../src/auth/spare-copy.ts';
import { pauseIngest } from '../../src/ingest/operator-pause.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { openDatabase } from '../../src/store/database.ts';
import { openAccess } from '../support/access.ts';
import { AT_MS, db, folder, KEY, keyOf, OTHER_KEY, reopened } from '../support/access-history.ts';
import { contentOfDatabase } from '../support/database-content.ts';

/** Makes all kinds of changes. @returns the resulting content of access.db */
function changed() {
  revokeKey(db, KEY, AT_MS);
  setKey(db, OTHER_KEY, { subscriptions: [{ id: 7001, content_types: ['text'] }] });
  setAccount(db, 'acme', { daily_rows: 5, print_metadata: true });
  suspendAccount(db, 'acme', AT_MS);
  addAccount(db, { id: 'gone', name: 'Gone', daily_rows: null }, AT_MS);
  addKey(db, { ...keyOf('abcdefghij25'), account_id: 'gone', subscriptions: [] }, AT_MS);
  removeAccount(db, 'gone');
  pauseIngest(db, AT_MS);
  return contentOfDatabase(db);
}

/** @returns what a crash leaves beside the access.db of another installation */
function walOfAnother(): Buffer {
  const other = openAccess(join(folder.root, 'other'), { create: true });
  // More changes than this one has.
  for (let count = 0; count < 30; count += 1)
    addAccount(other, { id: `other-${count}`, name: 'Other', daily_rows: null }, AT_MS);
  const wal = readFileSync(join(folder.root, 'other', 'access.db-wal'));
  other.close();
  return wal;
}

const fillPage = (path: string) => {
  const content = readFileSync(path);
  content.fill(0x55, content.length >> 1, (content.length >> 1) + 600);
  writeFileSync(path, content);
};

/** Changes each occurrence of a text. */
const replaceIn = (path: string, from: string, to: string) => {
  const content = readFileSync(path, 'latin1');
  assert.ok(content.includes(from));
  writeFileSync(path, content.replaceAll(from, to), 'latin1');
};

const LOSSES: readonly (readonly [what: string, lose: (path: string) => void])[] = [
  ['was deleted', (path) => rmSync(path)],
  ['was emptied', (path) => writeFileSync(path, '')],
  ['was overwritten', (path) => writeFileSync(path, Buffer.alloc(200_000, 'no database '))],
  ['has an overwritten page', fillPage],
  ['has a flipped bit in a name', (path) => replaceIn(path, 'Acme', 'Acmf')],
];

describe('the spare copy takes the place of access.db, which', () => {
  const losses = [
    ...LOSSES,
    [
      'was overwritten, and what a crash has left lies beside it',
      (path: string) => {
        const wal = walOfAnother();
        writeFileSync(path, Buffer.alloc(200_000, 'no database '));
        writeFileSync(`${path}-wal`, wal);
      },
    ],
  ] as const;
  for (const [what, lose] of losses) {
    test(what, () => {
      const content = changed();
      db.close();
      lose(folder.access);
      const again = reopened();
      assert.deepEqual(again.content, content);
      assert.equal(again.recovered.length, 1);
      // Changes are noted as before, in both.
      setAccount(db, 'acme', { name: 'New' });
      assert.deepEqual(reopened().recovered, []);
      assert.equal(findAccount(db, 'acme')?.name, 'New');
      assert.notEqual(findKey(db, KEY)?.revoked_at, null);
    });
  }

  test('is older: it was restored by hand', () => {
    db.pragma('wal_checkpoint(TRUNCATE)');
    copyFileSync(folder.access, `${folder.root}/older`);
    const content = changed();
    db.close();
    copyFileSync(`${folder.root}/older`, folder.access);
    const again = reopened();
    assert.deepEqual(again.content, content);
    assert.deepEqual(again.recovered, ['it is older than its spare copy']);
    assert.deepEqual(reopened().recovered, []);
  });
});

describe('access.db stays where the spare copy', () => {
  for (const [what, lose] of LOSSES) {
    test(what, () => {
      const content = changed();
      lose(folder.spare);
      const again = reopened();
      assert.deepEqual(again, { content, recovered: [] });
      setAccount(db, 'acme', { name: 'New' });
      assert.equal(findCopy(folder.spare).kind, 'sound', 'the next change makes it anew');
    });
  }

  test('is of another installation', () => {
    const content = changed();
    walOfAnother();
    copyFileSync(join(folder.root, 'other', 'access.db-spare'), folder.spare);
    assert.deepEqual(reopened(), { content, recovered: [] });
    // Beside a damaged access.db, it would take its place after all.
    const kept = findSpare(folder);
    assert.deepEqual(kept.kind === 'sound' && kept.state, readAccessState(db));
  });
});

test('a spare copy that cannot be written is deleted: it would revive a revoked key', () => {
  const stale: string[] = [];
  const writer = openAccess(folder.root, { onSpareStale: (reason) => stale.push(reason) });
  try {
    // A folder in the place of the temporary file: as on a full disk, the copy cannot be made.
    const draft = join(folder.root, '.access.db-spare.tmp');
    mkdirSync(draft);
    revokeKey(writer, KEY, AT_MS);
    assert.equal(stale.length, 1);
    assert.equal(findKey(writer, KEY)?.revoked_at, AT_MS);
    assert.ok(!existsSync(folder.spare));
    rmSync(draft, { recursive: true });
    setAccount(writer, 'acme', { name: 'New' });
    assert.equal(findCopy(folder.spare).kind, 'sound');
  } finally {
    writer.close();
  }
});

test('a spare copy that a crash left behind is completed before anything else is confirmed', () => {
  copyFileSync(folder.spare, `${folder.root}/older`);
  revokeKey(db, KEY, AT_MS);
  const content = contentOfDatabase(db);
  db.close();
  // As if the process had been killed between the commit and the copy.
  copyFileSync(`${folder.root}/older`, folder.spare);
  assert.deepEqual(reopened(), { content, recovered: [] });
  db.close();
  rmSync(folder.access);
  const again = reopened();
  assert.deepEqual(again.content, content);
  assert.equal(again.recovered.length, 1);
});

test('an access.db whose creation a crash ended before its first row is a new one', () => {
  const root = join(folder.root, 'begun');
  mkdirSync(root);
  openDatabase(join(root, 'access.db'), 'write', ACCESS_SCHEMA).close();
  const recovered: string[] = [];
  openAccess(root, { create: true, onRecovered: (reason) => recovered.push(reason) }).close();
  assert.deepEqual(recovered, []);
  assert.equal(findCopy(join(root, 'access.db')).kind, 'sound');
});

test('both damaged: refused, with the command that helps, and nothing is changed', () => {
  changed();
  db.close();
  for (const path of [folder.access, folder.spare]) writeFileSync(path, 'no database '.repeat(5000));
  const before = readFileSync(folder.access);
  const message = /cannot be used: .* wirewatch restore BACKUP --replace --data \//;
  assert.throws(() => reopened(), { code: 'configuration', message });
  assert.deepEqual(readFileSync(folder.access), before);
});

test('only a start puts the spare copy in place, never a command beside others', () => {
  changed();
  db.close();
  renameSync(folder.access, `${folder.access}-away`);
  const message = /it is missing\. A start puts its spare copy in place/;
  assert.throws(() => openAccess(folder.root), { message });
  assert.ok(!existsSync(folder.access));
});
