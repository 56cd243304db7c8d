/**
 * Errors of the file system: those of one file, which is retried while others are processed, with one alert for all, and
 * those that stop ingest. Code preloaded into the real program makes calls fail.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isFileError } from '../../src/drop/file-errors.ts';
import { stuckFiles } from '../../src/ingest/threads/retry-pauses.ts';
import { listSegments } from '../../src/log/segment.ts';
import { isDiskFull, isWriteLost } from '../../src/store/database-errors.ts';
import { LogFailure } from '../../src/store/log-errors.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD as skip } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { PATH_OF, preloadedFs } from '../support/preload.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';
import { words } from '../support/words.ts';

/** Errors of network shares, some of them rare. */
const OF_ONE_FILE = words('EBUSY ETXTBSY ESTALE EMFILE ENFILE ETIMEDOUT EIO EACCES ENOTDIR');

/**
 * Makes the first two renames of a file fail with the error at the end of its name, and every fsync of a file whose
 * name contains `fsync`. Files named `.txt` cannot be opened as long as the file TEST_UNREADABLE exists.
 */
const FAILING = `
  const { renameSync, openSync, fsyncSync } = fs;
  const failed = new Map();
  const failing = new Set();
  const fail = (code, syscall) => { throw Object.assign(new Error(code + ': made to fail, ' + syscall), { code, syscall }); };
  fs.renameSync = (from, to) => {
    const [, code] = /backfill-(e[a-z]+)/.exec(from) ?? [];
    const times = failed.get(from) ?? 0;
    failed.set(from, times + 1);
    if (code !== undefined && ${PATH_OF}(to).includes('.taken') && times < 2) fail(code.toUpperCase(), 'rename');
    return renameSync(from, to);
  };
  fs.openSync = (path, ...rest) => {
    if (String(path).endsWith('.txt') && fs.existsSync(process.env.TEST_UNREADABLE)) fail('EACCES', 'open');
    const fd = openSync(path, ...rest);
    if (String(path).includes('fsync')) failing.add(fd);
    else failing.delete(fd);
    return fd;
  };
  fs.fsyncSync = (fd) => failing.has(fd) ? fail('EIO', 'fsync') : fsyncSync(fd);
`;

const flag = join(testFolder(), 'flag');
const appliance = await sharedAppliance({
  WIREWATCH_INGEST_QUIET_MS: '0',
  ...preloadedFs(FAILING),
  TEST_UNREADABLE: flag,
});

test('a system error concerns one file, whatever its name', () => {
  const error = (code: string, syscall = 'rename') => Object.assign(new Error(code), { code, syscall });
  for (const code of OF_ONE_FILE) assert.ok(isFileError(error(code)), code);
  for (const code of ['ENOSPC', 'EDQUOT', 'SQLITE_IOERR', 'SQLITE_CORRUPT', 'ERR_INVALID_ARG_TYPE', 'READER'])
    assert.ok(!isFileError(error(code)), code);
  assert.ok(!isFileError(error('EIO', 'fsync')), 'written data may be lost');
  assert.ok(!isFileError(new TypeError('a fault of the program')));
  // Node has no names for these two errors.
  const nameless = (number: number) => error(`Unknown system error -${number}`);
  assert.ok(isFileError(nameless(constants.errno.ESTALE)));
  assert.ok(isDiskFull(nameless(constants.errno.EDQUOT)), 'handled like a full disk');
  assert.ok(!isFileError(nameless(constants.errno.EDQUOT)));
  // Ingest cannot continue without the log.
  const list = () => listSegments('/dev/null');
  assert.throws(list, (met) => !isFileError(met));
});

const isStuck = async () => (await openAlertsOf(appliance)).includes('file stuck');

test('a file that cannot be taken is reported, retried, and delays no other', { skip }, async () => {
  const names = OF_ONE_FILE.map((code) => `newswire.backfill-${code.toLowerCase()}.ndjson`);
  for (const name of names) appliance.put(name, ndjson([newRow()]));
  const good = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(good.msg, 'file applied');
  for (const name of names) assert.equal((await appliance.processed(name)).msg, 'file applied');
  const { log } = appliance.serving();
  const lines = log.filter(({ msg }) => msg.startsWith('a file cannot be read or moved'));
  assert.deepEqual(new Set(lines.map(({ file }) => file)), new Set(names));
  await until('the alert is over', async () => !(await isStuck()));
  const reported = log.filter((line) => line.alert === 'file stuck');
  assert.notEqual(reported.length, 0);
  for (const [at, { msg }] of reported.entries())
    assert.equal(msg, at % 2 === 0 ? 'alert opened' : 'alert closed', 'all files together have one alert');
});

test('a file that cannot be opened stays in the drop folder, also one not to be read', { skip }, async () => {
  writeFileSync(flag, '');
  appliance.put('report.txt', 'text');
  await appliance.logged(/^a file cannot/, { file: 'report.txt' });
  assert.ok(existsSync(join(appliance.drop, 'report.txt')));
  await until('the alert', isStuck);
  assert.deepEqual(readdirSync(join(appliance.drop, '.taken')), []);
  rmSync(flag);
  assert.equal((await appliance.processed('report.txt')).msg, 'file refused');
  await until('the alert is over', async () => !(await isStuck()));
});

test('a failed fsync ends ingest: the file is not applied, and reads continue', { skip }, async () => {
  appliance.put('newswire.backfill-fsync.ndjson', ndjson([newRow()]));
  await until('the alert', async () => (await openAlertsOf(appliance)).includes('ingest stopped'));
  assert.ok(!existsSync(join(appliance.drop, 'archive', 'newswire.backfill-fsync.ndjson')));
  assert.equal((await appliance.get('/v1/me')).status, 200);
});

test('ingest waits for a full disk, unless an fsync or truncation of the log failed', () => {
  const failure = (syscall: string) =>
    new LogFailure('write', 'log', Object.assign(new Error('full'), { code: 'ENOSPC', syscall }));
  for (const [syscall, isWaitedFor] of Object.entries({ write: true, fsync: false, ftruncate: false })) {
    const met = failure(syscall);
    assert.deepEqual([isDiskFull(met), isWriteLost(met)], [isWaitedFor, !isWaitedFor], syscall);
  }
});

test('the alert names the file that has been stuck longest, and counts the others', async () => {
  const alerts: (string | null)[] = [];
  const stuck = stuckFiles({ setCondition: (_, detail) => alerts.push(detail), log() {} });
  const fail = (key: string, message = 'denied') => {
    const error = Object.assign(new Error(message), { code: 'EACCES' });
    return stuck.attempt('dropped', key, key, () => Promise.reject(error));
  };
  await fail('a');
  assert.equal(alerts.at(-1), 'a: denied');
  await fail('b');
  await fail('c');
  assert.equal(alerts.at(-1), 'a and 2 more files: denied');
  await fail('a', 'a retry comes later');
  assert.equal(alerts.at(-1), 'a and 2 more files: denied');
  stuck.keepOnly('dropped', ['b', 'c']);
  assert.equal(alerts.at(-1), 'b and 1 more file: denied');
  stuck.keepOnly('dropped', []);
  assert.equal(alerts.at(-1), null);
});
