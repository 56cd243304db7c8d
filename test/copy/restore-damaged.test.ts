/** A copy that cannot be restored changes nothing. What a damaged log in the data folder had is lost, and it says so. */
import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Given, replacedHistory } from '../../src/copy/discarded.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { listSegments } from '../../src/log/segment.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { LogFailure } from '../../src/store/log-errors.ts';
import { createKey } from '../support/appliance.ts';
import { assertFailed, succeed } from '../support/command.ts';
import { flipBit } from '../support/flip-bit.ts';
import { withHistory } from '../support/history.ts';
import { patched, withFailingReads } from '../support/patched-fs.ts';
import {
  backedUp,
  backup,
  backupOf,
  copyOf,
  inDetections,
  restored,
  run,
  stopped,
  work,
} from '../support/restore.ts';
import { testFolder } from '../support/test-folder.ts';

describe('a bad copy changes nothing', () => {
  function assertRefused(source: string, reason: RegExp): void {
    const data = join(work, 'untouched');
    const { status, stdout, stderr } = run('restore', source, '--data', data);
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, reason);
    assert.match(stderr, /Nothing was changed/);
    const made = readdirSync(data).filter((name) => !name.startsWith('lock'));
    assert.deepEqual(made, []);
    assert.equal(run('verify', source).status, 1);
  }

  test('one with a changed byte in access.db or the log, with half a secret or another one, or without one of them', () => {
    const [access = ''] = readdirSync(join(backup, 'access'));
    const cases = [
      ['secret', (path: string) => truncateSync(path, 16), /its secret is damaged/, /it has no secret/],
      ['secret', flipBit, /its secret is damaged/, /it has no secret/],
      [`access/${access}`, flipBit, /its access\/.* is damaged/, /it has no access\.db/],
      ['log/0001/0000000000000001.zst', flipBit, /log\/0001\/.* has a damaged frame/, null],
    ] as const;
    for (const [index, [name, damage, reason, missing]] of cases.entries()) {
      const source = copyOf(backup, `changed-${index}`);
      const path = join(source, name);
      damage(path);
      assertRefused(source, reason);
      rmSync(name.startsWith('access') ? join(source, 'access') : path, { recursive: true });
      if (missing !== null) assertRefused(source, missing);
    }
  });

  test('something that is not a copy', () => {
    writeFileSync(join(work, 'a-file'), 'text');
    mkdirSync(join(work, 'nothing'));
    const why = { 'a-file': ' .*Use another folder', gone: '', nothing: ' .*it contains no copy' };
    for (const [name, more] of Object.entries(why)) {
      const [source, reason] = [join(work, name), new RegExp(`cannot read the copy${more}`)];
      assertFailed(run('restore', source, '--data', join(work, 'not-made')), 1, reason);
      assertFailed(run('verify', source), 1, reason);
    }
    assert.ok(!readdirSync(work).includes('not-made'));
  });
});

describe('a data folder with damage, or of another history', () => {
  const TORN = Buffer.alloc(64, 0x5a);
  const newest = (data: string) => join(data, 'log', readdirSync(join(data, 'log')).at(-1) ?? '');
  /** Where the entries that the copy has end in the log of a data folder. */
  const endIn = (data: string): number => {
    for (const { part } of entriesAfter(join(data, 'log'), null))
      if (part.commit?.entry === backedUp) return part.frame.end;
    throw new Error('the log lacks the last entry of the copy');
  };
  const keysOf = (data: string): { id: string; revoked_at: string | null }[] =>
    JSON.parse(run('key', 'list', '--data', data, '--json').stdout);

  test('two states of one backup are not the same, though one ends where the other has a torn entry', () => {
    const [live, other] = [join(work, 'parted-1'), join(work, 'parted-2')];
    for (const data of [live, other]) restored(backup, '--data', data);
    appendFileSync(newest(live), TORN);
    const copy = backupOf(other, 'parted-copy');
    assert.equal(restored(copy, '--replace', '--data', live).raised, true);
  });

  test('an entry that only the database still has is lost: files are read again', () => {
    const data = copyOf(stopped, 'cut-off');
    truncateSync(newest(data), endIn(data) + 30);
    const { stdout } = succeed(['restore', backup, '--replace', '--data', copyOf(data, 'cut-off-told')]);
    assert.doesNotMatch(stdout, /Nothing was lost/);
    assert.match(stdout, /Changes after the end of the backup are lost/);
    const result = restored(backup, '--replace', '--data', data);
    assert.deepEqual([result.detections, result.raised, result.orphans.length], [50, true, 1]);
  });

  test('a log that cannot be read to its end says what it can, and what changed in 31 days is announced again', () => {
    const data = copyOf(stopped, 'half-read');
    flipBit(newest(data), endIn(data) + 30);
    assert.equal(restored(backup, '--replace', '--data', data).raised, true);
    assert.equal(inDetections(data, 'SELECT 1 FROM stream_row WHERE version > 1000').length, 50);
  });

  test('damage before the newest segment may hide entries, though the database has all that can be read', () => {
    const [data, whole] = [copyOf(stopped, 'hidden'), join(work, 'hidden-copy')];
    const { entries } = JSON.parse(run('backup', whole, '--data', data, '--json').stdout);
    appendFileSync(newest(data), TORN);
    writeFileSync(join(data, 'log', `${String(entries + 1).padStart(12, '0')}.zst`), '');
    assert.equal(restored(whole, '--replace', '--data', data).raised, true);
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

  test('since the backup, a revoked key stays revoked, and a new one works: by access.db or its spare copy', () => {
    for (const name of ['access.db', 'access.db-spare']) {
      const { data, id } = withRevoked(`revoked-beside-${name}`);
      createKey((args) => run(...args, '--data', data), 'agency', '7001');
      const expected = keysOf(data);
      assert.ok(expected.find((key) => key.id === id)?.revoked_at);
      damaged(join(data, name));
      assert.equal(restored(backup, '--replace', '--data', data).access, 'continued');
      assert.deepEqual(keysOf(data), expected);
    }
  });

  test('a revocation is lost where both are damaged, and it says so', () => {
    const { data } = withRevoked('revoked-lost');
    damaged(join(data, 'access.db'), join(data, 'access.db-spare'));
    const told = run('restore', backup, '--replace', '--data', copyOf(data, 'revoked-lost-told')).stdout;
    assert.doesNotMatch(told, /Nothing was lost/);
    assert.match(told, /accounts, subscriptions and keys after \S+Z are lost\..* revoke it again/);
    assert.equal(restored(backup, '--replace', '--data', data).access, 'from the backup');
  });

  test('what is revoked in one of two states stays so; what is suspended only in one that is not earlier', () => {
    const found = [0, 1, 2, 3].map((more) => {
      // The one has two more changes, or as many.
      const { data: one, id } = withRevoked(`ended-${more}`);
      run('account', 'suspend', 'agency', '--data', one);
      const other = copyOf(stopped, `changed-${more}`);
      for (let count = 0; count < (more < 2 ? 4 : 2); count += 1)
        createKey((args) => run(...args, '--data', other), 'agency', '7001');
      const [data, from] = more % 2 === 0 ? [one, other] : [other, one];
      const stateOf = `${JSON.parse(run('audit', '--data', more < 2 ? other : data, '--json').stdout).at(-1).at}`;
      const result = restored(backupOf(from, `apart-${more}`), '--replace', '--data', data);
      assert.equal(result.access_state_of, stateOf);
      assert.ok(keysOf(data).find((key) => key.id === id)?.revoked_at);
      const { status } = JSON.parse(run('account', 'show', 'agency', '--data', data, '--json').stdout);
      return `${result.access}, ${status}`;
    });
    const [lost, kept] = ['continued, active', 'continued, suspended'];
    assert.deepEqual(found, ['from the backup, active', lost, kept, kept]);
  });
});

test('a read of the replaced log, or of its database, may fail once; the restored log must be readable', () =>
  withHistory(async (history) => {
    history.stop();
    const stage = dataFolder(testFolder());
    cpSync(history.folder.log, stage.log, { recursive: true });
    const compared = () => replacedHistory(history.folder, stage, new Given(), '').isSame;
    const isSame = (log: string, times: number) =>
      withFailingReads(listSegments(log).at(-1)?.path ?? '', times, compared);
    assert.equal(await isSame(history.folder.log, 1), true);
    assert.equal(await isSame(history.folder.log, Number.POSITIVE_INFINITY), false);
    await assert.rejects(isSame(stage.log, 1), LogFailure);
    // The driver looks for the folder of a database before it opens that.
    const looksFailing = (times: number) => {
      let left = times;
      const { root } = history.folder;
      using _ = patched('existsSync', (real) => (path) => !(path === root && left-- > 0) && real(path));
      return compared();
    };
    assert.deepEqual([1, 2].map(looksFailing), [true, false]);
  }));
