/** The rules of single checks, which need no installation. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkClock } from '../../src/check/clock.ts';
import { roomOutcome, syncOutcome } from '../../src/check/disk.ts';
import { fileSystemOf, fileSystemOutcome } from '../../src/check/file-system.ts';
import { checkOpenFiles } from '../../src/check/open-files.ts';

describe('the rules', () => {
  const MIB = 1024 ** 2;

  test('space: bad below 64 MiB, a warning while the alert would be open', () => {
    const room = (freeMib: number, allMib = 1_000_000) => roomOutcome(freeMib * MIB, allMib * MIB).status;
    assert.deepEqual([room(63), room(100), room(600), room(900_000)], ['bad', 'warn', 'warn', 'ok']);
  });

  test('sync: slow and impossibly fast disks are warnings', () => {
    const sync = (ms: number) => syncOutcome(ms).status;
    assert.deepEqual(
      [sync(0.001), sync(0.02), sync(10), sync(60), sync(61)],
      ['warn', 'ok', 'ok', 'ok', 'warn'],
    );
  });

  test('file systems: network is bad, FUSE and memory are warnings', {
    skip: process.platform !== 'linux',
  }, () => {
    const statusFor = (type: number) => fileSystemOutcome(fileSystemOf(type)).status;
    assert.deepEqual([0x6969, 0xff534d42, 0xfe534d42, 0x517b, 0x01021997].map(statusFor), [
      'bad',
      'bad',
      'bad',
      'bad',
      'bad',
    ]);
    assert.deepEqual([0x65735546, 0x01021994, 0xef53, 0x58465342, 1].map(statusFor), [
      'warn',
      'warn',
      'ok',
      'ok',
      'ok',
    ]);
    // The number may be signed.
    assert.equal(statusFor(0xff534d42 | 0), 'bad');
  });

  test('clock: before the latest record, or before this build, is bad', () => {
    const nowMs = Date.UTC(2026, 10, 21);
    assert.equal(checkClock(0, nowMs).status, 'ok');
    assert.equal(checkClock(nowMs + 5000, nowMs).status, 'ok');
    assert.equal(checkClock(nowMs + 6000, nowMs).status, 'bad');
    assert.equal(checkClock(0, Date.UTC(1970, 0, 1)).status, 'bad');
  });

  test('open files: connections and own files must fit', () => {
    assert.equal(checkOpenFiles(1000, 1200).status, 'ok');
    assert.equal(checkOpenFiles(1000, 1199).status, 'warn');
    assert.equal(checkOpenFiles(1000, null).status, 'ok');
    // Both numbers have separators, or neither.
    assert.equal(checkOpenFiles(1000, 20_000).detail, '20,000 allowed, at most 1,200 needed');
    assert.equal(checkOpenFiles(1000, 1200).detail, '1200 allowed, at most 1200 needed');
  });
});
