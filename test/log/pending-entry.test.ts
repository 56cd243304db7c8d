/** An entry in the log that the database refused to commit, as on a full disk. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { appendFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { openAccess } from '../../src/auth/open-access.ts';
import { applyPending } from '../../src/log/apply-entries.ts';
import { encodeFrame } from '../../src/log/frame.ts';
import { findTail } from '../../src/log/log-reader.ts';
import { listSegments } from '../../src/log/segment.ts';
import type { Database } from '../../src/store/database.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { copyTo, logOf } from '../support/copy-at.ts';
import { createHistory, type History, type HistoryRow } from '../support/history.ts';

const rows = (from: number): HistoryRow[] => [{ content_type: 'text', row: { article_id: from } }];

interface Delivery {
  readonly delivered_at: number | null;
}

function deliveries(db: Database): Delivery[] {
  return db.prepare<[], Delivery>('SELECT delivered_at FROM delivery ORDER BY first_position').all();
}

/** Applies rows, and makes the database refuse the commit after the entry is durable. */
function applyRefused(history: History, refused: readonly HistoryRow[]): void {
  const db = history.db();
  const exec = db.exec.bind(db);
  db.exec = (sql) => {
    if (sql === 'COMMIT') throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
    return exec(sql);
  };
  try {
    assert.throws(() => history.apply(refused), { code: 'SQLITE_FULL' });
  } finally {
    db.exec = exec;
  }
}

test('an entry that is applied late counts as delivered only when it is visible', async () => {
  const history = await createHistory();
  try {
    history.apply(rows(1));
    applyRefused(history, rows(2));
    history.apply(rows(3));
    history.writer().flush();
    const [first, late, last] = deliveries(history.db()).map(({ delivered_at }) => delivered_at ?? 0);
    assert.ok((late ?? 0) > (first ?? 0), `${late} is later than ${first}`);
    assert.ok((last ?? 0) > (late ?? 0), `${last} is later than ${late}`);
  } finally {
    history.delete();
  }
});

test('of an entry that is not complete, nothing is applied with those before it', async () => {
  const history = await createHistory();
  const { log } = history.folder;
  try {
    history.apply(rows(1));
    const mark = readLogMark(history.db());
    applyRefused(history, rows(2));
    const [{ path } = { path: '' }] = listSegments(log);
    const { size } = statSync(path);
    appendFileSync(path, encodeFrame('lines', '{"delete":"delivery","row":{"first_position":1}}\n'));
    assert.throws(() => applyPending(history.db(), log), /the log ends within an entry/);
    assert.deepEqual(readLogMark(history.db()), mark);
    truncateSync(path, size);
    assert.equal(applyPending(history.db(), log), 1);
  } finally {
    history.delete();
  }
});

test('a copy ends at the state of the database, not of the log', async () => {
  const history = await createHistory();
  const { root, log, secret } = history.folder;
  const target = `${root}-copy`;
  try {
    openAccess(root, { create: true, operation: { kind: 'test' } }).close();
    writeFileSync(secret, randomBytes(32));
    history.apply(rows(1));
    const mark = readLogMark(history.db());
    applyRefused(history, rows(2));
    await copyTo(target, root);
    const tail = findTail(log).last;
    assert.equal(tail?.entry, (mark?.entry ?? 0) + 1);
    assert.equal((await logOf(target)).last, mark?.id);
    history.writer().applyPending();
    await copyTo(target, root);
    assert.equal((await logOf(target)).last, tail?.id);
  } finally {
    history.delete();
    rmSync(target, { recursive: true, force: true });
  }
});
