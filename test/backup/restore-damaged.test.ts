/** A backup that cannot be restored changes nothing. What a damaged log in the data folder had is lost, and it says so. */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { newestBranch } from '../../src/backup/branch.ts';
import { createKey } from '../support/appliance.ts';
import { backup, copyOf, restored, run, stopped, work } from '../support/restore.ts';

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

describe('a bad backup changes nothing', () => {
  function assertRefused(source: string, reason: RegExp): void {
    const data = join(work, 'untouched');
    const around = readdirSync(work);
    const { status, stdout, stderr } = run('restore', source, '--data', data);
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, reason);
    assert.match(stderr, /Nothing was changed/);
    assert.deepEqual(readdirSync(work), around, 'no folder may be created');
    assert.equal(run('verify', source).status, 1);
  }

  test('one with a changed byte, in the secret, access.db or the log, or without one of them', () => {
    for (const [name, at, reason, missing] of [
      ['secret', 0, /its secret is damaged/, /it has no secret/],
      ['access.db', 5000, /its access\.db is damaged/, /its access\.db is missing/],
      ['log/000000000001.zst', 300, /damaged|reach/, /does not reach entry/],
    ] as const) {
      const source = copyOf(backup, `changed-${name.replace('/', '-')}`);
      const path = join(newestBranch(source) ?? '', name);
      flip(path, at);
      assertRefused(source, reason);
      rmSync(path);
      assertRefused(source, missing);
    }
  });

  test('something that is not a backup', () => {
    writeFileSync(join(work, 'monday.tar'), 'text');
    mkdirSync(join(work, 'nothing'));
    for (const [name, reason] of [
      ['monday.tar', /a backup is a folder\..* pack the folder with tar, and unpack it before/],
      ['gone', /cannot read the backup/],
      ['nothing', /cannot read the backup/],
    ] as const) {
      const source = join(work, name);
      for (const args of [
        ['restore', source, '--data', join(work, 'untouched')],
        ['verify', source],
      ]) {
        const { status, stderr } = run(...args);
        assert.equal(status, 1);
        assert.match(stderr, reason);
      }
    }
    assert.ok(!existsSync(join(work, 'untouched')));
  });
});

describe('a log that does not reach the end of its database, or is of another history', () => {
  const newest = (data: string, log: string) => join(data, log, readdirSync(join(data, log)).at(-1) ?? '');
  const sizeOf = (path: string) => readFileSync(path).length;
  const keysOf = (data: string): { id: string; revoked_at: string | null }[] =>
    JSON.parse(run('key', 'list', '--data', data, '--json').stdout);

  test('two states of one backup do not continue each other, though one ends where the other has a torn entry', () => {
    const [live, other] = [join(work, 'parted-1'), join(work, 'parted-2')];
    for (const data of [live, other]) restored(backup, '--data', data);
    const path = newest(live, 'log');
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(64, 0x5a)]));
    const result = restored(other, '--replace', '--data', live);
    assert.deepEqual([result.log, result.raised], ['from the backup', true]);
  });

  test('a last entry that is cut off, but is in the database, is lost: files are read again', () => {
    const data = copyOf(stopped, 'cut-off');
    const path = newest(data, 'log');
    truncateSync(path, sizeOf(path) - 5);
    const kept = restored(backup, '--replace', '--data', data);
    assert.deepEqual([kept.detections, kept.log, kept.raised], [51, 'continued in part', true]);
    const none = copyOf(stopped, 'cut-off-all');
    const [branch = ''] = readdirSync(backup).filter((name) => name.startsWith('wirewatch-'));
    truncateSync(newest(none, 'log'), sizeOf(newest(join(backup, branch), 'log')) + 30);
    const { stdout, status } = run('restore', backup, '--replace', '--data', copyOf(none, 'cut-off-told'));
    assert.deepEqual([status, /Nothing was lost/.test(stdout)], [0, false], stdout);
    assert.match(stdout, /Changes after the end of the backup are lost/);
    const result = restored(backup, '--replace', '--data', none);
    assert.deepEqual(
      [result.detections, result.log, result.raised, result.orphans.length],
      [50, 'from the backup', true, 1],
    );
  });

  test('a torn entry that the database lacks is no loss; without a database, it may be one', () => {
    const data = copyOf(stopped, 'torn');
    const path = newest(data, 'log');
    writeFileSync(path, Buffer.concat([readFileSync(path), readFileSync(path).subarray(0, 60)]));
    const unknown = copyOf(data, 'torn-unknown');
    rmSync(join(unknown, 'detections.db'));
    for (const [folder, log] of [
      [data, 'continued'],
      [unknown, 'continued in part'],
    ] as const) {
      const result = restored(backup, '--replace', '--data', folder);
      assert.deepEqual([result.detections, result.log, result.raised], [51, log, log !== 'continued']);
    }
  });

  /** Revokes a key in a copy of the stopped installation. */
  const withRevoked = (name: string) => {
    const data = copyOf(stopped, name);
    const [{ id = '' } = {}] = keysOf(data);
    run('key', 'revoke', id, '--yes', '--data', data);
    return { data, id };
  };
  const damaged = (...paths: string[]) => {
    for (const path of paths) writeFileSync(path, 'damaged');
  };

  test('a revocation since the backup stays, by access.db or by its spare copy', () => {
    for (const name of ['access.db', 'access.db-spare']) {
      const { data, id } = withRevoked(`revoked-beside-${name}`);
      damaged(join(data, name));
      const result = restored(backup, '--replace', '--data', data);
      assert.deepEqual([result.access, result.log, result.raised], ['continued', 'continued', false]);
      assert.ok(keysOf(data).find((key) => key.id === id)?.revoked_at);
    }
  });

  test('a revocation is lost where both are damaged, and it says so', () => {
    const { data } = withRevoked('revoked-lost');
    damaged(join(data, 'access.db'), join(data, 'access.db-spare'));
    const told = run('restore', backup, '--replace', '--data', copyOf(data, 'revoked-lost-told')).stdout;
    assert.doesNotMatch(told, /Nothing was lost/);
    assert.match(told, /accounts, subscriptions and keys after \S+Z are lost\..* revoke it again/);
    const result = restored(backup, '--replace', '--data', data);
    assert.deepEqual([result.log, result.access, result.raised], ['continued', 'from the backup', false]);
  });

  test('what is revoked or suspended in a data folder stays so, though the backup has more changes', () => {
    const { data, id } = withRevoked('revoked-apart');
    run('account', 'suspend', 'agency', '--data', data);
    const other = copyOf(stopped, 'changed-apart');
    for (let count = 0; count < 4; count += 1)
      createKey((args) => run(...args, '--data', other), 'agency', '7001');
    const result = restored(other, '--replace', '--data', data);
    assert.equal(result.access, 'from the backup');
    assert.equal(result.keys, keysOf(other).length);
    assert.ok(keysOf(data).find((key) => key.id === id)?.revoked_at);
    assert.equal(keysOf(other).find((key) => key.id === id)?.revoked_at, null);
    assert.match(run('account', 'show', 'agency', '--data', data).stdout, /suspended/i);
  });
});
