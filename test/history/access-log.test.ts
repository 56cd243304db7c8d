/** The log of access.db: every change is in it, and an entry that the database refused is not. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { addAccount, findAccount, setAccount } from '../../src/auth/accounts.ts';
import { logTransactions } from '../../src/history/access-log.ts';
import { findTail } from '../../src/history/log-reader.ts';
import { LogWriter } from '../../src/history/log-writer.ts';
import { listSegments, segmentPath } from '../../src/history/segment.ts';
import { Refused } from '../../src/refused.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { openDatabase, writing } from '../../src/store/database.ts';
import { AT_MS, contentOf, db, folder, lastEntry, reopened, segment } from '../support/access-history.ts';

describe('a killed command', () => {
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

  test('after the entry: it is applied by the next writer or opener', () => {
    append(line('One'));
    writing(db, () => assert.equal(findAccount(db, 'acme')?.name, 'One'));
    assert.equal(findAccount(db, 'acme')?.name, 'One');
    append(line('Two'));
    assert.deepEqual(reopened().recovered, [{ kind: 'brought up', entries: 1 }]);
    assert.equal(findAccount(db, 'acme')?.name, 'Two');
    // Applied entries are not logged again.
    assert.equal(lastEntry(), 7);
  });

  test('within the entry: its part is cut off before the next one', () => {
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

test('a segment that another build left empty on a full disk is removed before the next entry', () => {
  const last = lastEntry();
  writeFileSync(segmentPath(folder.accessLog, last + 1), '');
  setAccount(db, 'acme', { name: 'Next' });
  assert.equal(listSegments(folder.accessLog).length, 1);
  db.close();
  const tail = findTail(folder.accessLog, 'access');
  const log = new LogWriter({ folder: folder.accessLog, kind: 'access', program: 'newer' }, tail);
  log.commit('', { kind: 'command' }, AT_MS);
  log.close();
  assert.equal(listSegments(folder.accessLog).length, 2);
  assert.deepEqual(reopened(true).recovered, [{ kind: 'brought up', entries: 1 }]);
  assert.equal(lastEntry(), last + 2);
});

describe('an entry that the database refuses', () => {
  test('is removed, and the next one takes its place', () => {
    const before = readFileSync(segment());
    // A deferred violation, which SQLite finds at the commit.
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

  test('is removed, too, if SQLite has already rolled back and released the lock', () => {
    const before = readFileSync(segment());
    const raw = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
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

test('changes without effect make no entry', () => {
  const last = lastEntry();
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

test('a write that bypassed the log is found at the next write', () => {
  db.prepare("UPDATE account SET name = 'Past'").run();
  assert.throws(() => setAccount(db, 'acme', { name: 'New' }), /not logged/);
});

test('the log can be read with zstd', {
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

test('another connection keeps the locks of the process', {
  skip: !existsSync('/proc/locks') && 'no list of locks',
}, () => {
  const { ino } = statSync(folder.access);
  const isLocked = () =>
    readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .some((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `));
  assert.ok(isLocked());
  const other = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
  try {
    assert.ok(isLocked());
  } finally {
    other.close();
  }
});
