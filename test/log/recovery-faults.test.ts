/** Starts after an earlier start, or the machine, failed at a critical moment. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { compactStopped } from '../../src/log/compact.ts';
import { logWriter } from '../../src/log/log-writer.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { listSegments } from '../../src/log/segment.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { abandon, closeDetections } from '../../src/store/checkpoint.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { dataFolder, noteDamage } from '../../src/store/folder.ts';
import { LogDamage } from '../../src/store/log-errors.ts';
import { readLogMarkOf, setWaitsForCopy, waitsForCopy } from '../../src/store/log-mark.ts';
import { assertSameContent, changeDetections, withoutOpenDelivery } from '../support/database-content.ts';
import { flipBit } from '../support/flip-bit.ts';
import {
  createHistory,
  type History,
  QUIETLY,
  rowsFrom,
  streamWriterOn,
  withHistory,
} from '../support/history.ts';
import { patched } from '../support/patched-fs.ts';
import { recordFile } from '../support/scrub.ts';
import { testFolder } from '../support/test-folder.ts';

class Killed extends Error {}

/** Stops it; its database must have this content. */
const assertContent = (history: History, content: ReturnType<History['stopped']>): void =>
  assertSameContent(withoutOpenDelivery(history.stopped()), withoutOpenDelivery(content));

const overwrite = (path: string, from: number, to: number, byte = 0) =>
  fs.writeFileSync(path, fs.readFileSync(path).fill(byte, from, to));

const changed = (sql: string) => (path: string) => changeDetections(dirname(path), sql);

const REBUILT: readonly [what: string, change: (path: string) => void, reason: RegExp][] = [
  ['with rows beyond its mark', changed('DELETE FROM log_mark'), /the log creates detection .* twice/],
  ['that is emptied', (path) => fs.truncateSync(path), /it does not exist/],
  ['of another schema', changed('PRAGMA user_version = 5'), /another version/],
  ['with an overwritten first page', (path) => overwrite(path, 0, 100, 0x5a), /damaged/],
  ['known to be damaged', (path) => fs.writeFileSync(`${path}-damage`, 'bad\n'), /marked as damaged: bad/],
  ['of another history', changed("UPDATE log_mark SET entry = 2, id = 'ffff'"), /belongs to another log/],
];
for (const [what, change, reason] of REBUILT)
  test(`a database ${what} is rebuilt`, () =>
    withHistory(async (history, content) => {
      change(history.folder.detections);
      fs.writeFileSync(history.folder.verified, 'what was found in the old one');
      assert.match(String((await history.restart()).madeAnew), reason);
      assertSameContent(history.stopped(), content);
      const left = fs.readdirSync(history.folder.root);
      assert.doesNotMatch(left.join('\n'), /draft|aside|damage|verified/);
    }));

test('an unreliable state is refused with what to do, and nothing is changed', () =>
  withHistory(async ({ folder, restart }) => {
    const { detections, log } = folder;
    const sound = testFolder();
    fs.cpSync(folder.root, sound, { recursive: true });
    const segments = listSegments(log).map(({ path }) => path);
    const last = segments.at(-1) ?? '';
    const damage = () => {
      fs.rmSync(detections);
      flipBit(segments[0] ?? '', 200);
    };
    const cases: [change: () => void, reason: RegExp][] = [
      [() => fs.rmSync(log, { recursive: true }), /the log is missing.*wirewatch compact --data \//s],
      [() => fs.rmSync(last), /the log ends with entry \d+, but the database has applied entry/],
      [damage, /the log in .* is damaged: .* is damaged at byte/],
    ];
    const state = () =>
      [detections, ...segments].map((path) => (fs.existsSync(path) ? fs.readFileSync(path, 'base64') : null));
    for (const [change, reason] of cases) {
      fs.cpSync(sound, folder.root, { recursive: true });
      change();
      const before = state();
      await assert.rejects(restart(), reason);
      assert.deepEqual(state(), before);
    }
  }));

test('an interrupted start leaves the database as reliable as it was', () =>
  withHistory(async (history) => {
    const content = await history.loseInDatabase(() => {
      for (let from = 5000; from < 5100; from += 20) history.apply(rowsFrom(from, 20));
    });
    let turns = 0;
    const kill = async () => {
      turns += 1;
      if (turns === 3) throw new Killed();
    };
    await assert.rejects(history.restart({ between: kill }), Killed);
    assert.equal((await history.restart()).madeAnew, null);
    assertContent(history, content);
  }));

test('a database whose -shm can only be read is not opened: each write would fail', () =>
  withHistory(async (history, content) => {
    history.stop();
    const shm = `${history.folder.detections}-shm`;
    fs.rmSync(shm, { force: true });
    fs.mkdirSync(shm);
    await assert.rejects(history.restart(), { code: /^SQLITE_READONLY/ });
    fs.rmdirSync(shm);
    await history.restart();
    assertContent(history, content);
  }));

test('damage found during a start stays noted', () =>
  withHistory(async (history) => {
    await history.restart({ onReadable: () => noteDamage(history.folder, 'a page') });
    assert.ok(fs.existsSync(history.folder.damage));
    assert.match(String((await history.restart()).madeAnew), /marked as damaged: a page/);
    assert.ok(!fs.existsSync(history.folder.damage));
  }));

test('a new database that one failed read marked as damaged is created again; one that lost its log is not', () =>
  withHistory(async (history) => {
    const { folder } = history;
    history.stop();
    fs.rmSync(folder.log, { recursive: true });
    noteDamage(folder, 'a read failed');
    await assert.rejects(history.restart(), /the log is missing/);
    for (const what of ['never completed', 'new']) {
      if (what === 'never completed') fs.rmSync(folder.detections);
      noteDamage(folder, 'a read failed');
      assert.match(String((await history.restart()).madeAnew), /marked as damaged: a read failed/, what);
      assert.ok(!fs.existsSync(folder.damage));
      history.stop();
    }
    await history.restart();
    history.apply(rowsFrom(1, 3));
  }));

describe('an entry with an intact end and damaged rows', () => {
  /** The log after a power cut before the entry is durable: a disk writes in any order. */
  const write = ({ folder }: History) => {
    const tail = findTail(folder.log);
    const { path = '', bytes = 0 } = tail.segment ?? {};
    const log = logWriter({ folder: folder.log }, tail);
    for (const passed of [1, 2, 3]) log.append(`{"passed":${passed}}\n`);
    log.commit('', { kind: 'test' }, Date.now());
    log.close();
    overwrite(path, bytes + 10, bytes + 40);
  };

  test('is cut if the database shows that it was never decided', () =>
    withHistory(async (history, content) => {
      write(history);
      const { applied, madeAnew } = await history.restart();
      assert.deepEqual([applied, madeAnew], [0, null]);
      history.apply(rowsFrom(9000, 3));
      const found = history.stopped();
      assert.equal(found.detection?.length, (content.detection?.length ?? 0) + 3);
      fs.rmSync(history.folder.detections);
      await history.restart();
      assertContent(history, found);
    }));

  test('is cut also if a power cut took earlier entries from the database', () =>
    withHistory(async (history) => {
      const content = await history.loseInDatabase(() => {
        for (const from of [9000, 9100]) history.apply(rowsFrom(from, 3));
      });
      write(history);
      const { applied, madeAnew } = await history.restart();
      assert.ok(applied >= 2 && madeAnew === null);
      assertContent(history, content);
    }));

  test('is damage otherwise', () =>
    withHistory(async (history) => {
      write(history);
      assert.throws(() => findTail(history.folder.log), LogDamage);
      const path = listSegments(history.folder.log).at(-1)?.path ?? '';
      const before = fs.readFileSync(path);
      fs.rmSync(history.folder.detections);
      await assert.rejects(history.restart(), /the entry after entry \d+ .* is damaged/);
      assert.deepEqual(fs.readFileSync(path), before);
    }));

  test('is damage also if it is the first, and there is no database', async () => {
    using history = await createHistory();
    history.apply(rowsFrom(1, 400), { batchRows: 5 });
    history.stop();
    const [{ path } = { path: '' }, ...others] = listSegments(history.folder.log);
    for (const other of others) fs.rmSync(other.path);
    overwrite(path, 300, 330);
    fs.rmSync(history.folder.detections);
    await assert.rejects(history.restart(), /the entry after entry 0 .* is damaged/);
  });
});

test('an older database is not given up where the log is damaged', () =>
  withHistory(async (history) => {
    const { detections, log, damage } = history.folder;
    await history.loseInDatabase(() => {
      for (const from of [9000, 9500]) history.apply(rowsFrom(from, 400), { batchRows: 5 });
    });
    overwrite(listSegments(log).at(-2)?.path ?? '', 200, 210);
    await assert.rejects(history.restart(), /is damaged at byte/);
    assert.ok(!fs.existsSync(damage));
    // Where there is no copy, it is all that there is.
    fs.renameSync(log, `${log}-away`);
    const mark = readLogMarkOf(detections);
    const { entry } = await compactStopped({ folder: history.folder, nowMs: Date.now(), ...QUIETLY });
    assert.equal(entry, mark?.entry);
  }));

test('a process that begins again keeps the -wal, which its readers have open', () =>
  withHistory(async ({ folder }) => {
    const begin = async (isAgain: boolean) => {
      const { db, log } = await recoverDetections({ folder, ...QUIETLY, isAgain });
      log.close();
      return db;
    };
    const write = (db: Database, waits: boolean) =>
      streamWriterOn(db, folder.root).write({ kind: 'test' }, () => setWaitsForCopy(db, waits));
    const first = await begin(false);
    write(first, true);
    using reader = openDatabase(folder.detections, 'read');
    assert.equal(waitsForCopy(reader), true);
    // As on a full disk: without a checkpoint.
    abandon(first);
    const second = await begin(true);
    try {
      write(second, false);
      assert.equal(waitsForCopy(reader), false);
    } finally {
      closeDetections(second);
    }
  }));

test('an entry that only the -wal shows to be decided is not cut off', () =>
  withHistory(async (history) => {
    const { detections, log } = history.folder;
    await history.restart();
    history.apply(rowsFrom(7000, 20));
    const files = [detections, `${detections}-wal`].map((path) => ({ path, bytes: fs.readFileSync(path) }));
    const segment = listSegments(log).at(-1)?.path ?? '';
    const { length } = fs.readFileSync(segment);
    history.stop();
    for (const { path, bytes } of files) fs.writeFileSync(path, bytes);
    // Without the end of the last entry.
    fs.truncateSync(segment, length - 10);
    for (let time = 0; time < 2; time += 1)
      await assert.rejects(history.restart(), /ends with entry \d+, but the database has applied entry \d+/);
  }));

test('what only the -wal has is not dropped where the log is damaged: compact keeps it', async () => {
  using history = await createHistory(600);
  history.apply(rowsFrom(1000, 30));
  await history.restart();
  for (let time = 1; time < 6; time += 1) history.apply(rowsFrom(1000 + 100 * time, 30));
  const root = testFolder();
  // As a kill leaves it.
  fs.cpSync(history.folder.root, root, { recursive: true });
  const options = { folder: dataFolder(root), ...QUIETLY };
  flipBit(listSegments(options.folder.log).at(-3)?.path ?? '');
  await assert.rejects(recoverDetections(options), /is damaged at byte/);
  await compactStopped({ ...options, nowMs: Date.now() });
  const { db, log } = await recoverDetections(options);
  assert.deepEqual(db.prepare('SELECT count(*) AS rows FROM stream_row').get(), { rows: 180 });
  log.close();
  closeDetections(db);
});

test('a rebuilt database has its write-ahead log before it has its name', () =>
  withHistory(async (history) => {
    let versions: number[] = [];
    using _ = patched('renameSync', (rename) => (from, to) => {
      // https://sqlite.org/fileformat.html#file_format_version_numbers
      if (String(from).endsWith('-draft')) versions = [...fs.readFileSync(String(from)).subarray(18, 20)];
      rename(from, to);
    });
    fs.rmSync(history.folder.detections);
    await history.restart();
    assert.deepEqual(versions, [2, 2]);
    assert.ok(!fs.readdirSync(history.folder.root).some((name) => name.includes('-draft')));
  }));

/** Leaves a rollback journal, as another program does that is killed in a transaction. */
function leaveJournal(path: string): void {
  const db = openDatabase(path, 'plain');
  db.pragma('journal_mode = DELETE');
  db.pragma('synchronous = OFF');
  db.pragma('cache_size = 1');
  db.exec('BEGIN IMMEDIATE; UPDATE stream_row SET score = score + 1');
  const files = [path, `${path}-journal`].map((file) => ({ file, bytes: fs.readFileSync(file) }));
  db.exec('ROLLBACK');
  db.close();
  for (const { file, bytes } of files) fs.writeFileSync(file, bytes);
  assert.ok(fs.statSync(`${path}-journal`).size > 0);
}

test('a rollback journal beside the database, of its state or an earlier one, does no harm', () =>
  withHistory(async (history, content) => {
    const { detections } = history.folder;
    leaveJournal(detections);
    const journal = fs.readFileSync(`${detections}-journal`);
    assert.match((await history.restart()).madeAnew ?? '', /a rollback journal/);
    assert.ok(!fs.existsSync(`${detections}-journal`));
    assertContent(history, content);
    await history.restart();
    history.apply(rowsFrom(7000, 400));
    const later = history.stopped();
    fs.writeFileSync(`${detections}-journal`, journal);
    assert.match((await history.restart()).madeAnew ?? '', /a rollback journal/);
    assertContent(history, later);
  }));

test('an interrupted rebuild begins again: a power cut may have taken any page of its draft', () =>
  withHistory(async (history) => {
    await history.restart();
    history.apply(rowsFrom(1, 20), { with: recordFile });
    const { detections } = history.folder;
    const content = history.stopped();
    assert.ok(content.ingest_file?.length);
    const draft = `${detections}-draft`;
    fs.copyFileSync(detections, draft);
    fs.rmSync(detections);
    // A page that was not written: no index shows that it is missing.
    const db = openDatabase(draft, 'write', DETECTIONS_SCHEMA);
    db.exec('DELETE FROM export_window; DELETE FROM ingest_file');
    db.close();
    const { applied } = await history.restart();
    assertSameContent(history.stopped(), content);
    assert.equal(applied, readLogMarkOf(detections)?.entry);
    assert.ok(!fs.existsSync(draft));
  }));

test('a rebuild that is stopped leaves no draft, and the next start makes all of it', () =>
  withHistory(async (history, content) => {
    const { detections } = history.folder;
    fs.rmSync(detections);
    const stop = async () => {
      throw new Killed();
    };
    await assert.rejects(history.restart({ between: stop }), Killed);
    assert.ok(!fs.existsSync(detections) && !fs.existsSync(`${detections}-draft`));
    await history.restart();
    assertSameContent(history.stopped(), content);
  }));
