/** An entry that the log has and the database has refused to commit, as a full disk does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from '../src/store/database.ts';
import { createHistory, type History, type HistoryRow } from './support/history.ts';

const rows = (from: number): HistoryRow[] => [{ content_type: 'text', row: { article_id: from } }];

interface Delivery {
  readonly delivered_at: number | null;
}

function deliveries(db: Database): Delivery[] {
  return db.prepare<[], Delivery>('SELECT delivered_at FROM delivery ORDER BY first_position').all();
}

/** Applies rows, and has the database refuse the commit once the entry is decided. */
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

test('what was applied late was delivered when it could be seen, not before', async () => {
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
