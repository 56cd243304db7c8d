/** Starts that find a half-made database, a draft, of an earlier start. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { readLogMarkOf } from '../../src/store/log-mark.ts';
import { assertSameContent, contentOfDetections } from '../support/database-content.ts';
import { rowsFrom, withHistory } from '../support/history.ts';
import { recordFile } from '../support/scrub.ts';

class Killed extends Error {}

test('an interrupted rebuild begins again: a power cut may have taken any page of its draft', () =>
  withHistory(async (history) => {
    await history.restart();
    history.apply(rowsFrom(1, 20), { with: recordFile });
    history.stop();
    const { root, detections } = history.folder;
    const content = contentOfDetections(root);
    assert.ok(content.ingest_file?.length);
    const draft = `${detections}-draft`;
    copyFileSync(detections, draft);
    rmSync(detections);
    // A page that was not written: no index shows that it is missing.
    const db = openDatabase(draft, 'write', DETECTIONS_SCHEMA);
    db.exec('DELETE FROM export_window; DELETE FROM ingest_file');
    db.close();
    const { applied } = await history.restart();
    history.stop();
    assert.equal(applied, readLogMarkOf(detections)?.entry);
    assertSameContent(contentOfDetections(root), content);
    assert.ok(!existsSync(draft));
  }));

test('a rebuild that is stopped leaves no draft, and the next start makes all of it', () =>
  withHistory(async (history, content) => {
    const { root, detections } = history.folder;
    rmSync(detections);
    const stop = async () => {
      throw new Killed();
    };
    await assert.rejects(history.restart({ between: stop }), Killed);
    assert.ok(!existsSync(detections) && !existsSync(`${detections}-draft`));
    await history.restart();
    history.stop();
    assertSameContent(contentOfDetections(root), content);
  }));
