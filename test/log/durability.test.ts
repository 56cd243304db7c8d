/**
 * Data that must survive a power cut: content is synced before it gets its name, the name before anything relies on it,
 * and a log entry before the database commits it. A kill cannot reveal a missing sync; the order of calls does.
 */
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { after, afterEach, beforeEach, describe, test } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { listSegments } from '../../src/log/segment.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { readSecret } from '../../src/store/secret.ts';
import { formatMs } from '../../src/time.ts';
import { openAccess } from '../support/access.ts';
import { createInstallation, putFile } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { copyTo, restoreFrom, sourceAt } from '../support/copy-at.ts';
import {
  type DiskCall,
  diskCallsOf,
  programCalls,
  recordDiskCalls,
  Unsynced,
} from '../support/disk-calls.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { beforeCommit, createHistory, type History, variedRows } from '../support/history.ts';
import type { LogLine } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

let history: History;
let work: string;
beforeEach(async () => {
  work = testFolder();
  history = await createHistory(1024);
});
afterEach(() => history.delete());

const rowsFrom = (from: number, count: number) => variedRows([7001, 7002], from, count);

function fill(): void {
  for (let from = 1; from <= 60; from += 6) history.apply(rowsFrom(from, 6));
}

/** Notes that may be lost: without them, files are checked again, or work is repeated. */
const MAY_BE_LOST = /(verified\.json|lock(-serve|-state)?)(\.new|\.tmp)?$/;
/** Files that SQLite syncs itself. */
const DATABASE = /\.db(-draft)?(-wal|-shm|-journal)?$/;

const isThere = (path: string) => existsSync(path);

/**
 * @param isKept whether a path matters; by default if it is still there
 * @throws AssertionError if something in a folder is unsynced, or got its name before its content was synced
 */
function assertDurable(calls: Iterable<DiskCall>, folder: string, when: string, isKept = isThere): void {
  const { content, names, tooEarly } = new Unsynced(calls);
  const counts = (path: string) => path.startsWith(folder) && !MAY_BE_LOST.test(path) && isKept(path);
  assert.deepEqual([...content].filter(counts), [], `${when}: content`);
  const unnamed = [...names].filter((path) => counts(path) && !DATABASE.test(path));
  assert.deepEqual(unnamed, [], `${when}: names`);
  const early = tooEarly.filter((path) => !MAY_BE_LOST.test(path));
  assert.deepEqual(early, [], `${when}: named before it was synced`);
}

/** @throws AssertionError unless a renamed or linked file was synced before, and its folder after */
function assertPlaced(calls: readonly DiskCall[], path: string): void {
  const at = calls.findIndex((call) => 'to' in call && call.to === path);
  const draft = calls[at]?.path;
  assert.ok(draft !== undefined, `nothing was renamed or linked to ${path}`);
  const isSync = (of: string) => (call: DiskCall) => call.call === 'sync' && call.path === of;
  assert.ok(calls.slice(0, at).some(isSync(draft)), `${draft} was not synced before it became ${path}`);
  const folder = dirname(path);
  assert.ok(calls.slice(at).some(isSync(folder)), `${folder} was not synced after ${path} was added`);
}

type Rename = DiskCall & { readonly to: string };

/** @throws AssertionError unless earlier renames are synced, in both folders, before each rename */
function assertInOrder(calls: readonly DiskCall[], isOne: (call: Rename) => boolean): void {
  const unsynced = new Unsynced();
  let renames = 0;
  for (const call of calls) {
    if (call.call === 'rename' && isOne(call)) {
      // A folder created for the renamed file is synced with it.
      const counts = (path: string) => !MAY_BE_LOST.test(path) && !/\.tmp$|replaced-[^/]*$/.test(path);
      const open = [...unsynced.names, ...unsynced.removed].filter(counts);
      assert.deepEqual(open, [], `as ${call.to} gets its name`);
      renames += 1;
    }
    unsynced.note(call);
  }
  assert.ok(renames > 1);
}

/** Checks the synced data at each commit of a database. @returns the number of commits */
function commitsOf(db: Database, log: string, work: () => void): number {
  const unsynced = new Unsynced();
  using _ = recordDiskCalls((call) => unsynced.note(call));
  let commits = 0;
  using __ = beforeCommit(db, () => {
    commits += 1;
    const of = (paths: Set<string>) => [...paths].filter((path) => path.startsWith(log));
    assert.deepEqual([of(unsynced.content), of(unsynced.names)], [[], []], 'at the commit');
    assert.equal(readLogMark(db)?.id, findTail(log).last?.id, 'the mark must name the last entry');
  });
  work();
  return commits;
}

test('an entry is durable, with the name of its segment, before the database commits', () => {
  const commits = commitsOf(history.db(), history.folder.log, fill);
  assert.ok(commits >= 10 && listSegments(history.folder.log).length > 3);
});

test('the spare copy of access.db is on the disk before a change of it is confirmed', async () => {
  using db = openAccess(work, { create: true });
  const { spare } = dataFolder(work);
  const calls = await diskCallsOf(() => addAccount(db, { id: 'a', name: 'a', daily_rows: null }, 1));
  assertPlaced(calls, spare);
  assertDurable(calls, spare, 'confirmed');
});

test('a commit of access.db is synced itself; one of detections.db is durable in the log', () => {
  openAccess(work, { create: true }).close();
  const synchronous = (db: Database) => {
    const level = Number(db.pragma('synchronous', { simple: true }));
    db.close();
    return level;
  };
  const [normal, full] = [1, 2];
  const { access, detections } = dataFolder(work);
  assert.equal(synchronous(openDatabase(access, 'write', ACCESS_SCHEMA)), full);
  assert.equal(synchronous(openDatabase(detections, 'write', DETECTIONS_SCHEMA)), normal);
});

describe('a start', () => {
  test('applies nothing of the log before its open segment is copied and synced', async () => {
    await history.loseInDatabase(() => history.apply(rowsFrom(10, 2)));
    const open = listSegments(history.folder.log).at(-1)?.path ?? '';
    appendFileSync(open, 'what a kill has left');
    const calls: DiskCall[] = [];
    let applied = 0;
    const onProgress = () => {
      applied += 1;
      assertPlaced(calls, open);
    };
    using _ = recordDiskCalls((call) => calls.push(call));
    await history.restart({ onProgress });
    assert.ok(applied > 0);
    assertDurable(calls, history.folder.log, 'after the start');
  });

  test('syncs a rebuilt database before it replaces the old one', async () => {
    fill();
    history.stop();
    rmSync(history.folder.detections);
    const calls = await diskCallsOf(() => history.restart());
    assertPlaced(calls, history.folder.detections);
  });

  test('syncs access.db where its spare copy takes its place', async () => {
    const { access } = dataFolder(work);
    openAccess(work, { create: true }).close();
    rmSync(access);
    const calls = await diskCallsOf(() => openAccess(work, { onRecovered: () => {} }).close());
    assertPlaced(calls, access);
  });
});

test('the secret is on the disk before anything is signed with it', async () => {
  const folder = dataFolder(work);
  const calls = await diskCallsOf(() => readSecret(folder));
  assertDurable(calls, work, 'made');
  assertPlaced(calls, folder.secret);
});

test('a rewritten log is on the disk before the old one goes', async () => {
  fill();
  await history.remove(7002);
  const calls = await diskCallsOf(() => history.compact());
  const at = calls.findIndex((call) => 'to' in call && call.to.endsWith('-snapshot.zst'));
  const deletedAt = calls.findIndex((call) => call.call === 'remove' && call.path.endsWith('.zst'));
  assert.ok(at >= 0 && deletedAt > at);
  assertDurable(calls.slice(0, deletedAt), history.folder.log, 'before a segment is deleted');
  assertDurable(calls, history.folder.log, 'compacted');
});

test('a restored state is synced before it replaces anything: in an empty folder, and beside a longer log', async () => {
  fill();
  const { root } = history.folder;
  openAccess(root, { create: true }).close();
  writeFileSync(history.folder.secret, Buffer.alloc(32, 7));
  const folder = join(work, 'copy');
  await copyTo(folder, root);
  history.apply(rowsFrom(100, 3));
  const db = openAccess(root);
  addAccount(db, { id: 'late', name: 'late', daily_rows: null }, 1);
  db.close();
  history.stop();
  const source = await sourceAt(folder);
  for (const [data, untilMs] of [
    [join(work, 'new'), null],
    [join(work, 'until'), Date.parse('2026-11-20T09:00:09Z')],
    [root, null],
  ] as const) {
    const calls = await diskCallsOf(() => restoreFrom(source, data, { untilMs }));
    const decided = calls.findIndex((call) => 'to' in call && /incoming-[^/]*$/.test(call.to));
    const stage = calls[decided]?.path ?? '';
    assert.match(stage, /\.incoming$/);
    // The rename moves the complete folder: check the names before it, and each file before and after.
    const isKept = (path: string) => /\/(secret|log(\/.*)?)$/.test(path) && !/\.tmp$/.test(path);
    assertDurable(calls.slice(0, decided), `${stage}/`, `${data}, before the rename`, isKept);
    const synced = calls.slice(0, decided).flatMap(({ call, path }) => (call === 'sync' ? path : []));
    for (const name of ['detections.db', 'access.db']) assert.ok(synced.includes(join(stage, name)), data);
    assertDurable(calls, data, data);
    const names = /^(detections\.db|access\.db|secret|log)$/;
    const isPart = (path: string) => names.test(basename(path));
    assertInOrder(calls.slice(decided), ({ path, to }) => isPart(path) && isPart(to));
  }
});

const isLog = ({ path }: DiskCall) => /\/log\/[^/]*\.zst$/.test(path);
const isPutAway = (call: DiskCall): call is Extract<DiskCall, { to: string }> =>
  call.call === 'rename' && /\/drop\/(archive|failed|refused)\/.*\.(ndjson|gz|txt)$/.test(call.to);
/** Reason files, and notes about a file that is being read. */
const isNote = (path: string) => /\.reason\.json(\.tmp)?$|reading/.test(path);

const installation = createInstallation({ WIREWATCH_INGEST_BAD_ROWS: 'skip' });
after(installation.remove);

test('a file is on the disk in .taken before its entry is, and its entry before the file is archived', {
  skip: NO_PRELOAD,
}, async () => {
  const { settings, calls } = programCalls(testFolder());
  const serving = await installation.serve(settings);
  const failing = nextWindowMs();
  const skipped = { ...newRow(), strength_score: -1 };
  for (const [name, content, outcome] of [
    [fileName('newswire', nextWindowMs()), ndjson([newRow(), skipped]), 'file applied'],
    [fileName('newswire', failing, 'ndjson.gz'), 'no gzip', 'file failed'],
    [fileName('newswire', failing), ndjson([newRow()]), 'file held'],
    ['readme.txt', 'not an export', 'file refused'],
    ['newswire.backfill-history.ndjson', ndjson([newRow(), newRow()]), 'file applied'],
  ] as const) {
    putFile(installation.drop, name, content);
    const isOutcome = ({ msg, file }: LogLine) => file === name && msg.startsWith('file ');
    assert.equal((await serving.logged(`the outcome of ${name}`, isOutcome)).msg, outcome);
  }
  installation.cli(['window', 'reset', 'newswire', formatMs(failing)]);
  await serving.stop();

  const unsynced = new Unsynced();
  const inDrop = (paths: string[]) =>
    paths.filter((path) => path.startsWith(installation.drop) && !isNote(path));
  const inLog = (paths: string[]) => paths.filter((path) => /\/log(\/|$)/.test(path));
  const putAway: string[] = [];
  let entries = 0;
  for (const call of calls()) {
    if (call.call === 'sync' && isLog(call)) {
      entries += 1;
      assert.deepEqual(inDrop([...unsynced.content, ...unsynced.names]), [], `entry ${entries}`);
    }
    if (isPutAway(call)) {
      putAway.push(call.to);
      assert.deepEqual(inLog([...unsynced.content, ...unsynced.names]), [], call.to);
    }
    unsynced.note(call);
  }
  assert.ok(entries > 5);
  for (const part of [/\/archive\//, /\/failed\//, /\/refused\//, /\.skipped\.ndjson$/m])
    assert.match(putAway.join('\n'), part);
  const left = [...unsynced.content, ...unsynced.names].filter((path) => existsSync(path));
  assert.deepEqual([inDrop(left), inLog(left)], [[], []], 'at the end');
  const removed = [...unsynced.removed].filter((path) => path.includes('/.taken/'));
  assert.deepEqual(removed, [], 'in one place');
});
