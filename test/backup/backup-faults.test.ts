/**
 * A backup folder remains restorable to its last good moment, whatever interrupts the backup that updates it: a kill, a
 * full disk or a deleted folder, at every step, while the log grows.
 */
import assert from 'node:assert/strict';
import fs, {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { findCopy } from '../../src/auth/spare-copy.ts';
import { findSource, loadSource, verifyBackup } from '../../src/backup/source.ts';
import { type BackupOptions, writeBackup } from '../../src/backup/write-backup.ts';
import { findTail } from '../../src/log/log-reader.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { openAccess } from '../support/access.ts';
import { addEntries, makeLog, rewrite } from '../support/small-log.ts';
import { testFolder } from '../support/test-folder.ts';

const work = testFolder();

const segments = (log: string) =>
  readdirSync(log)
    .sort()
    .map((name) => join(log, name));

/** A data folder and an older backup: since then, segments were closed, added and rewritten. */
const data = join(work, 'data');
const good = join(work, 'good');
const folder = join(work, 'folder');
before(() => {
  const { log, secret } = dataFolder(data);
  mkdirSync(data);
  writeFileSync(secret, Buffer.alloc(32, 7));
  makeLog(log, 12).close();
  changeAccounts(3);
  backUp(good);
  rewrite(segments(log)[1] ?? '');
  makeLog(log, 8).close();
  changeAccounts(4);
});

function backUp(target: string, options: Partial<BackupOptions> = {}) {
  const usual = { now: Date.now, onProgress: () => {} };
  return writeBackup({ data, target, drop: join(data, 'drop'), ...usual, ...options });
}

/** Changes access.db; the first change of it makes another one, with the installation. */
function changeAccounts(times: number): void {
  const db = openAccess(data, { create: true });
  for (let count = 0; count < times; count += 1)
    addAccount(db, { id: `account-${count}-of-${times}`, name: 'Acme', daily_rows: null }, Date.now());
  db.close();
}

/** Verifies a backup. @returns its last entries, which a restore would continue */
function restorable(target: string): { log: number; changes: number } {
  const source = findSource(target);
  const { findings } = verifyBackup(source, () => {});
  assert.deepEqual(findings, []);
  const stage = dataFolder(mkdtempSync(join(work, 'stage-')));
  loadSource(source, stage, () => {});
  const log = findTail(stage.log).last;
  const access = findCopy(stage.access);
  rmSync(stage.root, { recursive: true });
  return { log: log?.entry ?? 0, changes: access.kind === 'sound' ? access.state.change : 0 };
}

describe('at every step of a run', () => {
  type Fault = 'killed' | 'disk full' | 'folder gone';
  for (const [fault, message] of [
    ['killed', /killed/],
    ['disk full', /is full.*earlier backup is still valid/],
    ['folder gone', /cannot write .*folder.*earlier backup is still valid/],
  ] as const)
    test(fault, () => {
      let steps = 0;
      for (let isMet = true; isMet; steps += 1) {
        rmSync(folder, { recursive: true, force: true });
        cpSync(good, folder, { recursive: true, preserveTimestamps: true });
        const outcome = withFault(fault, steps, () => backUp(folder));
        isMet = outcome.isMet;
        const when = `step ${steps}, ${outcome.refusal}`;
        if (outcome.refusal !== null) assert.match(outcome.refusal, message, when);
        if (existsSync(`${folder}-gone`)) {
          assert.ok(!existsSync(folder), `${when}: the backup must not create the folder again`);
          renameSync(`${folder}-gone`, folder);
        }
        const { log, changes } = restorable(folder);
        assert.ok(log >= 12 && changes >= 4, when);
        backUp(folder);
        assert.deepEqual(restorable(folder), { log: 20, changes: 8 }, when);
      }
      assert.ok(steps > 8, `${steps} steps`);
    });

  /** The calls that change the disk, except SQLite's. */
  const STEPS = [
    ...['openSync', 'writeSync', 'writeFileSync', 'fsyncSync', 'renameSync', 'rmSync', 'mkdirSync'],
    ...['ftruncateSync', 'utimesSync'],
  ];
  const NEEDS_ROOM = ['writeSync', 'writeFileSync', 'mkdirSync'];
  type Call = (...args: unknown[]) => unknown;

  /** Runs work with a fault from a step on. @returns whether the step was reached, and the error message */
  function withFault(fault: Fault, step: number, run: () => unknown) {
    const real = Object.fromEntries(STEPS.map((name) => [name, callOf(name)]));
    let count = 0;
    for (const [name, call] of Object.entries(real))
      Reflect.set(fs, name, (...args: unknown[]) => {
        if (name === 'openSync' && args[1] === 'r') return call(...args);
        if (fault === 'disk full' && !NEEDS_ROOM.includes(name)) return call(...args);
        count += 1;
        if (count <= step) return call(...args);
        if (fault !== 'folder gone') return fail(fault, name, count === step + 1, call, args);
        if (count === step + 1) real.renameSync?.(folder, `${folder}-gone`);
        return call(...args);
      });
    syncBuiltinESMExports();
    let refusal: string | null = null;
    try {
      run();
    } catch (error) {
      refusal = String(error);
    } finally {
      Object.assign(fs, real);
      syncBuiltinESMExports();
    }
    assert.ok(refusal === null || count > step, String(refusal));
    return { isMet: count > step, refusal };
  }

  function callOf(name: string): Call {
    const call: unknown = Reflect.get(fs, name);
    assert.ok(typeof call === 'function');
    return (...args) => Reflect.apply(call, fs, args);
  }

  function fail(fault: Fault, name: string, isFirst: boolean, call: Call, args: unknown[]): never {
    // A partial write: the disk became full, or the process was killed.
    if (isFirst && name === 'writeSync')
      call(args[0], args[1], args[2], Math.floor(Number(args[3]) / 2), args[4]);
    if (fault === 'killed') throw new Error('killed');
    const code = 'ENOSPC';
    throw Object.assign(new Error(`${code}: no space left on device, ${name}`), { code, syscall: name });
  }
});

describe('while it runs', () => {
  test('the log grows, its segments close, and a removal rewrites one', () => {
    const own = join(work, 'going-on');
    cpSync(data, own, { recursive: true, preserveTimestamps: true });
    const { log } = dataFolder(own);
    const writer = makeLog(log, 0);
    const target = join(work, 'going-on-backup');
    const options = { data: own, target };
    let count = 20;
    let rewritten = 0;
    for (let round = 0; round < 5; round += 1) {
      const had = count;
      backUp(target, {
        ...options,
        onProgress() {
          addEntries(writer, 3);
          count += 3;
          writer.closeSegment();
          const path = segments(log)[rewritten];
          rewritten += 1;
          if (path !== undefined && rewritten < segments(log).length - 2) rewrite(path);
        },
      });
      assert.ok(count > had, 'the log must have grown');
      const { log: reached } = restorable(target);
      assert.ok(reached >= had, `round ${round}: ${reached} of ${had}`);
    }
    writer.close();
    backUp(target, options);
    assert.equal(restorable(target).log, count);
  });
});
