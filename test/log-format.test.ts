/**
 * Logs that were recorded once, one of each format: whatever program reads them, what comes out is what was recorded.
 *
 * `test/log-format-1` was made by version 0.1.0: windows of both exports, one that failed and was reset, corrections, a
 * rescoring, a backfill, a replay under a licence, a subscription and an account that were removed, a revoked key.
 */
import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAccess } from '../src/history/access.ts';
import { recoverDetections } from '../src/history/recover.ts';
import { dataFolder } from '../src/store/folder.ts';
import { inFolder } from './support/program.ts';
import { type Recorded, recordOf } from './support/recorded.ts';

const FIXTURE = join(import.meta.dirname, 'log-format-1');

test('a log of format 1 comes out as it was recorded', () =>
  inFolder(async (folder) => {
    for (const name of ['log', 'access-log'])
      cpSync(join(FIXTURE, name), join(folder, name), { recursive: true });
    const { db, log } = await recoverDetections({
      folder: dataFolder(folder),
      program: 'a later one',
      onReadable: () => {},
      onBegin: () => {},
      onProgress: () => {},
      between: async () => {},
    });
    log.close();
    db.close();
    openAccess(folder, { operation: { kind: 'test' } }).close();
    const recorded: Recorded = JSON.parse(readFileSync(join(FIXTURE, 'recorded.json'), 'utf8'));
    assert.ok(recorded.changes.length > 10 && recorded.detections.length > 7);
    const found: Recorded = JSON.parse(JSON.stringify(recordOf(folder)));
    assert.deepEqual(found.changes, recorded.changes);
    assert.deepEqual(found.detections, recorded.detections);
    for (const [table, rows] of Object.entries(recorded.tables)) {
      assert.equal(found.tables[table]?.length, rows.length, table);
      // A later version may have columns besides.
      for (const [at, row] of rows.entries())
        assert.deepEqual(
          { ...Object(found.tables[table]?.[at]), ...Object(row) },
          found.tables[table]?.[at],
          table,
        );
    }
  }));
