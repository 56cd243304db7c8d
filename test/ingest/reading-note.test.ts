/** The note about the progress of a long file, for `wirewatch ingest status`. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ReadingNotes, readReadingNote } from '../../src/ingest/reading-note.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { inFolder } from '../support/program.ts';

test('the progress note of a long file is written at most once a second, and removed at its end', () =>
  inFolder(async (root) => {
    const folder = dataFolder(root);
    let monotonicMs = 0;
    const notes = new ReadingNotes(folder, () => monotonicMs);
    const read = () => readReadingNote(folder, Date.now());
    notes.note('newswire.x.ndjson', 19_999, false);
    assert.equal(read(), null, 'a short file has no note');
    notes.note('newswire.x.ndjson', 20_000, false);
    assert.deepEqual(read(), { file: 'newswire.x.ndjson', rows: 20_000 });
    notes.note('newswire.x.ndjson', 30_000, false);
    assert.equal(read()?.rows, 20_000);
    monotonicMs = 1000;
    notes.note('newswire.x.ndjson', 40_000, false);
    assert.equal(read()?.rows, 40_000);
    assert.equal(readReadingNote(folder, Date.now() + 120_000), null, 'an old note is ignored');
    notes.note('newswire.x.ndjson', 50_000, true);
    assert.equal(read(), null);
    writeFileSync(join(root, 'reading.json'), '{"file":');
    assert.equal(read(), null);
    new ReadingNotes(folder).close();
    assert.ok(
      !existsSync(join(root, 'reading.json')),
      'the next start must delete the note of a crashed run',
    );
    rmSync(root, { recursive: true });
    assert.doesNotThrow(() => new ReadingNotes(folder).note('newswire.x.ndjson', 20_000, false));
    mkdirSync(root);
  }));
