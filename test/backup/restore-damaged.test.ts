/** A backup that cannot be restored changes nothing. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { backup, copyOf, file, run, work } from '../support/restore.ts';

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
