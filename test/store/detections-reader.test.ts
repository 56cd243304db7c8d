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
  assert.equal(reader.isReadable(), false);
  renameSync(`${path}-away`, path);
  assert.ok(reader.isReadable() && reader.db().open);
  reader.close();
  assert.throws(reader.db, { code: 'failed' });
});
