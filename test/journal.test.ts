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
  appendApplied,
  appendKeyRevoked,
  appendPosition,
  appendReplayed,
  isJournaled,
  readJournalEnd,
} from '../src/store/journal.ts';

let folder = '';
let path = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  path = join(folder, 'journal');
});
afterEach(() => rmSync(folder, { recursive: true }));

const AT_MS = Date.parse('2026-11-21T12:00:00Z');
const applied = (number: number, position: number) =>
  appendApplied(
    path,
    { number, archived: `archive/2026-11-21/${number}.csv`, sha256: 'ab' },
    position,
    AT_MS,
  );

test('a journal that is not there, or empty, says nothing', () => {
  assert.deepEqual(readJournalEnd(path), { position: 0, file: 0 });
  assert.equal(isJournaled(path, 1), false);
  writeFileSync(path, '');
  assert.deepEqual(readJournalEnd(path), { position: 0, file: 0 });
});

test('each line is a JSON object that says what it is of, readable by its owner alone', () => {
  appendPosition(path, 100);
  applied(1, 100);
  appendReplayed(path, 1, 120, AT_MS);
  appendKeyRevoked(path, 'aaaaaaaaaaaa', AT_MS);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [
      { position: 100 },
      {
        applied: 1,
        archived: 'archive/2026-11-21/1.csv',
        sha256: 'ab',
        position: 100,
        at: '2026-11-21T12:00:00Z',
      },
      { replayed: 1, position: 120, at: '2026-11-21T12:00:00Z' },
      { key_revoked: 'aaaaaaaaaaaa', at: '2026-11-21T12:00:00Z' },
    ],
  );
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readJournalEnd(path), { position: 120, file: 1 });
});

test('the highest numbers count, wherever they stand', () => {
  applied(7, 500);
  applied(5, 400);
  appendPosition(path, 300);
  assert.deepEqual(readJournalEnd(path), { position: 500, file: 7 });
  assert.equal(isJournaled(path, 5), true);
  assert.equal(isJournaled(path, 6), false);
});

test('a line that was cut off is ended by the next one, and swallows nothing', () => {
  appendPosition(path, 100);
  applied(1, 100);
  const whole = statSync(path).size;
  applied(2, 200);
  for (let size = whole + 1; size < whole + 40; size += 3) {
    truncateSync(path, size);
    assert.deepEqual(readJournalEnd(path), { position: 100, file: 1 });
    assert.equal(isJournaled(path, 2), false);
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
  assert.equal(isJournaled(path, 3), true);
  assert.equal(isJournaled(path, 4), false);
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
