/** An entry in the log that the database refused to commit, as on a full disk. */
import assert from 'node:assert/strict';
import { appendFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { applyPending } from '../../src/log/apply-log.ts';
import { encodeFrame } from '../../src/log/frame.ts';
import { findTail } from '../../src/log/log-reader.ts';
import { listSegments } from '../../src/log/segment.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { openAccess } from '../support/access.ts';
import { copyTo, logOf } from '../support/copy-at.ts';
import { beforeCommit, type History, rowsFrom, withHistory } from '../support/history.ts';
import { testFolder } from '../support/test-folder.ts';

/** Applies rows of one entry, and makes the database refuse the commit after the entry is durable. */
function applyRefused(history: History): void {
  using _ = beforeCommit(history.db(), () => {
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  });
  assert.throws(() => history.apply(rowsFrom(6000, 1)), { code: 'SQLITE_FULL' });
}

test('of an entry that is not complete, nothing is applied with the refused ones before it', () =>
  withHistory(async (history) => {
    const { log } = history.folder;
    await history.restart();
    applyRefused(history);
    const mark = readLogMark(history.db());
    const path = listSegments(log).at(-1)?.path ?? '';
    const { size } = statSync(path);
    appendFileSync(path, encodeFrame('lines', '{"delete":"delivery","row":{"first_position":1}}\n'));
    assert.throws(() => applyPending(history.db(), log), /the log ends within an entry/);
    assert.deepEqual(readLogMark(history.db()), mark);
    truncateSync(path, size);
    assert.equal(applyPending(history.db(), log), 1);
  }));

test('a copy ends at the state of the database, not of the log', () =>
  withHistory(async (history) => {
    const { root, log, secret } = history.folder;
    const target = testFolder();
    openAccess(root, { create: true }).close();
    writeFileSync(secret, Buffer.alloc(32, 7));
    await history.restart();
    const mark = readLogMark(history.db());
    applyRefused(history);
    await copyTo(target, root);
    const tail = findTail(log).last;
    assert.equal(tail?.entry, (mark?.entry ?? 0) + 1);
    assert.equal((await logOf(target)).last, mark?.id);
    history.writer().applyPending();
    await copyTo(target, root);
    assert.equal((await logOf(target)).last, tail?.id);
  }));
