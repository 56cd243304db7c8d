/** What a database lacks of the journal: operations whose commit failed, lines that are gone, raises, restores. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { StreamWriter } from '../src/ingest/stream-writer.ts';
import { type Survey, surveyJournal } from '../src/ingest/survey.ts';
import type { Database } from '../src/store/database.ts';
import { DETECTIONS_MIGRATIONS } from '../src/store/detections-schema.ts';
import { appendChanged, appendPosition, appendRestored } from '../src/store/journal.ts';
import { openWriter } from '../src/store/writer.ts';

let folder = '';
let journal = '';
let db: Database;
let writer: StreamWriter;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  journal = join(folder, 'journal');
  db = open('one.db');
  // A broken reference that is noticed at the commit makes that fail, and nothing before it.
  db.exec('CREATE TABLE unfit (id PRIMARY KEY, other REFERENCES unfit (id) DEFERRABLE INITIALLY DEFERRED)');
  db.prepare(
    "INSERT INTO ingest_file (number, name, bytes, outcome, taken_at, report) VALUES (1, 'a', 0, 'failed', 0, '{}')",
  ).run();
  writer = new StreamWriter(db, journal, Date.now, () => {});
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

function open(name: string): Database {
  return openWriter(join(folder, name), DETECTIONS_MIGRATIONS);
}

/** One operation, known again by its number. @param fails whether its commit does, after its line was written */
function operate(looked: number, fails = false): void {
  const work = () => {
    if (fails) db.exec("INSERT INTO unfit VALUES ('somebody', 'nobody')");
  };
  const commit = () =>
    writer.commit(writer.begin(new Set()), work, { kind: 'operation', line: () => ({ looked }) });
  if (fails) assert.throws(commit, /FOREIGN KEY/);
  else commit();
}

/** The database as it is, apart. */
function copy(name: string): Database {
  db.pragma('wal_checkpoint(TRUNCATE)');
  copyFileSync(join(folder, 'one.db'), join(folder, name));
  return open(name);
}

function lacking(survey: Survey): number[] | string {
  if (survey.kind === 'lost') return survey.reason;
  if (survey.kind === 'even') return [];
  return survey.steps.map((step) => (step.kind === 'looked' ? step.line.looked : -1));
}

function surveyOf(of: Database): Survey {
  return surveyJournal(of, journal);
}

test('a line that cannot be understood proves nothing: the journal is of a newer program, or damaged', () => {
  operate(1);
  const older = copy('older.db');
  writer.commit(writer.begin(new Set()), () => {}, {
    kind: 'operation',
    line: () => ({ withdrawn: 7 }),
  });
  const survey = surveyOf(older);
  assert.equal(survey.kind, 'behind');
  assert.deepEqual(survey.kind === 'behind' && survey.doubts.map(({ reason }) => reason), [
    'a line of the journal cannot be understood',
  ]);
  older.close();
});

test('an operation whose commit failed is not among those that are lacking, once another followed', () => {
  operate(1);
  const older = copy('older.db');
  operate(2, true);
  assert.deepEqual(lacking(surveyOf(db)), [2], 'a start does it again');
  operate(3);
  operate(4, true);
  operate(5, true);
  operate(6);
  assert.deepEqual(lacking(surveyOf(db)), []);
  assert.deepEqual(lacking(surveyOf(older)), [3, 6]);
  older.close();
});

test('whichever commits fail, a copy lacks what was committed since, in its order', () => {
  let run = 0;
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 15 }), fc.nat(), (failures, at) => {
      run += 1;
      operate(run * 100);
      const since = at % failures.length;
      let older: Database | null = null;
      const committed: number[] = [];
      for (const [index, fails] of failures.entries()) {
        if (index === since) older = copy(`older-${run}.db`);
        if (index % 4 === 3) appendPosition(journal, 1);
        operate(run * 100 + index + 1, fails);
        if (!fails && index >= since) committed.push(run * 100 + index + 1);
      }
      operate(run * 100 + 99);
      assert.ok(older !== null);
      assert.deepEqual(lacking(surveyOf(older)), [...committed, run * 100 + 99]);
      const survey = surveyOf(older);
      assert.ok(survey.kind === 'behind' && survey.doubts.length === 0);
      older.close();
    }),
    { numRuns: 30 },
  );
});

test('a line that is gone, wherever it stood, raises a doubt or ends what is lacking', () => {
  operate(1);
  const older = copy('older.db');
  for (let looked = 2; looked <= 6; looked += 1) operate(looked);
  const lines = readFileSync(journal, 'utf8').split('\n');
  for (let gone = 2; gone <= 6; gone += 1) {
    writeFileSync(journal, lines.filter((line) => !line.includes(`"looked":${gone},`)).join('\n'));
    const survey = surveyOf(older);
    assert.ok(survey.kind === 'behind');
    assert.deepEqual(
      [...new Set(survey.doubts.map(({ reason }) => reason))],
      gone === 6 ? [] : ['the journal lacks lines'],
    );
    assert.equal(lacking(surveyOf(db)), 'the journal is shorter than the database knows it');
  }
  older.close();
});

test('what a restore says is a doubt, and changes are told by where they stand', () => {
  operate(1);
  const older = copy('older.db');
  operate(2);
  const changed = appendChanged(journal, 'subscription 7003 added', Date.now());
  operate(3);
  const restored = appendRestored(journal, 'the journal was lost', Date.now());
  const survey = surveyOf(older);
  assert.ok(survey.kind === 'behind');
  assert.deepEqual(lacking(survey), [2, 3]);
  assert.deepEqual(survey.changes, [changed.bytes]);
  assert.deepEqual(survey.doubts, [{ at: restored.bytes, reason: 'the journal was lost' }]);
  const now = surveyOf(db);
  assert.ok(now.kind === 'behind', 'even where no operation is lacking');
  assert.deepEqual([now.steps, now.doubts.length], [[], 1]);
  older.close();
});

test('a journal that does not go on from the mark says nothing', () => {
  operate(1);
  operate(2);
  const text = readFileSync(journal, 'utf8');
  writeFileSync(journal, text.replace('"looked":2', '"looked":3'));
  assert.equal(lacking(surveyOf(db)), 'the journal is not as the database knows it');
  writeFileSync(journal, text.replace(/"journal":"./, '"journal":"-'));
  assert.equal(lacking(surveyOf(db)), 'the journal is another one than the database knows');
  rmSync(journal);
  assert.equal(lacking(surveyOf(db)), 'the journal is missing');
});

test('a new database beside no journal, or one of commands alone, lacks nothing', () => {
  const fresh = open('fresh.db');
  assert.deepEqual(surveyOf(fresh), { kind: 'even', mark: null });
  appendChanged(journal, 'account acme added', Date.now());
  assert.equal(surveyOf(fresh).kind, 'even');
  operate(1);
  assert.deepEqual(lacking(surveyOf(fresh)), [1], 'one that was deleted lacks everything');
  fresh.close();
});
