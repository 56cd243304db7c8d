/** The log: complete or absent entries, closed segments, torn ends, and damage. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import zlib from 'node:zlib';
import type { Mark } from '../../src/log/format.ts';
import { encodeFrame } from '../../src/log/frame.ts';
import { entriesAfter, findTail, placeOf, trustTail } from '../../src/log/log-reader.ts';
import { LogWriter } from '../../src/log/log-writer.ts';
import { listSegments, SegmentReader } from '../../src/log/segment.ts';
import { LogDamage } from '../../src/store/log-errors.ts';
import { inFolder } from '../support/program.ts';

const OPERATION = { kind: 'test' };
const NOW = Date.UTC(2026, 10, 20);

function writerOn(folder: string, program = '1', segmentBytes = 600): LogWriter {
  const options = { folder, kind: 'detections', program, segmentBytes } as const;
  return new LogWriter(options, findTail(folder));
}

function append(writer: LogWriter, ...lines: string[]): Mark {
  for (const line of lines) writer.append(`${JSON.stringify({ line })}\n`);
  return writer.commit('', OPERATION, NOW);
}

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
    lines.push(...part.lines.map((line) => JSON.parse(line).line));
    if (part.commit === null) continue;
    entries[part.commit.entry] = lines;
    lines = [];
  }
  return entries;
}

const last = (folder: string) => listSegments(folder).at(-1)?.path ?? '';

test('entries are read as written, across segments and restarts', () =>
  inFolder(async (folder) => {
    const first = writerOn(folder);
    append(first, 'a', 'b');
    append(first);
    first.close();
    const second = writerOn(folder);
    const third = append(second, 'c');
    for (let entry = 4; entry <= 12; entry += 1) append(second, `entry ${entry}`.padEnd(100, `${entry}`));
    second.close();
    assert.ok(listSegments(folder).length > 1, 'segments must be closed at their maximum size');
    const all = entriesOf(folder);
    assert.deepEqual(all[1], ['a', 'b']);
    assert.deepEqual(all[2], []);
    assert.deepEqual(Object.keys(all).length, 12);
    assert.deepEqual(Object.keys(entriesOf(folder, third)), Object.keys(all).slice(3));
    assert.equal(findTail(folder).last?.entry, 12);
  }));

test('rolled back lines are in no entry, also in a new segment', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder);
    writer.append('{"line":"never"}\n');
    writer.rollback();
    assert.equal(writer.isPending, false);
    append(writer, 'a');
    writer.append('{"line":"never"}\n');
    writer.rollback();
    append(writer, 'b');
    writer.close();
    assert.deepEqual(entriesOf(folder), { 1: ['a'], 2: ['b'] });
  }));

test('rolled back bytes are cut, however short the next entry', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder, '1', 1_000_000);
    append(writer, 'a');
    writer.append(`${JSON.stringify({ line: randomBytes(3000).toString('hex') })}\n`);
    writer.rollback();
    append(writer, 'b');
    writer.close();
    assert.equal(findTail(folder).segment?.bytes, statSync(last(folder)).size);
    assert.deepEqual(entriesOf(folder), { 1: ['a'], 2: ['b'] });
  }));

test('an entry that is completed while the end is looked for is no damage', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder, '1', 1_000_000);
    append(writer, 'a');
    const [segment] = listSegments(folder);
    assert.ok(segment !== undefined);
    using reader = new SegmentReader(segment);
    writer.append('{"line":"b"}\n');
    reader.skipTo(Number.POSITIVE_INFINITY);
    append(writer);
    assert.equal(reader.last?.entry, 1);
    assert.deepEqual([...reader.commitsBehind()], []);
    reader.skipTo(Number.POSITIVE_INFINITY);
    assert.deepEqual([reader.last?.entry, reader.isWhole], [2, true]);
    writer.close();
  }));

test('a reader follows a segment that closes shorter than it was', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder);
    append(writer, 'a');
    append(writer, 'b');
    const parts = entriesAfter(folder, null);
    parts.next();
    writer.append(`${JSON.stringify({ line: randomBytes(4000).toString('hex') })}\n`);
    parts.next();
    writer.rollback();
    for (const line of ['c', 'd', 'e']) append(writer, randomBytes(100).toString('hex'), line);
    writer.close();
    assert.ok(listSegments(folder).length > 1);
    assert.equal([...parts].filter(({ part }) => part.commit !== null).length, 4);
  }));

test('another version of the program starts a segment', () =>
  inFolder(async (folder) => {
    const one = writerOn(folder);
    append(one, 'a');
    one.close();
    const other = writerOn(folder, '2');
    append(other, 'b');
    other.close();
    assert.deepEqual(
      listSegments(folder).map(({ firstEntry }) => firstEntry),
      [1, 2],
    );
    assert.deepEqual(entriesOf(folder), { 1: ['a'], 2: ['b'] });
  }));

test('a torn end is cut anywhere, and the entries before it stay', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder, '1', 1_000_000);
    append(writer, 'a');
    const { size } = { size: readFileSync(last(folder)).length };
    append(writer, 'b', 'c');
    writer.close();
    const whole = readFileSync(last(folder));
    for (let bytes = size; bytes < whole.length; bytes += 2) {
      const torn = whole.subarray(0, bytes);
      // A file may have its length before its content.
      writeFileSync(last(folder), Buffer.concat([torn, Buffer.alloc(whole.length - bytes)]));
      assert.equal(findTail(folder).last?.entry, 1);
      writeFileSync(last(folder), torn);
      const tail = findTail(folder);
      assert.equal(tail.last?.entry, 1);
      trustTail(folder, tail);
      assert.equal(readFileSync(last(folder)).length, size);
      const next = writerOn(folder, '1', 1_000_000);
      append(next, 'd');
      next.close();
      assert.deepEqual(entriesOf(folder), { 1: ['a'], 2: ['d'] });
    }
  }));

test('a segment without a header after a crash is removed', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder);
    append(writer, 'a');
    writer.close();
    const stump = join(folder, '000000000002.zst');
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from([0x50, 0x2a]),
      encodeFrame('header', '{}\n').subarray(0, 22),
    ]) {
      writeFileSync(stump, bytes);
      const tail = findTail(folder);
      assert.equal(tail.last?.entry, 1);
      trustTail(folder, tail);
      assert.equal(existsSync(stump), false);
    }
    assert.deepEqual(readdirSync(folder), ['000000000001.zst']);
  }));

test('a flipped bit before the end is damage, not a torn end', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder, '1', 1_000_000);
    for (let entry = 0; entry < 5; entry += 1) append(writer, `entry ${entry}`);
    writer.close();
    const whole = readFileSync(last(folder));
    let damaged = 0;
    for (let at = 0; at < whole.length; at += 11) {
      const flipped = Buffer.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ 0x10;
      writeFileSync(last(folder), flipped);
      try {
        const { last: found } = findTail(folder);
        // After the last entry but one, it cannot be distinguished from a torn end.
        assert.equal(found?.entry, 4);
      } catch (error) {
        assert.ok(error instanceof LogDamage);
        damaged += 1;
        assert.ok(
          doubtfulEnd(folder) >= 4,
          'a matching database must not allow cutting before a complete entry',
        );
      }
    }
    assert.ok(damaged > 20);
  }));

test('a missing segment, or one of another history, is damage', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder);
    for (let entry = 1; entry <= 12; entry += 1) append(writer, `${entry}`.padEnd(100, `${entry}`));
    writer.close();
    const segments = listSegments(folder);
    const [, second] = segments;
    assert.ok(second && segments.length > 2);
    const bytes = readFileSync(second.path);
    rmSync(second.path);
    assert.throws(() => entriesOf(folder), LogDamage);
    const first = readFileSync(segments[0]?.path ?? '');
    truncateSync(segments[0]?.path ?? '', 100);
    writeFileSync(second.path, bytes);
    assert.throws(() => entriesOf(folder), LogDamage);
    rmSync(segments[0]?.path ?? '');
    assert.throws(() => entriesOf(folder), /earlier entries are missing/);
    writeFileSync(segments[0]?.path ?? '', first);
    await inFolder(async (other) => {
      const another = writerOn(other);
      for (let entry = 1; entry <= 12; entry += 1) append(another, `${entry}`.padEnd(100, `${entry}`));
      another.close();
      const same = listSegments(other).find(({ firstEntry }) => firstEntry === second.firstEntry);
      copyFileSync(same?.path ?? '', second.path);
      assert.throws(() => entriesOf(folder), /does not follow/);
    });
  }));

test('a mark is known, of another history, or beyond the end', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder);
    const marks = Array.from({ length: 8 }, (_, entry) => append(writer, `${entry}`.padEnd(120, `${entry}`)));
    writer.close();
    for (const mark of marks) {
      assert.equal(placeOf(folder, mark), 'known');
      assert.equal(placeOf(folder, { ...mark, id: 'f'.repeat(16) }), 'foreign');
    }
    assert.equal(placeOf(folder, { entry: 9, id: '0'.repeat(16) }), 'beyond');
    assert.equal(placeOf(join(folder, 'none'), { entry: 1, id: '0'.repeat(16) }), 'beyond');
  }));

test('what is another log, and a newer format, are refused', () =>
  inFolder(async (folder) => {
    append(writerOn(folder), 'a');
    const other = { wirewatch_log: 'access', format: 1, program: '1', first_entry: 1 };
    writeFileSync(last(folder), encodeFrame('header', `${JSON.stringify(other)}\n`));
    assert.throws(() => findTail(folder), LogDamage);
    const header = { wirewatch_log: 'detections', format: 2, program: '9', first_entry: 1 };
    writeFileSync(last(folder), encodeFrame('header', `${JSON.stringify(header)}\n`));
    assert.throws(
      () => findTail(folder),
      /format 2, but this version of Wirewatch supports format 1.*[Vv]ersion 9/,
    );
  }));

test('an entry whose frames do not add up is damage', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder, '1', 1_000_000);
    append(writer, 'a');
    append(writer, 'b');
    writer.close();
    appendFileSync(last(folder), encodeFrame('lines', '{"line":"strange"}\n'));
    const { size } = statSync(last(folder));
    const commit = {
      entry: 3,
      id: 'x',
      after: findTail(folder).last?.id,
      at: '',
      operation: OPERATION,
    };
    appendFileSync(
      last(folder),
      encodeFrame('commit', `${JSON.stringify({ commit: { ...commit, frames: 0, checksum: 0 } })}\n`),
    );
    assert.throws(() => findTail(folder), LogDamage);
    truncateSync(last(folder), size);
    appendFileSync(
      last(folder),
      encodeFrame('commit', `${JSON.stringify({ commit: { ...commit, frames: 1, checksum: 0 } })}\n`),
    );
    assert.throws(() => findTail(folder), LogDamage);
  }));

test('finding the end of a long log does not unpack all entries', () =>
  inFolder(async (folder) => {
    const writer = writerOn(folder, '1', 1_000_000);
    for (let entry = 1; entry <= 200; entry += 1) append(writer, `entry ${entry}`);
    writer.close();
    const unpack = mock.method(zlib, 'zstdDecompressSync');
    syncBuiltinESMExports();
    try {
      assert.equal(findTail(folder).last?.entry, 200);
      assert.ok(unpack.mock.callCount() < 5, `${unpack.mock.callCount()}`);
    } finally {
      unpack.mock.restore();
      syncBuiltinESMExports();
    }
  }));
