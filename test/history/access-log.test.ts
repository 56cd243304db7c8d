/**
 * The log of access.db: every change is in it, whatever becomes of access.db comes out of it again, and an entry that
 * the database has refused is not in it (contract: Authentication; a key that was revoked stays revoked).
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { addAccount, findAccount, setAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { addKey, findKey, revokeKey, setKey } from '../../src/auth/keys.ts';
import { preseed } from '../../src/auth/preseed.ts';
import { removeAccount } from '../../src/auth/removal.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import type { Recovered } from '../../src/history/access.ts';
import { beginAccessLogAnew, logTransactions } from '../../src/history/access-log.ts';
import { type AuditedChange, AuditTrail } from '../../src/history/audit.ts';
import { readEntries } from '../../src/history/entries.ts';
import { findTail } from '../../src/history/log-reader.ts';
import { LogWriter } from '../../src/history/log-writer.ts';
import { pauseIngest, readPause } from '../../src/ingest/pause.ts';
import { Refused } from '../../src/refused.ts';
import { ACCESS_SCHEMA, ACCESS_TABLES } from '../../src/store/access-schema.ts';
import { type Database, writing } from '../../src/store/database.ts';
import { type DataFolder, dataFolder } from '../../src/store/folder.ts';
import { openWriter } from '../../src/store/writer.ts';
import { openAccess } from '../support/access.ts';

const KEY = 'abcdefghij23';
const OTHER_KEY = 'abcdefghij24';
const HASH = Buffer.alloc(32, 0xab);
const AT_MS = Date.parse('2026-11-21T10:00:00Z');

let folder: DataFolder;
let db: Database;

beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), 'wirewatch-test-')));
  db = openAccess(folder.root, { create: true });
  addAccount(db, { id: 'acme', name: 'Acme', daily_rows: null }, AT_MS);
  const terms = { name: null, time_zone: 'UTC', content_types: ['text', 'image'] as const };
  addSubscription(db, { id: 7001, account_id: 'acme', ...terms }, AT_MS);
  for (const id of [KEY, OTHER_KEY]) addKey(db, keyOf(id), AT_MS);
});
afterEach(() => {
  if (db.open) db.close();
  rmSync(folder.root, { recursive: true });
});

function keyOf(id: string) {
  return {
    id,
    account_id: 'acme',
    prefix: 'ww',
    hash: HASH,
    name: 'Dashboard',
    scopes: ['detections:read' as const],
    subscriptions: [{ id: 7001, content_types: null }],
    expires_at: null,
    allow_addresses: [],
    daily_rows: null,
  };
}

/** All that is logged. */
function contentOf(from: Database): Record<string, unknown[]> {
  const rows = (table: string) => from.prepare(`SELECT * FROM ${table} ORDER BY 1`).all();
  return Object.fromEntries(ACCESS_TABLES.map((table) => [table, rows(table)]));
}

const lastEntry = () => findTail(folder.accessLog, 'access').last?.entry ?? 0;
const segment = () => join(folder.accessLog, readdirSync(folder.accessLog)[0] ?? '');

/** Opens it again, as a start does. */
function reopened(compare = false): { content: Record<string, unknown[]>; recovered: Recovered[] } {
  if (db.open) db.close();
  const recovered: Recovered[] = [];
  db = openAccess(folder.root, { compare, onRecovered: (what) => recovered.push(what) });
  return { content: contentOf(db), recovered };
}

async function audited(): Promise<AuditedChange[]> {
  const trail = new AuditTrail();
  const changes: AuditedChange[] = [];
  for await (const entry of readEntries(folder.accessLog, 'access', { fromMs: 0, follow: false }))
    changes.push(...trail.read(entry.commit, [...entry.lines()].flat().slice(0, -1)));
  return changes;
}

describe('what becomes of access.db comes out of its log again', () => {
  /** Copies of the files as they are now; what is done after that is lost with them. */
  const copied = () => {
    db.pragma('wal_checkpoint(TRUNCATE)');
    copyFileSync(folder.access, `${folder.root}/older`);
  };
  /** All kinds of changes. @returns what access.db holds then */
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
    test(`an older one was put back (${compare ? 'a start' : 'a command'})`, () => {
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

  test('an older one was put back, and SQLite joined what was left of the newer one to it', () => {
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
    assert.equal(again.recovered[0]?.kind, 'made anew');
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
        ['made anew'],
      );
      // It is logged as before.
      setAccount(db, 'acme', { name: 'New' });
      assert.deepEqual(reopened(true).recovered, []);
      assert.equal(findAccount(db, 'acme')?.name, 'New');
    });
  }

  test('at a start, what somebody wrote into it past the log is undone', () => {
    const content = changed();
    db.prepare('UPDATE api_key SET revoked_at = NULL').run();
    const again = reopened(true);
    assert.deepEqual(again.content, content);
    assert.equal(again.recovered[0]?.kind, 'made anew');
  });
});

describe('a command that was killed', () => {
  const line = (name: string) =>
    `{"put":"account","row":{"id":"acme","name":"${name}","daily_rows":null,"print_metadata":0,"suspended_at":null,"created_at":${AT_MS}}}\n`;
  const append = (lines: string) => {
    const tail = findTail(folder.accessLog, 'access');
    const log = new LogWriter(
      { folder: folder.accessLog, kind: 'access', program: tail.segment?.program ?? '' },
      tail,
    );
    log.commit(lines, { kind: 'command' }, AT_MS);
    log.close();
  };

  test('after the entry was written: it is applied, by the next who writes and by the next who opens', () => {
    append(line('One'));
    writing(db, () => assert.equal(findAccount(db, 'acme')?.name, 'One'));
    assert.equal(findAccount(db, 'acme')?.name, 'One');
    append(line('Two'));
    assert.deepEqual(reopened().recovered, [{ kind: 'brought up', entries: 1 }]);
    assert.equal(findAccount(db, 'acme')?.name, 'Two');
    // What was applied is not logged again.
    assert.equal(lastEntry(), 7);
  });

  test('within the entry: what there is of it is cut off before the next one', () => {
    const bytes = statSync(segment()).size;
    const last = lastEntry();
    append(line(randomBytes(4000).toString('hex')));
    const torn = readFileSync(segment());
    writeFileSync(segment(), torn.subarray(0, torn.length - 10));
    assert.equal(findTail(folder.accessLog, 'access').isTorn, true);
    assert.deepEqual(reopened().recovered, []);
    setAccount(db, 'acme', { name: 'B' });
    assert.equal(lastEntry(), last + 1);
    assert.equal(findTail(folder.accessLog, 'access').isTorn, false);
    assert.ok(statSync(segment()).size < bytes + 1000);
    assert.deepEqual(reopened(true).recovered, []);
  });
});

describe('an entry that the database refuses', () => {
  test('is taken back, and the next one takes its place', () => {
    const before = readFileSync(segment());
    // Deferred to the commit, where SQLite finds it.
    assert.throws(
      () =>
        writing(db, () => {
          db.pragma('defer_foreign_keys = ON');
          db.prepare("UPDATE subscription SET account_id = 'nobody'").run();
        }),
      /FOREIGN KEY/,
    );
    assert.ok(!db.inTransaction);
    assert.deepEqual(readFileSync(segment()), before);
    setAccount(db, 'acme', { name: 'Next' });
    assert.deepEqual(reopened(true).recovered, []);
    assert.equal(findAccount(db, 'acme')?.name, 'Next');
  });

  test('is taken back too where SQLite has rolled back and given up the lock by itself', () => {
    const before = readFileSync(segment());
    const raw = openWriter(folder.access, ACCESS_SCHEMA);
    const refusing = new Proxy(raw, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (name !== 'exec') return typeof value === 'function' ? value.bind(target) : value;
        return (sql: string) => {
          if (sql !== 'COMMIT') return target.exec(sql);
          target.exec('ROLLBACK');
          throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
        };
      },
    });
    logTransactions(refusing, folder, { kind: 'test' });
    assert.throws(() => setAccount(refusing, 'acme', { name: 'Never' }), /disk is full/);
    raw.close();
    assert.deepEqual(readFileSync(segment()), before);
    assert.deepEqual(reopened(true).recovered, []);
    assert.equal(findAccount(db, 'acme')?.name, 'Acme');
  });
});

test('what is no change of a logged table is no entry, nor is what comes to nothing', () => {
  const last = lastEntry();
  writing(db, () => db.prepare("INSERT INTO ingest_request (request, created_at) VALUES ('{}', 1)").run());
  assert.throws(() => addAccount(db, { id: 'acme', name: 'Acme', daily_rows: null }, AT_MS), Refused);
  assert.throws(() =>
    writing(db, () => {
      setAccount(db, 'acme', { name: 'Not' });
      throw new Error('given up');
    }),
  );
  assert.equal(lastEntry(), last);
  assert.equal(findAccount(db, 'acme')?.name, 'Acme');
});

test('what is written past the log is refused at the next write', () => {
  db.prepare("UPDATE account SET name = 'Past'").run();
  assert.throws(() => setAccount(db, 'acme', { name: 'New' }), /not logged/);
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
        /is damaged: .*Nothing was changed\. Restore a backup .* wirewatch rebuild --log/.test(error.message),
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

test('a log that was begun anew has all that access.db holds, and goes on', () => {
  revokeKey(db, KEY, AT_MS);
  db.close();
  copyFileSync(folder.access, `${folder.root}/older`);
  rmSync(folder.accessLog, { recursive: true });
  const { commit, aside } = beginAccessLogAnew(folder, { kind: 'command', actor: 'alice' }, AT_MS);
  assert.deepEqual([commit.entry, aside], [7, null]);
  assert.deepEqual(reopened(true).recovered, []);
  const content = contentOf(db);
  assert.equal(findKey(db, KEY)?.revoked_at, AT_MS);
  db.close();
  // Older than the log's beginning.
  copyFileSync(`${folder.root}/older`, folder.access);
  const again = reopened();
  assert.equal(again.recovered[0]?.kind, 'made anew');
  assert.deepEqual(again.content, content);
  const second = beginAccessLogAnew(folder, { kind: 'command' }, AT_MS);
  assert.equal(second.aside, `${folder.accessLog}-until-20261121T100000Z`);
  assert.ok(existsSync(second.aside ?? ''));
});

test('a key that went with its account is not brought to life by the configuration', () => {
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

describe('the audit trail', () => {
  test('says who did what to which account, subscription and key, and never a hash', async () => {
    db.close();
    const operation = { kind: 'command', command: 'key revoke', actor: 'root', sudo_user: 'alice' };
    db = openAccess(folder.root, { operation });
    revokeKey(db, KEY, AT_MS);
    setKey(db, OTHER_KEY, { subscriptions: [{ id: 7001, content_types: ['text'] }] });
    // As it was: no change.
    setAccount(db, 'acme', { name: 'Acme' });
    pauseIngest(db, AT_MS);
    removeAccount(db, 'acme');
    const changes = await audited();
    const said = changes.map(({ actor, subject, id, change }) => [actor, subject, id, change]);
    assert.deepEqual(said, [
      [null, 'installation', null, 'added'],
      [null, 'account', 'acme', 'added'],
      [null, 'subscription', 7001, 'added'],
      [null, 'key', KEY, 'added'],
      [null, 'key', OTHER_KEY, 'added'],
      ['root', 'key', KEY, 'changed'],
      ['root', 'key', OTHER_KEY, 'changed'],
      ['root', 'ingest', null, 'changed'],
      ['root', 'key', KEY, 'removed'],
      ['root', 'key', OTHER_KEY, 'removed'],
      ['root', 'subscription', 7001, 'removed'],
      ['root', 'account', 'acme', 'removed'],
    ]);
    assert.deepEqual(changes[5]?.members, { revoked_at: { from: null, to: '2026-11-21T10:00:00Z' } });
    assert.deepEqual(changes[6]?.members, { subscriptions: { from: ['7001'], to: ['7001:text'] } });
    const { at, entry, ...rest } = changes[5] ?? { at: '', entry: 0 };
    assert.deepEqual(
      [entry, 'command' in rest && rest.command, 'sudo_user' in rest && rest.sudo_user],
      [6, 'key revoke', 'alice'],
    );
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000);
    assert.doesNotMatch(JSON.stringify(changes), new RegExp(HASH.toString('hex').slice(0, 8), 'i'));
  });

  test('waits for what is written', async () => {
    const entries = readEntries(folder.accessLog, 'access', { fromMs: 0, follow: true });
    const numbers: number[] = [];
    for await (const { commit } of entries) {
      numbers.push(commit.entry);
      if (commit.entry === 5) setAccount(db, 'acme', { name: 'Six' });
      if (commit.entry === 6) break;
    }
    assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6]);
  });

  test('leaves out what is not decided', async () => {
    appendFileSync(segment(), readFileSync(segment()).subarray(0, 100));
    assert.equal((await audited()).length, 5);
  });
});

test('zstd reads the log', {
  skip: spawnSync('zstd', ['--version']).status !== 0 && 'zstd is not installed',
}, () => {
  const { stdout, status } = spawnSync('zstd', ['-dc', segment()], { encoding: 'utf8' });
  assert.equal(status, 0);
  const lines: unknown[] = stdout
    .trimEnd()
    .split('\n')
    .map((text) => JSON.parse(text));
  assert.deepEqual(lines[1], {
    put: 'installation',
    row: {
      id: 1,
      kind: 'appliance',
      created_at: contentOf(db).installation?.map((row) => Object(row).created_at)[0],
    },
  });
});

test('a further connection leaves the locks of those that this process has', {
  skip: !existsSync('/proc/locks') && 'no list of locks',
}, () => {
  const { ino } = statSync(folder.access);
  const isLocked = () =>
    readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .some((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `));
  assert.ok(isLocked());
  const other = openWriter(folder.access, ACCESS_SCHEMA);
  try {
    assert.ok(isLocked());
  } finally {
    other.close();
  }
});
