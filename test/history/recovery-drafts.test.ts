/** Starts that find a half-made database, a draft, of an earlier start. */
import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { readLogMarkOf } from '../../src/store/log-mark.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { assertSameContent, contentOfDetections } from '../support/database-content.ts';
import { rowsFrom, withHistory } from '../support/history.ts';
import { recordFile } from '../support/scrub.ts';

class Killed extends Error {}

test('a draft is continued after a kill in a transaction', () =>
  withHistory(async (history) => {
    await history.restart();
    // More rows than one transaction of a rebuild has, and an entry after them.
    history.apply(rowsFrom(2000, 5500));
    history.apply(rowsFrom(8000, 400), { batchRows: 5 });
    history.stop();
    const { root } = history.folder;
    const content = contentOfDetections(root);
    const draft = `${history.folder.detections}-draft`;
    const last = readLogMarkOf(history.folder.detections)?.entry ?? 0;
    rmSync(history.folder.detections);
    let committed = 0;
    const kill = async () => {
      const isInTransaction = committed > 0;
      committed = readLogMarkOf(draft)?.entry ?? 0;
      if (!isInTransaction) return;
      copyFolder(root, `${root}-killed`);
      throw new Killed();
    };
    await assert.rejects(history.restart({ between: kill }), Killed);
    rmSync(root, { recursive: true });
    renameSync(`${root}-killed`, root);
    const { applied } = await history.restart();
    assert.equal(applied, last - committed);
    history.stop();
    assertSameContent(contentOfDetections(root), content);
  }));

test('a draft of another boot of the machine is not continued: a power cut may have taken rows', () =>
  withHistory(async (history) => {
    await history.restart();
    history.apply(rowsFrom(1, 20), { with: recordFile });
    history.stop();
    const { root, detections } = history.folder;
    const content = contentOfDetections(root);
    assert.ok(content.ingest_file?.length);
    const draft = `${detections}-draft`;
    for (const boot of ['', 'another']) {
      renameSync(detections, draft);
      // A page that was not written: no index shows that it is missing.
      const db = openDatabase(draft, 'write', DETECTIONS_SCHEMA);
      db.exec('DELETE FROM export_window; DELETE FROM ingest_file');
      db.close();
      writeFileSync(`${draft}-boot`, boot);
      await history.restart();
      history.stop();
      assertSameContent(contentOfDetections(root), content);
      assert.ok(!existsSync(`${draft}-boot`));
    }
  }));
