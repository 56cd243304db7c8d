/** A file that is written anew has nothing of deleted rows, also where the split of a page left a copy of one. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DELETE_RESCORED, DELETE_STREAM_ROWS } from '../../src/log/detection-rows.ts';
import { checkpoint, closeDetections, openDetections, rewrite } from '../../src/store/checkpoint.ts';
import { type Database, openDatabase, writing } from '../../src/store/database.ts';
import { placesOf } from '../../src/store/stream-place.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { testFolder } from '../support/test-folder.ts';

const STREAMS = [1, 2, 3, 4];
const REMOVED = 3;
const TRANSACTIONS = 300;
const ROWS = 20;

const INSERT = `
  INSERT INTO stream_row (place, position, version, band, score, print, article_id, body, checksum)
  VALUES (:place, :position, 1, 1, 50, 0, 1, :body, 0)`;
const RESCORE = 'INSERT OR REPLACE INTO rescored (place, body, checksum) VALUES (?, ?, 0)';

/** Rows of random sizes, that arrive for all streams in turn: so pages in the middle are split again and again. */
function fill(db: Database): void {
  const prng = seededPrng(3, 'rows');
  const [insert, rescore] = [db.prepare(INSERT), db.prepare(RESCORE)];
  const rows = new Map(STREAMS.map((ordinal) => [ordinal, 0]));
  let position = 0;
  for (let number = 0; number < TRANSACTIONS; number += 1)
    writing(db, () => {
      for (let row = 0; row < ROWS; row += 1) {
        const ordinal = prng.pick(STREAMS);
        const sequence = (rows.get(ordinal) ?? 0) + 1;
        rows.set(ordinal, sequence);
        position += 1;
        const { first } = placesOf(ordinal);
        const body = `{"of":"stream ${ordinal}"}`.padEnd(400 + prng.below(900), 'x');
        insert.run({ place: first + sequence, position, body });
        if (prng.chance(0.3)) rescore.run(first + 1 + prng.below(sequence), body);
      }
    });
}

test('a rewritten file has nothing of deleted rows, which the splits of pages leave otherwise', () => {
  const path = join(testFolder(), 'detections.db');
  const countIn = (ordinal: number) => readFileSync(path, 'latin1').split(`"stream ${ordinal}"`).length - 1;
  const db = openDetections(path);
  fill(db);
  for (const sql of [DELETE_RESCORED, DELETE_STREAM_ROWS])
    db.prepare(sql).run({ ...placesOf(REMOVED), limit: TRANSACTIONS * ROWS });
  checkpoint(db);
  assert.ok(countIn(REMOVED) > 0, 'nothing to be rid of');
  const others = countIn(REMOVED + 1);
  {
    // SQLite leaves the file as it is until they are gone.
    using reader = openDatabase(path, 'read');
    reader.exec('BEGIN; SELECT 1 FROM stream_row');
    assert.match(String(rewrite(db)), /a long read of detections\.db/);
    assert.ok(countIn(REMOVED) > 0);
  }
  assert.equal(rewrite(db), null);
  assert.equal(countIn(REMOVED), 0);
  assert.ok(countIn(REMOVED + 1) > others / 2);
  closeDetections(db);
});
