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

  test('one with a changed byte, in the secret or in a log, or without a segment', () => {
    for (const [name, at, reason] of [
      ['secret', 0, /its secret is damaged/],
      ['access-log/000000000001.zst', 300, /damaged|reach/],
      ['log/000000000001.zst', 300, /damaged|reach/],
    ] as const) {
      const source = copyOf(backup, `changed-${name.replace('/', '-')}`);
      const path = join(newestBranch(source) ?? '', name);
      flip(path, at);
      assertRefused(source, reason);
      rmSync(path);
      assertRefused(source, name === 'secret' ? /it has no secret/ : /does not reach entry/);
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
    for (const log of ['log', 'access-log']) {
      const path = newest(live, log);
      writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(64, 0x5a)]));
    }
    const result = restored(other, '--replace', '--data', live);
    assert.deepEqual(
      [result.log, result.access_log, result.raised],
      ['from the backup', 'from the backup', true],
    );
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

  test('a revocation in a damaged last entry is lost, and it says so', () => {
    const data = copyOf(stopped, 'revoked-last');
    const [{ id = '' } = {}] = keysOf(data);
    run('key', 'revoke', id, '--yes', '--data', data);
    const path = newest(data, 'access-log');
    flip(path, sizeOf(path) - 10);
    const told = run('restore', backup, '--replace', '--data', copyOf(data, 'revoked-last-told')).stdout;
    assert.doesNotMatch(told, /Nothing was lost/);
    assert.match(told, /accounts, subscriptions and keys after \S+Z are lost\..* revoke it again/);
    const result = restored(backup, '--replace', '--data', data);
    assert.deepEqual([result.log, result.access_log, result.raised], ['continued', 'from the backup', false]);
  });

  test('changes of keys up to the damage are kept', () => {
    const data = copyOf(stopped, 'revoked-before');
    const [{ id = '' } = {}] = keysOf(data);
    run('key', 'revoke', id, '--yes', '--data', data);
    const path = newest(data, 'access-log');
    const revoked = sizeOf(path);
    const cli = (args: readonly string[]) => run(...args, '--data', data);
    for (let count = 0; count < 2; count += 1) createKey(cli, 'agency', '7001');
    flip(path, revoked + 40);
    const told = run('restore', backup, '--replace', '--data', copyOf(data, 'revoked-before-told')).stdout;
    assert.match(told, /accounts, subscriptions and keys after \S+Z are lost\..* revoke it again/);
    const result = restored(backup, '--replace', '--data', data);
    assert.deepEqual([result.log, result.access_log], ['continued', 'continued in part']);
    assert.ok(keysOf(data).find((key) => key.id === id)?.revoked_at);
  });
});
