/** Which segments a purge rewrites, and which it leaves. */
import assert from 'node:assert/strict';
import fs, { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, mock, test } from 'node:test';
import { entriesAfter } from '../../src/history/log-reader.ts';
import { purgedStreams } from '../../src/history/purge.ts';
import { listSegments } from '../../src/history/segment.ts';
import { assertEqual, commits, fill, history, linesOf, rowsOf, segments } from '../support/purge.ts';

describe('a segment', () => {
  test('without removed rows is not rewritten', async () => {
    history.apply(rowsOf([7001], 1, 60));
    history.writer().closeSegment();
    history.apply(rowsOf([7002], 1, 60));
    history.writer().closeSegment();
    history.apply(rowsOf([7001], 100, 60));
    const before = segments();
    await history.remove(7002);
    await history.purge();
    const after = segments();
    assert.deepEqual(after[0], before[0]);
    assert.notDeepEqual(after[1], before[1]);
    assert.ok(Number(after[1]?.[2]) < Number(before[1]?.[2]));
    assert.deepEqual(after[2]?.slice(0, 2), before[2]?.slice(0, 2));
    const names = readdirSync(history.folder.log);
    rmSync(join(history.folder.log, 'purged.json'));
    await history.purge();
    assert.deepEqual(segments(), after);
    assert.deepEqual(readdirSync(history.folder.log), names);
  });

  test('that was searched is not searched again, unless something else was removed', async () => {
    await fill();
    await history.remove(7002);
    await history.purge();
    let turns = 0;
    const count = async () => {
      turns += 1;
    };
    await history.purge(count);
    assert.equal(turns, 0);
    // A log that was copied back has no note.
    writeFileSync(join(history.folder.log, 'purged.json'), 'no JSON');
    await history.purge(count);
    assert.ok(turns > 0);
    assert.deepEqual([...purgedStreams(history.folder.log)].length, 2);
  });

  test('that is damaged stays as it is, and so does the note; later ones are rewritten', async () => {
    await fill();
    await history.remove(7002);
    const [first] = listSegments(history.folder.log);
    const path = first?.path ?? '';
    const whole = readFileSync(path);
    const bad = Buffer.from(whole);
    bad[whole.length - 30] = (bad[whole.length - 30] ?? 0) ^ 1;
    writeFileSync(path, bad);
    assert.match(String(await history.purge()), /is damaged at byte/);
    assert.deepEqual(readFileSync(path), bad);
    assert.ok(!existsSync(join(history.folder.log, 'purged.json')));
    writeFileSync(path, whole);
    await assertEqual('half done');
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), []);
    await assertEqual('done');
  });

  test('without space or permission stays as it is; the space needed is reported, and it is rewritten later', async () => {
    await fill();
    await history.remove(7002);
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const failures = [
      ['statfsSync', () => ({ bavail: 1000, bsize: 4096 }), /the disk needs 33 MiB of free space/],
      [
        'writeFileSync',
        () => {
          throw full;
        },
        /ENOSPC: no space left/,
      ],
      [
        'renameSync',
        () => {
          throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
        },
        /EACCES: permission denied/,
      ],
    ] as const;
    for (const [name, fail, reason] of failures) {
      // Two segments are rewritten before.
      let calls = 0;
      const real = fs[name];
      const mocked = mock.method(fs, name, (...args: unknown[]) => {
        calls += 1;
        return calls > 2 ? fail() : Reflect.apply(real, fs, args);
      });
      syncBuiltinESMExports();
      try {
        assert.match(String(await history.purge()), reason);
      } finally {
        mocked.mock.restore();
        syncBuiltinESMExports();
      }
      assert.ok(!readdirSync(history.folder.log).some((file) => /tmp|purged/.test(file)));
      await assertEqual(name);
    }
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), []);
    await assertEqual('done');
  });

  test('that is being read can be read to its end, and then the next', async () => {
    await fill();
    const { log } = history.folder;
    const read: string[] = [];
    const reader = entriesAfter(log, null);
    for (let count = 0; count < 3; count += 1) read.push(JSON.stringify(reader.next().value?.part.lines));
    await history.remove(7002);
    await history.purge();
    let last = 0;
    for (const { part } of reader) if (part.kind === 'commit') last = part.commit.entry;
    assert.equal(last, commits().length);
  });
});
