/** The search for missing windows, on a real database and a real drop folder, with the test's own clock. */
import assert from 'node:assert/strict';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { EXPORT_NAMES, type ExportName } from '../../src/detection/content-type.ts';
import { dropFolder } from '../../src/drop/drop-folder.ts';
import { waitingWindows } from '../../src/drop/waiting-names.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { DAY_MS, formatWindowStart, HOUR_MS, WINDOW_MS } from '../../src/time.ts';
import { expectFrom, findWindow, listWindows, setWindow } from '../../src/windows/ledger.ts';
import { missingWindowsSearch } from '../../src/windows/overdue-search.ts';
import type { WindowStatus } from '../../src/windows/window-states.ts';
import { streamWriterOn } from '../support/history.ts';
import { testFolder } from '../support/test-folder.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
/** The time from a window's start until it is missing. */
const MISSING_AFTER = DAY_MS + 2 * WINDOW_MS;

let folder: string;
let db: Database;
let nowMs: number;
let searchMissing: ReturnType<typeof missingWindowsSearch>;

function open(exports: readonly ExportName[] = EXPORT_NAMES): void {
  db = openDatabase(join(folder, 'detections.db'), 'write', DETECTIONS_SCHEMA);
  const drop = dropFolder(join(folder, 'drop'), { quiet_ms: 0, truncated_seconds: 0 });
  drop.prepare();
  const writer = streamWriterOn(db, folder, { now: () => nowMs });
  searchMissing = missingWindowsSearch(
    db,
    exports,
    (work) => writer.write({ kind: 'test' }, work),
    (exportName) => waitingWindows(drop, exportName),
  );
}

beforeEach(() => {
  folder = testFolder();
  nowMs = START;
  open();
});

afterEach(() => db.close());

function reopen(exports?: readonly ExportName[]): void {
  db.close();
  open(exports);
}

/** A window counted from {@link START} was read, or failed. */
function finish(count: number, exportName: ExportName = 'newswire', status: WindowStatus = 'done'): void {
  const window_start = START + count * WINDOW_MS;
  setWindow(db, { export: exportName, window_start, status, since: nowMs, file: 1 });
}

const find = (count: number) => findWindow(db, 'newswire', START + count * WINDOW_MS);

/** Which windows have a status, counted from {@link START}. */
function starts(status: WindowStatus, exportName: ExportName = 'newswire'): number[] {
  const windows = listWindows(db, { export: exportName, status, limit: 1_000_000 });
  return windows.map(({ window_start }) => (window_start - START) / WINDOW_MS).sort((a, b) => a - b);
}

/** Runs the search at a time when no file waits to be read. */
function search(ms: number, isSteady = true): void {
  nowMs = ms;
  searchMissing(ms, isSteady);
}

function put(windowStart: number, into = ''): string {
  const name = `${into === '' ? '' : '7.'}newswire.${formatWindowStart(windowStart)}.ndjson`;
  const path = join(folder, 'drop', into, name);
  writeFileSync(path, '');
  return path;
}

describe('which windows are expected', () => {
  test('a new installation has no gaps', () => {
    search(START);
    search(START + 400 * DAY_MS);
    assert.deepEqual(listWindows(db, { export: null, status: null, limit: 10 }), []);
  });

  test('those from the first finished one on; an older one that finishes later changes nothing', () => {
    finish(0);
    finish(-5);
    finish(3);
    search(START + MISSING_AFTER + 4 * WINDOW_MS);
    assert.deepEqual(starts('missing'), [1, 2, 4]);
    const missing = { export: 'newswire', window_start: START + WINDOW_MS, status: 'missing' };
    assert.deepEqual(find(1), { ...missing, since: nowMs, file: null });
  });

  test('none by a window that ended more than 90 days before it was read', () => {
    const old = -(90 * DAY_MS) / WINDOW_MS - 1;
    finish(old - 1);
    search(START + MISSING_AFTER);
    assert.deepEqual(listWindows(db, { export: null, status: 'missing', limit: 10 }), []);
    nowMs = START;
    finish(old);
    search(START + 3 * DAY_MS);
    assert.ok(starts('missing').length > 12_000, 'ended exactly 90 days ago: it still counts');
  });

  test('those from the start set by hand: earlier ones are no longer missing, later ones are searched at once', () => {
    finish(0);
    finish(1);
    search(START + MISSING_AFTER + 10 * WINDOW_MS);
    assert.equal(starts('missing').length, 9);
    assert.equal(expectFrom(db, 'newswire', START + 8 * WINDOW_MS), 6);
    assert.deepEqual(starts('missing'), [8, 9, 10]);
    assert.equal(expectFrom(db, 'newswire', START - 2 * WINDOW_MS), 0);
    search(nowMs + WINDOW_MS);
    assert.deepEqual(starts('missing'), [-2, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert.deepEqual(starts('done'), [0, 1]);
  });

  test('not by a first window that failed', () => {
    finish(0, 'newswire', 'failed');
    search(START + 10 * DAY_MS);
    assert.deepEqual(starts('missing'), []);
  });

  test('per export, and none of one that is switched off', () => {
    reopen(['imagewire']);
    finish(0, 'newswire');
    finish(2, 'imagewire');
    search(START + MISSING_AFTER + 3 * WINDOW_MS);
    assert.deepEqual(starts('missing', 'newswire'), []);
    assert.deepEqual(starts('missing', 'imagewire'), [3]);
  });
});

describe('when the search runs', () => {
  test('a window is missing exactly a day after it was due', () => {
    finish(0);
    search(START + MISSING_AFTER + WINDOW_MS - 1);
    assert.deepEqual(starts('missing'), []);
    reopen();
    search(START + MISSING_AFTER + WINDOW_MS);
    assert.deepEqual(starts('missing'), [1]);
  });

  test('once a day, and at every start', () => {
    search(START);
    finish(0);
    search(START + MISSING_AFTER + WINDOW_MS);
    assert.deepEqual(starts('missing'), [1]);
    const lookedAt = nowMs;
    const missingAfter = (ms: number) => {
      search(lookedAt + ms);
      return starts('missing').length - 1;
    };
    assert.equal(missingAfter(DAY_MS - 1), 0);
    assert.equal(missingAfter(DAY_MS), DAY_MS / WINDOW_MS);
    reopen();
    assert.equal(missingAfter(DAY_MS + HOUR_MS), (DAY_MS + HOUR_MS) / WINDOW_MS);
  });

  test('again once the clock runs evenly after a jump, not right after it', () => {
    finish(0);
    search(START + MISSING_AFTER + WINDOW_MS);
    search(nowMs + HOUR_MS, false);
    assert.equal(starts('missing').length, 1);
    search(nowMs + HOUR_MS);
    assert.equal(starts('missing').length, 1 + (2 * HOUR_MS) / WINDOW_MS);
  });

  test("a year's stop: its missing windows are not abandoned at once", () => {
    finish(0);
    search(START + 365 * DAY_MS);
    assert.equal(starts('missing').length, (365 * DAY_MS - MISSING_AFTER) / WINDOW_MS);
    assert.deepEqual(starts('abandoned'), []);
  });

  test('missing windows by a clock that was ahead are withdrawn', () => {
    finish(0);
    search(START + 100 * DAY_MS);
    const right = START + MISSING_AFTER + 2 * WINDOW_MS;
    search(right);
    assert.deepEqual(starts('missing'), [1, 2]);
    search(right + DAY_MS);
    assert.equal(starts('missing').length, 2 + DAY_MS / WINDOW_MS);
  });

  test('a clock that is behind a finished window withdraws no missing or abandoned one', () => {
    finish(0);
    search(START + MISSING_AFTER + 2 * WINDOW_MS);
    const newest = START + 3 * WINDOW_MS;
    finish(3);
    search(nowMs + 30 * DAY_MS);
    const before = listWindows(db, { export: null, status: null, limit: 10_000 });
    assert.deepEqual(starts('abandoned'), [1, 2]);
    const right = nowMs;
    for (const behind of [Date.parse('2000-01-01T00:00:00Z'), newest + WINDOW_MS - 1]) {
      reopen();
      search(behind);
      assert.deepEqual(listWindows(db, { export: null, status: null, limit: 10_000 }), before);
    }
    search(right + HOUR_MS);
    assert.equal(starts('missing').length - before.filter(({ status }) => status === 'missing').length, 6);
    assert.deepEqual(starts('abandoned'), [1, 2]);
  });
});

describe('a file that waits', () => {
  for (const into of ['', '.taken'])
    test(`in ${into || 'the drop folder'}: its window is not missing, until the file is gone`, () => {
      finish(0);
      const path = put(START + WINDOW_MS, into);
      search(START + MISSING_AFTER + 3 * WINDOW_MS);
      assert.deepEqual(starts('missing'), [2, 3]);
      rmSync(path);
      search(nowMs + DAY_MS);
      assert.ok(starts('missing').includes(1));
    });

  test('one that is still being written has not arrived', () => {
    finish(0);
    const path = put(START + WINDOW_MS);
    renameSync(path, `${path}.tmp`);
    search(START + MISSING_AFTER + WINDOW_MS);
    assert.deepEqual(starts('missing'), [1]);
  });

  test('keeps a missing window from being abandoned', () => {
    finish(0);
    search(START + MISSING_AFTER + 2 * WINDOW_MS);
    put(START + WINDOW_MS);
    search(nowMs + 30 * DAY_MS);
    assert.deepEqual(starts('abandoned'), [2]);
    assert.equal(find(1)?.status, 'missing');
  });
});

test('a window is abandoned 30 days after it became missing, and stays so', () => {
  finish(0);
  search(START + MISSING_AFTER + WINDOW_MS);
  const missingSince = nowMs;
  search(missingSince + 30 * DAY_MS - 1);
  assert.deepEqual(starts('abandoned'), []);
  reopen();
  search(missingSince + 30 * DAY_MS);
  assert.deepEqual(starts('abandoned'), [1]);
  assert.equal(find(1)?.since, nowMs);
  search(nowMs + 5 * DAY_MS);
  assert.equal(find(1)?.status, 'abandoned');
});

test('failed and done windows are left as they are', () => {
  finish(0);
  finish(1);
  finish(2, 'newswire', 'failed');
  search(START + MISSING_AFTER + 2 * WINDOW_MS);
  search(nowMs + 60 * DAY_MS);
  assert.deepEqual(starts('failed'), [2]);
  assert.deepEqual(starts('done'), [0, 1]);
  assert.equal(find(2)?.since, START);
});
