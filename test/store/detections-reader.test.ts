/** The connection of requests: released by ingest, opened by the first request, and tried again. */
import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../src/store/database.ts';
import { createDetectionsReader } from '../../src/store/detections-reader.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { testFolder } from '../support/test-folder.ts';

test('a database that cannot be opened once is opened for the next request', () => {
  const path = join(testFolder(), 'detections.db');
  openDatabase(path, 'write', DETECTIONS_SCHEMA).close();
  const reader = createDetectionsReader(path);
  assert.throws(reader.db, { code: 'failed' });
  reader.release();
  renameSync(path, `${path}-away`);
  assert.throws(reader.db, { code: 'SQLITE_CANTOPEN' });
  assert.match(reader.unreadable() ?? '', /^detections.db cannot be read yet: unable to open/);
  renameSync(`${path}-away`, path);
  assert.deepEqual([reader.unreadable(), reader.db().open], [null, true]);
  reader.close();
  assert.throws(reader.db, { code: 'failed' });
  reader.end('another machine serves it');
  // The ingest thread may have been at its start.
  reader.release();
  assert.throws(reader.db, { code: 'unavailable', message: 'another machine serves it' });
});
