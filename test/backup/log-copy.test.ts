/** The copy of a log in a backup: segments are completed, added and replaced, and never damaged. */
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { copyLog } from '../../src/backup/log-copy.ts';
import { findTail } from '../../src/log/log-reader.ts';
import { LogWriter } from '../../src/log/log-writer.ts';
import { LogDamage } from '../../src/store/log-errors.ts';
import { target } from '../support/backup.ts';
import { addEntries, makeLog, rewrite } from '../support/small-log.ts';

describe('segments', () => {
  const copy = (from: string, to: string) => {
    let written = 0;
    const end = findTail(from).last;
    const onBytes = (bytes: number) => {
      written += bytes;
    };
    copyLog({ from, to, end, onBytes });
    return written;
  };
  const contents = (folder: string) =>
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name)).toString('latin1')]);

  test('that close between two backups are completed, and new ones are added', () => {
    const [from, to] = [target('log-1'), target('copy-1')];
    const writer = makeLog(from, 1);
    for (let round = 0; round < 20; round += 1) {
      copy(from, to);
      assert.deepEqual(contents(to), contents(from));
      assert.equal(copy(from, to), 0);
      addEntries(writer, 1);
    }
    assert.ok(readdirSync(to).length > 5);
    writer.close();
  });

  test('that were rewritten are copied again', () => {
    const [from, to] = [target('log-2'), target('copy-2')];
    makeLog(from, 20).close();
    copy(from, to);
    const [first = ''] = readdirSync(from);
    rewrite(join(from, first));
    copy(from, to);
    assert.deepEqual(contents(to), contents(from));
    assert.equal(copy(from, to), 0);
  });

  test('of a log without its start are not copied', () => {
    const [from, to] = [target('log-6'), target('copy-6')];
    makeLog(from, 20).close();
    const [first = ''] = readdirSync(from);
    rmSync(join(from, first));
    assert.throws(() => copy(from, to), LogDamage);
    assert.deepEqual(readdirSync(to), []);
  });

  test('of another log are not copied', () => {
    const [from, to] = [target('log-3'), target('copy-3')];
    makeLog(from, 20).close();
    copy(from, to);
    const before = contents(to);
    makeLog(target('log-other'), 20).close();
    const [first = ''] = readdirSync(from);
    cpSync(join(target('log-other'), first), join(from, first));
    assert.throws(() => copy(from, to), LogDamage);
    assert.deepEqual(contents(to), before);
  });

  test('damaged after the end of the copy leave the copy unchanged', () => {
    const [from, to] = [target('log-5'), target('copy-5')];
    const options = { folder: from, program: '1' } as const;
    const writer = new LogWriter(options, { last: null, segment: null });
    const add = () => {
      writer.append(`{"row":"${Math.random()}"}\n`);
      writer.commit('', { kind: 'test' }, Date.now());
    };
    add();
    copy(from, to);
    const before = contents(to);
    const [name = ''] = readdirSync(from);
    const bytes = readFileSync(join(from, name)).length;
    for (let count = 0; count < 3; count += 1) add();
    writer.closeSegment();
    add();
    const end = findTail(from).last;
    writer.close();
    const damaged = readFileSync(join(from, name));
    damaged[bytes + 30] = (damaged[bytes + 30] ?? 0) ^ 1;
    writeFileSync(join(from, name), damaged);
    const onBytes = () => {};
    assert.throws(() => copyLog({ from, to, end, onBytes }), LogDamage);
    assert.deepEqual(contents(to), before);
  });

  test('of a folder that disappears are an error, and the copy stays', () => {
    const [from, to] = [target('log-4'), target('copy-4')];
    makeLog(from, 5).close();
    copy(from, to);
    renameSync(to, `${to}-gone`);
    writeFileSync(to, '');
    assert.throws(() => copy(from, to));
    rmSync(to);
    renameSync(`${to}-gone`, to);
    assert.deepEqual(contents(to), contents(from));
  });
});
