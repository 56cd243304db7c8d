/** Starts after an earlier start, or the machine, failed at a critical moment. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs, {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { describe, test } from 'node:test';
import { LogDamage } from '../../src/history/log-error.ts';
import { findTail } from '../../src/history/log-reader.ts';
import { LogWriter } from '../../src/history/log-writer.ts';
import { listSegments } from '../../src/history/segment.ts';
import { noteDamage } from '../../src/store/damage-note.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { checkpointNoted, isNotedFile, noteBoot } from '../../src/store/file-identity.ts';
import { assertSameContent, contentOfDetections, withoutOpenDelivery } from '../support/database-content.ts';
import { type History, rowsFrom, withHistory } from '../support/history.ts';

const PAGE_BYTES = 16_384;

class Killed extends Error {}

test('a draft with the rows of an entry but without its mark is started again', () =>
  withHistory(async (history, content) => {
    const draft = `${history.folder.detections}-draft`;
    copyFileSync(history.folder.detections, draft);
    noteBoot(draft);
    rmSync(history.folder.detections);
    forgetMark(draft);
    await history.restart();
    assert.ok(!existsSync(draft));
    history.stop();
    assertSameContent(contentOfDetections(history.folder.root), content);
  }));

test('a database with rows beyond its mark is rebuilt', () =>
  withHistory(async (history, content) => {
    forgetMark(history.folder.detections);
    const { madeAnew } = await history.restart();
    assert.match(String(madeAnew), /the log creates detection .* twice/);
    history.stop();
    assertSameContent(contentOfDetections(history.folder.root), content);
  }));

function forgetMark(path: string): void {
  const db = openDatabase(path, 'write', DETECTIONS_SCHEMA);
  db.exec('DELETE FROM log_mark');
  db.close();
}

test('a database is still recognized as cleanly closed after an interrupted start', () =>
  withHistory(async (history, content) => {
    const path = history.folder.detections;
    const older = `${path}.older`;
    await history.restart();
    history.stop();
    copyFileSync(path, older);
    await history.restart();
    for (let from = 5000; from < 5100; from += 20) history.apply(rowsFrom(from, 20));
    history.stop();
    copyFileSync(older, path);
    let turns = 0;
    const kill = async () => {
      turns += 1;
      if (turns === 3) throw new Killed();
    };
    await assert.rejects(history.restart({ between: kill }), Killed);
    assert.ok(isNotedFile(path));
    await history.restart();
    assert.ok((content.detection?.length ?? 0) > 0);
  }));

test('damage found during a start stays noted', () =>
  withHistory(async (history) => {
    await history.restart({ onReadable: () => noteDamage(history.folder, 'a page') });
    assert.ok(existsSync(history.folder.damage));
    const { madeAnew } = await history.restart();
    assert.match(String(madeAnew), /marked as damaged: a page/);
    assert.ok(!existsSync(history.folder.damage));
  }));

test('the check of a large database is logged before it starts', () =>
  withHistory(async (history) => {
    await history.restart();
    for (let from = 10_000; from < 38_000; from += 4000) history.apply(rowsFrom(from, 4000));
    history.stop();
    utimesSync(history.folder.detections, 1, 1);
    const reasons: string[] = [];
    await history.restart({ onBegin: (reason) => reasons.push(reason) });
    assert.deepEqual(reasons, ['the file was replaced since the last stop and is being checked']);
  }));

describe('an entry with an intact end and damaged rows', () => {
  /** The log after a power cut before the entry is durable: a disk writes in any order. */
  const write = ({ folder }: History) => {
    const tail = findTail(folder.log);
    const { path = '', bytes = 0 } = tail.segment ?? {};
    const options = { folder: folder.log, program: tail.segment?.program ?? '' } as const;
    const log = new LogWriter({ ...options, segmentBytes: 1_000_000 }, tail);
    for (const passed of [1, 2, 3]) log.append(`{"passed":${passed}}\n`);
    log.commit('', { kind: 'test' }, Date.now());
    log.close();
    const content = readFileSync(path);
    writeFileSync(path, content.fill(0, bytes + 10, bytes + 40));
  };

  test('is cut if the database shows that it was never decided', () =>
    withHistory(async (history, content) => {
      write(history);
      const { applied, madeAnew } = await history.restart();
      assert.deepEqual([applied, madeAnew], [0, null]);
      history.apply(rowsFrom(9000, 3));
      history.stop();
      const found = contentOfDetections(history.folder.root);
      assert.equal(found.detection?.length, (content.detection?.length ?? 0) + 3);
      rmSync(history.folder.detections);
      await history.restart();
      history.stop();
      const [made, expected] = [contentOfDetections(history.folder.root), found].map(withoutOpenDelivery);
      assertSameContent(made ?? {}, expected ?? {});
    }));

  test('is cut also if a power cut took earlier entries from the database', () =>
    withHistory(async (history) => {
      const path = history.folder.detections;
      await history.restart();
      history.stop();
      const earlier = [path, `${path}-identity`].map((one) => readFileSync(one));
      await history.restart();
      for (const from of [9000, 9100]) history.apply(rowsFrom(from, 3));
      history.stop();
      const content = contentOfDetections(history.folder.root);
      write(history);
      writeFileSync(path, earlier[0] ?? '');
      const { mtimeNs } = statSync(path, { bigint: true });
      const noted = JSON.parse(`${earlier[1]}`);
      writeFileSync(`${path}-identity`, JSON.stringify({ ...noted, modified_ns: `${mtimeNs}` }));
      const { applied, madeAnew } = await history.restart();
      assert.ok(applied >= 2);
      assert.equal(madeAnew, null);
      history.stop();
      const found = contentOfDetections(history.folder.root);
      assertSameContent(withoutOpenDelivery(found), withoutOpenDelivery(content));
    }));

  test('is damage otherwise', () =>
    withHistory(async (history) => {
      write(history);
      assert.throws(() => findTail(history.folder.log), LogDamage);
      const bytes = statSync(listSegments(history.folder.log).at(-1)?.path ?? '').size;
      utimesSync(history.folder.detections, 1, 1);
      await assert.rejects(history.restart(), /the entry after entry \d+ .* is damaged/);
      rmSync(history.folder.detections);
      await assert.rejects(history.restart(), /the entry after entry \d+ .* is damaged/);
      assert.equal(statSync(listSegments(history.folder.log).at(-1)?.path ?? '').size, bytes);
    }));
});

test('during a checkpoint, an older copy is detected, even with the same inode', () =>
  withHistory(async (history) => {
    const path = history.folder.detections;
    const note = `${path}-identity`;
    await history.restart();
    history.stop();
    const older = readFileSync(path);
    await history.restart();
    history.apply(rowsFrom(7000, 20));
    history.stop();
    const { inode, entry } = JSON.parse(readFileSync(note, 'utf8'));
    assert.ok(entry > 0);
    const cutOff = (bytes: Uint8Array) => {
      writeFileSync(path, bytes);
      const noted = JSON.parse(readFileSync(note, 'utf8'));
      writeFileSync(note, JSON.stringify({ ...noted, is_checkpointing: true }));
    };
    const own = readFileSync(path);
    cutOff(own);
    assert.ok(isNotedFile(path));
    cutOff(own.subarray(0, own.length - 100_000));
    assert.ok(isNotedFile(path), 'a half-finished checkpoint');
    cutOff(older);
    assert.equal(`${statSync(path).ino}`, inode);
    assert.ok(!isNotedFile(path));
    assert.ok(!existsSync(`${path}-peek`));
    await history.restart();
  }));

test('a checkpoint that a kill interrupted is completed', () =>
  withHistory(async (history) => {
    const path = history.folder.detections;
    await history.restart();
    const before = readFileSync(path);
    const noted = JSON.parse(readFileSync(`${path}-identity`, 'utf8'));
    history.apply(rowsFrom(7000, 400));
    const log = readFileSync(`${path}-wal`);
    history.stop();
    const content = contentOfDetections(history.folder.root);
    const after = readFileSync(path);
    assert.ok(after.length > before.length);
    // The first page contains the new length of the file.
    writeFileSync(path, Buffer.concat([after.subarray(0, PAGE_BYTES), before.subarray(PAGE_BYTES)]));
    writeFileSync(`${path}-wal`, log);
    writeFileSync(`${path}-identity`, JSON.stringify({ ...noted, is_checkpointing: true }));
    assert.equal((await history.restart()).madeAnew, null);
    history.stop();
    assertSameContent(
      withoutOpenDelivery(contentOfDetections(history.folder.root)),
      withoutOpenDelivery(content),
    );
  }));

test('a file that a checkpoint had half written is rebuilt if nothing says that it was being written', () =>
  withHistory(async (history) => {
    const path = history.folder.detections;
    await history.restart();
    const before = readFileSync(path);
    const note = readFileSync(`${path}-identity`);
    history.apply(rowsFrom(7000, 400));
    const log = readFileSync(`${path}-wal`);
    history.stop();
    const content = contentOfDetections(history.folder.root);
    const after = readFileSync(path);
    // Every other page, so that the first page keeps the old length.
    for (let at = PAGE_BYTES; at < before.length; at += 2 * PAGE_BYTES)
      after.copy(before, at, at, at + PAGE_BYTES);
    writeFileSync(path, before);
    writeFileSync(`${path}-wal`, log);
    writeFileSync(`${path}-identity`, note);
    assert.match(`${(await history.restart()).madeAnew}`, /power cut/);
    history.stop();
    const found = contentOfDetections(history.folder.root);
    assertSameContent(withoutOpenDelivery(found), withoutOpenDelivery(content));
    assert.ok(!existsSync(`${path}-wal-aside`));
  }));

test('a rebuilt database has its write-ahead log before it has its name', () =>
  withHistory(async (history) => {
    const rename = fs.renameSync;
    let versions: number[] = [];
    fs.renameSync = (from, to) => {
      // https://sqlite.org/fileformat.html#file_format_version_numbers
      if (String(from).endsWith('-draft')) versions = [...readFileSync(String(from)).subarray(18, 20)];
      rename(from, to);
    };
    syncBuiltinESMExports();
    try {
      rmSync(history.folder.detections);
      await history.restart();
    } finally {
      fs.renameSync = rename;
      syncBuiltinESMExports();
    }
    assert.deepEqual(versions, [2, 2]);
    assert.ok(!readdirSync(history.folder.root).some((name) => name.includes('-draft')));
  }));

test('a copy with the same size and time is another file', { skip: process.platform === 'win32' }, () =>
  withHistory(async (history) => {
    const path = history.folder.detections;
    await history.restart();
    history.stop();
    assert.ok(isNotedFile(path));
    spawnSync('cp', ['-p', path, `${path}.copy`]);
    const stats = () => statSync(path, { bigint: true });
    const before = stats();
    renameSync(`${path}.copy`, path);
    assert.deepEqual([stats().size, stats().mtimeNs], [before.size, before.mtimeNs]);
    assert.ok(!isNotedFile(path));
  }),
);

test('a checkpoint interrupted after its writes leaves a file that is recognized', () =>
  withHistory(async (history) => {
    const path = history.folder.detections;
    await history.restart();
    history.apply(rowsFrom(8000, 20));
    const db = history.db();
    const pragma = db.pragma.bind(db);
    let calls = 0;
    db.pragma = (text, options) => {
      pragma(text, options);
      calls += 1;
      // The second call follows the checkpoint.
      if (calls === 2) throw new Killed();
    };
    assert.throws(() => checkpointNoted(db, 'TRUNCATE'), Killed);
    db.pragma = pragma;
    assert.ok(isNotedFile(path));
  }));

/**
 * Leaves a rollback journal, as an earlier version did when killed while it switched a rebuilt database to WAL mode.
 */
function leaveJournal(path: string): void {
  const db = openDatabase(path, 'plain');
  db.pragma('journal_mode = DELETE');
  db.pragma('synchronous = OFF');
  db.pragma('cache_size = 1');
  db.exec('BEGIN IMMEDIATE; UPDATE stream_row SET score = score + 1');
  const files = [path, `${path}-journal`].map((file) => ({ file, bytes: readFileSync(file) }));
  db.exec('ROLLBACK');
  db.close();
  for (const { file, bytes } of files) writeFileSync(file, bytes);
  assert.ok(statSync(`${path}-journal`).size > 0);
  rmSync(`${path}-identity`);
}

test('a rollback journal beside the database is no obstacle', () =>
  withHistory(async (history, content) => {
    leaveJournal(history.folder.detections);
    assert.equal((await history.restart()).madeAnew, null);
    history.stop();
    assertSameContent(contentOfDetections(history.folder.root), content);
    assert.ok(!existsSync(`${history.folder.detections}-journal`));
  }));

test('a rollback journal of an earlier state does no harm', () =>
  withHistory(async (history) => {
    const path = history.folder.detections;
    leaveJournal(path);
    const journal = readFileSync(`${path}-journal`);
    await history.restart();
    history.apply(rowsFrom(7000, 400));
    history.stop();
    const content = withoutOpenDelivery(contentOfDetections(history.folder.root));
    writeFileSync(`${path}-journal`, journal);
    assert.match((await history.restart()).madeAnew ?? '', /damaged/);
    history.stop();
    assertSameContent(withoutOpenDelivery(contentOfDetections(history.folder.root)), content);
  }));

test('a file is recognized even if a reboot changed the device number of its file system', () =>
  withHistory(async ({ folder }) => {
    const note = `${folder.detections}-identity`;
    const noted = JSON.parse(readFileSync(note, 'utf8'));
    writeFileSync(note, JSON.stringify({ ...noted, device: '1' }));
    assert.ok(isNotedFile(folder.detections));
    utimesSync(folder.detections, 1, 1);
    assert.ok(!isNotedFile(folder.detections));
  }));
