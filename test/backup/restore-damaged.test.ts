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
import { createKey } from '../support/appliance.ts';
import { backup, copyOf, file, restored, run, stopped, work } from '../support/restore.ts';

describe('a bad backup changes nothing', () => {
  /** A copy of the good file with a changed header of an entry, and a correct checksum. */
  function forged(name: string, entry: string, change: (header: Buffer) => void): string {
    const bytes = readFileSync(file);
    const at = headerOf(bytes, entry);
    const header = bytes.subarray(at, at + 512);
    change(header);
    header.fill(0x20, 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const path = join(work, name);
    writeFileSync(path, bytes);
    return path;
  }

  function headerOf(bytes: Buffer, entry: string): number {
    for (let at = 0; at < bytes.length; at += 512)
      if (bytes.toString('latin1', at, at + entry.length + 1) === `${entry}\0`) return at;
    return assert.fail(`${entry} is not in the backup`);
  }

  const rename = (to: string) => (header: Buffer) => {
    header.fill(0, 0, 100);
    header.write(to, 0);
  };
  const linkTo = (type: string, to: string) => (header: Buffer) => {
    header.write(type, 156);
    header.fill(0, 157, 257);
    header.write(to, 157);
    header.write('00000000000\0', 124);
  };

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

  test('one with a changed byte, in the secret or in a log', () => {
    for (const [entry, reason] of [
      ['secret', /its secret is damaged/],
      ['access-log/000000000001.zst', /damaged|reach/],
      ['log/000000000001.zst', /damaged|reach/],
    ] as const) {
      const bytes = readFileSync(file);
      const at = headerOf(bytes, entry) + 512 + (entry === 'secret' ? 0 : 300);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(join(work, 'changed.tar'), bytes);
      assertRefused(join(work, 'changed.tar'), reason);
    }
  });

  test('a folder with a changed byte, or without a segment', () => {
    const data = copyOf(backup, 'changed-folder');
    const [branch = ''] = readdirSync(data).filter((name) => name.startsWith('wirewatch-'));
    const path = join(data, branch, 'log', '000000000001.zst');
    const bytes = readFileSync(path);
    bytes[400] = (bytes[400] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    assertRefused(data, /damaged|reach/);
    rmSync(path);
    assertRefused(data, /does not reach entry/);
  });

  test('one with an entry that points out of the folder', () => {
    for (const path of ['../escaped', '/tmp/escaped', 'log/../../escaped', './secret', 'SECRET', 'log/x.zst'])
      assertRefused(forged('path.tar', 'secret', rename(path)), /it is not a backup: it contains /);
    assert.ok(!existsSync(join(work, 'escaped')));
  });

  test('one with a link instead of a file', () => {
    for (const type of ['1', '2', '6'])
      assertRefused(
        forged('link.tar', 'secret', linkTo(type, '/etc/passwd')),
        /it is not a backup: it contains "secret" \(\w+\)|linkpath forbidden/,
      );
  });

  test('something that is not a backup', () => {
    writeFileSync(join(work, 'text.tar'), 'text');
    assertRefused(join(work, 'text.tar'), /cannot be restored/);
    for (const source of ['gone.tar', 'nothing']) {
      mkdirSync(join(work, 'nothing'), { recursive: true });
      const { status, stderr } = run('restore', join(work, source), '--data', join(work, 'untouched'));
      assert.equal(status, 1);
      assert.match(stderr, /cannot read the backup/);
    }
    assert.ok(!existsSync(join(work, 'untouched')));
  });
});

describe('a log that does not reach the end of its database, or is of another history', () => {
  const newest = (data: string, log: string) => join(data, log, readdirSync(join(data, log)).at(-1) ?? '');
  const sizeOf = (path: string) => readFileSync(path).length;
  const keysOf = (data: string): { id: string; revoked_at: string | null }[] =>
    JSON.parse(run('key', 'list', '--data', data, '--json').stdout);
  const flip = (path: string, at: number) => {
    const bytes = readFileSync(path);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  };

  test('two states of one backup do not continue each other, though one ends where the other has a torn entry', () => {
    const [live, other] = [join(work, 'parted-1'), join(work, 'parted-2')];
    for (const data of [live, other]) restored(file, '--data', data);
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
