/** The journal: what it says after any end of it was cut off. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import {
  appendChanged,
  appendEntry,
  appendKeyRevoked,
  appendPosition,
  appendRestored,
  readJournalEnd,
} from '../src/store/journal.ts';
import { type JournalMark, journalIdentity, journalLines, whyNotFrom } from '../src/store/journal-lines.ts';

let folder = '';
let path = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  path = join(folder, 'journal');
});
afterEach(() => rmSync(folder, { recursive: true }));

const AT_MS = Date.parse('2026-11-21T12:00:00Z');
const applied = (number: number, position: number) =>
  appendEntry(path, { applied: number, archived: `archive/2026-11-21/${number}.csv`, position });
const isJournaled = (number: number) => [...journalLines(path)].some(({ entry }) => entry.applied === number);

test('a journal that is not there, or empty, says nothing', () => {
  assert.deepEqual(readJournalEnd(path), { position: 0, file: 0 });
  assert.equal(isJournaled(1), false);
  writeFileSync(path, '');
  assert.deepEqual(readJournalEnd(path), { position: 0, file: 0 });
});

test('each line is a JSON object that says what it is of, the first one names the journal, only its owner may read it', () => {
  appendPosition(path, 100);
  applied(1, 100);
  appendKeyRevoked(path, 'aaaaaaaaaaaa', AT_MS);
  appendChanged(path, 'subscription 7003 added', AT_MS);
  appendRestored(path, 'the journal was lost', AT_MS);
  const [first, ...lines] = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(Object.keys(first), ['journal']);
  assert.match(first.journal, /^[0-9a-f-]{36}$/);
  assert.equal(journalIdentity(path), first.journal);
  assert.deepEqual(lines, [
    { position: 100 },
    { applied: 1, archived: 'archive/2026-11-21/1.csv', position: 100 },
    { key_revoked: 'aaaaaaaaaaaa', at: '2026-11-21T12:00:00Z' },
    { changed: 'subscription 7003 added', at: '2026-11-21T12:00:00Z' },
    { restored: '2026-11-21T12:00:00Z', proven: false, reason: 'the journal was lost' },
  ]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readJournalEnd(path), { position: 100, file: 1 });
});

test('the highest numbers count, wherever they stand', () => {
  applied(7, 500);
  applied(5, 400);
  appendPosition(path, 300);
  assert.deepEqual(readJournalEnd(path), { position: 500, file: 7 });
  assert.equal(isJournaled(5), true);
  assert.equal(isJournaled(6), false);
});

test('the parts of a long backfill do not hide that a later file was applied', () => {
  appendEntry(path, { began: 5, position: 100 });
  appendEntry(path, { applied: 6, reading: {}, position: 200 });
  const part = `${JSON.stringify({ part: 5, position: 300, rules: 'x'.repeat(1000) })}\n`;
  appendFileSync(path, part.repeat(200));
  assert.deepEqual(readJournalEnd(path), { position: 300, file: 6 });
  appendEntry(path, { applied: 5, position: 300 });
  assert.deepEqual(readJournalEnd(path), { position: 300, file: 6 });
});

test('a line that was cut off is ended by the next one, and swallows nothing', () => {
  appendPosition(path, 100);
  applied(1, 100);
  const whole = statSync(path).size;
  applied(2, 200);
  for (let size = whole + 1; size < whole + 40; size += 3) {
    truncateSync(path, size);
    assert.deepEqual(readJournalEnd(path), { position: 100, file: 1 });
    assert.equal(isJournaled(2), false);
    appendPosition(path, 150);
    assert.deepEqual(readJournalEnd(path), { position: 150, file: 1 });
    const last = readFileSync(path, 'utf8').trimEnd().split('\n').at(-1);
    assert.equal(last, '{"position":150}');
    truncateSync(path, whole);
    applied(2, 200);
  }
});

test('lines that mean nothing are passed over', () => {
  applied(3, 300);
  appendFileSync(
    path,
    'no json\n[]\n7\nnull\n"text"\n{"position":"9"}\n{"position":1e300}\n{"applied":-0.5}\n\u0000\u0000\n',
  );
  assert.deepEqual(readJournalEnd(path), { position: 300, file: 3 });
});

test('a long run of other lines does not hide what stands before it', () => {
  applied(3, 300);
  for (let size = 0; size < 3 * 64 * 1024; size += 60)
    appendFileSync(path, `{"key_revoked":"${'a'.repeat(12)}","at":"x"}\n`);
  assert.deepEqual(readJournalEnd(path), { position: 300, file: 3 });
  assert.equal(isJournaled(3), true);
  assert.equal(isJournaled(4), false);
});

test('wherever a journal is cut off, it says what its whole lines say', () => {
  const entry = fc.record({
    position: fc.integer({ min: 1, max: 1e15 }),
    applied: fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 20 }), fc.nat(), (entries, at) => {
      const lines = entries.map((one) => `${JSON.stringify(one)}\n`);
      const text = lines.join('');
      const cut = text.slice(0, at % (text.length + 1));
      writeFileSync(path, cut);
      // The line that was cut counts when all of it but its end is there.
      const whole = entries.filter((_, index) => cut.length >= lines.slice(0, index + 1).join('').length - 1);
      assert.deepEqual(readJournalEnd(path), {
        position: Math.max(0, ...whole.map(({ position }) => position)),
        file: Math.max(0, ...whole.map((one) => one.applied ?? 0)),
      });
    }),
  );
});

test('a mark is known again where its line ends, and nowhere else', () => {
  const marks: JournalMark[] = [];
  for (let number = 1; number <= 30; number += 1) marks.push(applied(number, number * 10));
  assert.deepEqual(
    [...journalLines(path)].slice(1).map(({ mark }) => mark),
    marks,
  );
  for (const mark of marks) assert.equal(whyNotFrom(path, mark), null);
  const [one, other] = [marks[3], marks[4]];
  assert.ok(one !== undefined && other !== undefined);
  assert.deepEqual(
    [...journalLines(path, one.bytes)].map(({ entry }) => entry.applied),
    marks.slice(4).map((_, index) => index + 5),
  );
  assert.match(whyNotFrom(path, { ...one, line: other.line }) ?? '', /not as the database knows it/);
  assert.match(whyNotFrom(path, { ...one, journal: null }) ?? '', /another one/);
  truncateSync(path, other.bytes - 1);
  assert.equal(whyNotFrom(path, one), null);
  assert.match(whyNotFrom(path, other) ?? '', /shorter/);
  writeFileSync(path, '');
  assert.match(whyNotFrom(path, one) ?? '', /empty/);
  rmSync(path);
  assert.match(whyNotFrom(path, one) ?? '', /missing/);
});

test('a journal of the first version goes on without a name', () => {
  writeFileSync(path, '{"position":5}\n');
  const mark = applied(1, 10);
  assert.equal(mark.journal, null);
  assert.equal(journalIdentity(path), null);
  assert.equal(whyNotFrom(path, mark), null);
});

test('lines longer than what is read at a time are read whole', () => {
  const long = 'é'.repeat(700_000);
  appendEntry(path, { note: long });
  const mark = appendEntry(path, { note: `${long}2` });
  assert.deepEqual(
    [...journalLines(path)].slice(1).map(({ entry }) => entry.note === long || entry.note === `${long}2`),
    [true, true],
  );
  assert.equal(whyNotFrom(path, mark), null);
});
