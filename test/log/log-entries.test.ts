/** The log: complete or absent entries, closed segments, torn ends, damage, and entries that the database refused. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { applyPending } from '../../src/log/apply-log.ts';
import type { Mark } from '../../src/log/format.ts';
import { encodeFrame } from '../../src/log/frame.ts';
import { entriesAfter, placeOf } from '../../src/log/log-reader.ts';
import { type LogWriter, logWriter } from '../../src/log/log-writer.ts';
import { listSegments, SegmentReader } from '../../src/log/segment.ts';
import { findTail, trustTail } from '../../src/log/torn-end.ts';
import { LogDamage } from '../../src/store/log-errors.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { openAccess } from '../support/access.ts';
import { copyTo, logOf } from '../support/copy-at.ts';
import { beforeCommit, type History, rowsFrom, withHistory } from '../support/history.ts';
import { patchedAll } from '../support/patched-fs.ts';
import { testFolder } from '../support/test-folder.ts';

const OPERATION = { kind: 'test' };
/** Segments of a few entries. */
const SMALL = 600;

const writerOn = (folder: string, segmentBytes = 1_000_000): LogWriter =>
  logWriter({ folder, segmentBytes }, findTail(folder));

const lineOf = (line: string) => `${JSON.stringify({ line })}\n`;

function append(writer: LogWriter, ...lines: string[]): Mark {
  for (const line of lines) writer.append(lineOf(line));
  return writer.commit('', OPERATION, Date.UTC(2026, 10, 20));
}

/** Continues a log by entries of one line each, and closes it. @returns their marks */
function write(folder: string, lines: readonly string[], segmentBytes?: number): Mark[] {
  const writer = writerOn(folder, segmentBytes);
  const marks = lines.map((line) => append(writer, line));
  writer.close();
  return marks;
}

/** Lines that fill a small segment in a few entries. */
const long = (count: number) =>
  Array.from({ length: count }, (_, index) => `${index}`.padEnd(100, `${index}`));

/** The last entry of a log whose doubtful end may be cut, as with a matching database; infinite if it is damaged. */
function doubtfulEnd(folder: string): number {
  try {
    return findTail(folder, true).last?.entry ?? 0;
  } catch (error) {
    if (error instanceof LogDamage) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

/** The lines of each entry, by number. */
function entriesOf(folder: string, after: Mark | null = null): Record<number, string[]> {
  const entries: Record<number, string[]> = {};
  let lines: string[] = [];
  for (const { part } of entriesAfter(folder, after)) {
    lines.push(...part.lines().map((line) => JSON.parse(line).line));
    if (part.commit === null) continue;
    entries[part.commit.entry] = lines;
    lines = [];
  }
  return entries;
}

const last = (folder: string) => listSegments(folder).at(-1)?.path ?? '';

test('entries are read as written, across segments and restarts', () => {
  const folder = testFolder();
  const first = writerOn(folder, SMALL);
  append(first, 'a', 'b');
  append(first);
  first.close();
  const [third] = write(folder, ['c', ...long(9)], SMALL);
  assert.ok(third && listSegments(folder).length > 1, 'segments must be closed at their maximum size');
  const all = entriesOf(folder);
  assert.deepEqual([all[1], all[2]], [['a', 'b'], []]);
  assert.deepEqual(Object.keys(all).length, 12);
  assert.deepEqual(Object.keys(entriesOf(folder, third)), Object.keys(all).slice(3));
  assert.equal(findTail(folder).last?.entry, 12);
});

test('rolled back lines are in no entry, and their bytes are cut, however short the next one', () => {
  const folder = testFolder();
  const writer = writerOn(folder);
  const rollBack = () => {
    writer.append(lineOf(randomBytes(3000).toString('hex')));
    writer.rollback();
    assert.equal(writer.isPending(), false);
  };
  rollBack();
  append(writer, 'a');
  rollBack();
  append(writer, 'b');
  writer.close();
  assert.equal(findTail(folder).segment?.bytes, fs.statSync(last(folder)).size);
  assert.deepEqual(entriesOf(folder), { 1: ['a'], 2: ['b'] });
});

test('an entry that is completed while the end is looked for is no damage', () => {
  const folder = testFolder();
  const writer = writerOn(folder);
  append(writer, 'a');
  const [segment = assert.fail()] = listSegments(folder);
  using reader = new SegmentReader(segment);
  writer.append(lineOf('b'));
  reader.skipTo(Number.POSITIVE_INFINITY);
  append(writer);
  assert.equal(reader.last?.entry, 1);
  assert.deepEqual([...reader.commitsBehind()], []);
  reader.skipTo(Number.POSITIVE_INFINITY);
  assert.deepEqual([reader.last?.entry, reader.isWhole], [2, true]);
  writer.close();
});

test('a reader follows a segment that closes shorter than it was', () => {
  const folder = testFolder();
  const writer = writerOn(folder, SMALL);
  append(writer, 'a');
  append(writer, 'b');
  const parts = entriesAfter(folder, null);
  parts.next();
  writer.append(lineOf(randomBytes(4000).toString('hex')));
  parts.next();
  writer.rollback();
  for (const line of ['c', 'd', 'e']) append(writer, randomBytes(100).toString('hex'), line);
  writer.close();
  assert.ok(listSegments(folder).length > 1);
  assert.equal([...parts].filter(({ part }) => part.commit !== null).length, 4);
});

test('another version of the program starts a segment', () => {
  const folder = testFolder();
  write(folder, ['a']);
  const { last, segment } = findTail(folder);
  const writer = logWriter({ folder }, { last, segment: segment && { ...segment, program: '0.0.1' } });
  append(writer, 'b');
  writer.close();
  const begins = listSegments(folder).map(({ firstEntry }) => firstEntry);
  assert.deepEqual(begins, [1, 2]);
  assert.deepEqual(entriesOf(folder), { 1: ['a'], 2: ['b'] });
});

/** Cuts what is behind the last entry. @returns its number */
function trustedEnd(folder: string): number | undefined {
  const tail = findTail(folder);
  trustTail(folder, tail);
  return tail.last?.entry;
}

test('a torn end is cut anywhere, and the entries before it stay', () => {
  const folder = testFolder();
  write(folder, ['a']);
  const { size } = fs.statSync(last(folder));
  const writer = writerOn(folder);
  append(writer, 'b', 'c');
  writer.close();
  const whole = fs.readFileSync(last(folder));
  for (let bytes = size; bytes < whole.length; bytes += 2) {
    const torn = whole.subarray(0, bytes);
    // A file may have its length before its content.
    fs.writeFileSync(last(folder), Buffer.concat([torn, Buffer.alloc(whole.length - bytes)]));
    assert.equal(findTail(folder).last?.entry, 1);
    fs.writeFileSync(last(folder), torn);
    assert.equal(trustedEnd(folder), 1);
    assert.equal(fs.statSync(last(folder)).size, size);
    write(folder, ['d']);
    assert.deepEqual(entriesOf(folder), { 1: ['a'], 2: ['d'] });
  }
});

test('a segment without a header after a crash is removed', () => {
  const folder = testFolder();
  write(folder, ['a']);
  const stump = join(folder, '000000000002.zst');
  const half = encodeFrame('header', '{}\n').subarray(0, 22);
  for (const bytes of [Buffer.alloc(0), Buffer.from([0x50, 0x2a]), half]) {
    fs.writeFileSync(stump, bytes);
    assert.equal(trustedEnd(folder), 1);
    assert.equal(fs.existsSync(stump), false);
  }
  assert.deepEqual(fs.readdirSync(folder), ['000000000001.zst']);
});

test('a flipped bit before the end is damage, not a torn end', () => {
  const folder = testFolder();
  write(folder, ['a', 'b', 'c', 'd', 'e']);
  const whole = fs.readFileSync(last(folder));
  let damaged = 0;
  for (let at = 0; at < whole.length; at += 11) {
    const flipped = Buffer.from(whole);
    flipped[at] = (flipped[at] ?? 0) ^ 0x10;
    fs.writeFileSync(last(folder), flipped);
    try {
      // After the last entry but one, it cannot be distinguished from a torn end.
      assert.equal(findTail(folder).last?.entry, 4);
    } catch (error) {
      assert.ok(error instanceof LogDamage);
      damaged += 1;
      assert.ok(doubtfulEnd(folder) >= 4, 'no complete entry is cut, even with a matching database');
    }
  }
  assert.ok(damaged > 20);
});

test('a missing segment, or one of another history, is damage', () => {
  const [folder, other] = [testFolder(), testFolder()];
  for (const each of [folder, other]) write(each, long(12), SMALL);
  const [{ path: first } = assert.fail(), { path: second, firstEntry } = assert.fail()] =
    listSegments(folder);
  const [firstBytes, secondBytes] = [fs.readFileSync(first), fs.readFileSync(second)];
  fs.rmSync(second);
  assert.throws(() => entriesOf(folder), LogDamage);
  fs.truncateSync(first, 100);
  fs.writeFileSync(second, secondBytes);
  assert.throws(() => entriesOf(folder), LogDamage);
  fs.rmSync(first);
  assert.throws(() => entriesOf(folder), /earlier entries are missing/);
  fs.writeFileSync(first, firstBytes);
  const same = listSegments(other).find((segment) => segment.firstEntry === firstEntry);
  fs.copyFileSync(same?.path ?? '', second);
  assert.throws(() => entriesOf(folder), /does not follow/);
});

test('a mark is known, of another history, or beyond the end', () => {
  const folder = testFolder();
  for (const mark of write(folder, long(8), SMALL)) {
    assert.equal(placeOf(folder, mark), 'known');
    assert.equal(placeOf(folder, { ...mark, id: 'f'.repeat(16) }), 'foreign');
  }
  assert.equal(placeOf(folder, { entry: 9, id: '0'.repeat(16) }), 'beyond');
  assert.equal(placeOf(join(folder, 'none'), { entry: 1, id: '0'.repeat(16) }), 'beyond');
});

test('what is another log, and a newer format, are refused', () => {
  const folder = testFolder();
  write(folder, ['a']);
  const putHeader = (header: object) =>
    fs.writeFileSync(
      last(folder),
      encodeFrame('header', `${JSON.stringify({ ...header, first_entry: 1 })}\n`),
    );
  putHeader({ wirewatch_log: 'access', format: 1, program: '1' });
  assert.throws(() => findTail(folder), LogDamage);
  putHeader({ wirewatch_log: 'detections', format: 2, program: '9' });
  const newer = /format 2, but this version of Wirewatch supports format 1.*[Vv]ersion 9/;
  assert.throws(() => findTail(folder), newer);
});

test('an entry whose frames do not add up is damage', () => {
  const folder = testFolder();
  write(folder, ['a', 'b']);
  const after = findTail(folder).last?.id;
  const whole = fs.readFileSync(last(folder));
  for (const frames of [0, 1]) {
    const commit = { entry: 3, id: 'x', after, at: '', operation: OPERATION, frames, checksum: 0 };
    fs.writeFileSync(last(folder), whole);
    fs.appendFileSync(last(folder), encodeFrame('lines', lineOf('strange')));
    fs.appendFileSync(last(folder), encodeFrame('commit', `${JSON.stringify({ commit })}\n`));
    assert.throws(() => findTail(folder), LogDamage);
  }
});

test('finding the end of a long log does not unpack all entries', () => {
  const folder = testFolder();
  write(folder, long(200));
  let unpacked = 0;
  using _ = patchedAll(zlib, ['zstdDecompressSync'], (unpack, args) => {
    unpacked += 1;
    return unpack(...args);
  });
  assert.equal(findTail(folder).last?.entry, 200);
  assert.ok(unpacked > 0 && unpacked < 5, `${unpacked}`);
});

/** Applies rows of one entry, and makes the database refuse the commit after the entry is durable. */
function applyRefused(history: History): void {
  using _ = beforeCommit(history.db(), () => {
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  });
  assert.throws(() => history.apply(rowsFrom(6000, 1)), { code: 'SQLITE_FULL' });
}

test('of an entry that is not complete, nothing is applied with the refused ones before it', () =>
  withHistory(async (history) => {
    const { log } = history.folder;
    await history.restart();
    applyRefused(history);
    const mark = readLogMark(history.db());
    const path = listSegments(log).at(-1)?.path ?? '';
    const { size } = fs.statSync(path);
    fs.appendFileSync(path, encodeFrame('lines', '{"delete":"delivery","row":{"first_position":1}}\n'));
    assert.throws(() => applyPending(history.db(), log), /the log ends within an entry/);
    assert.deepEqual(readLogMark(history.db()), mark);
    fs.truncateSync(path, size);
    assert.equal(applyPending(history.db(), log), 1);
  }));

test('a copy ends at the state of the database, not of the log', () =>
  withHistory(async (history) => {
    const { root, log, secret } = history.folder;
    const target = testFolder();
    openAccess(root, { create: true }).close();
    fs.writeFileSync(secret, Buffer.alloc(32, 7));
    await history.restart();
    const mark = readLogMark(history.db());
    applyRefused(history);
    await copyTo(target, root);
    const tail = findTail(log).last;
    assert.equal(tail?.entry, (mark?.entry ?? 0) + 1);
    assert.equal((await logOf(target)).last, mark?.id);
    history.writer().applyPending();
    await copyTo(target, root);
    assert.equal((await logOf(target)).last, tail?.id);
  }));
