/** Rewriting the log: it gives the same database, column by column, whatever interrupts it. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { compactStopped } from '../../src/log/compact.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { listSegments, SegmentReader } from '../../src/log/segment.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { readLogMarkOf } from '../../src/store/log-mark.ts';
import { placeOf } from '../../src/store/stream-place.ts';
import { assertSameContent, changeDetections, contentOfDetections } from '../support/database-content.ts';
import { flipBit } from '../support/flip-bit.ts';
import { createHistory, type History, QUIETLY, rescored, variedRows } from '../support/history.ts';
import { assertClean as assertNothingFound, beginEpoch } from '../support/scrub.ts';
import { testFolder } from '../support/test-folder.ts';

/** A row of the first stream. */
const ROW = placeOf(1, 5);
const SUBSCRIPTIONS = [7001, 7002, 7003];

const newRows = (from: number, count: number, members: Parameters<typeof variedRows>[3] = {}) =>
  variedRows(SUBSCRIPTIONS, from, count, members);

/** Versions of several epochs, rescored before and after them, and a subscription that was removed and added again. */
async function fill(history: History): Promise<void> {
  history.apply(newRows(1, 900));
  history.apply(newRows(1, 90, rescored(10, 90)));
  history.apply(newRows(50, 90, rescored(11)), { with: beginEpoch });
  history.apply(newRows(100, 90, rescored(12, 91)));
  history.apply(newRows(120, 90, rescored(13)));
  await history.restart();
  await history.remove(7002);
  history.apply(newRows(5000, 200), { with: (db) => beginEpoch(db, 'to read') });
  history.apply(newRows(5000, 30, rescored(14, 70)));
  history.apply(newRows(2, 60, rescored(15)));
  history.apply(newRows(6000, 5), { with: (db) => beginEpoch(db, 'left') });
}

const history = await createHistory();
after(history.delete);
await fill(history);
const content = history.stopped();
const copy = testFolder();
cpSync(history.folder.root, copy, { recursive: true });

/** Restores the data folder to its original state. */
function restoreFolder(): string {
  const { root } = history.folder;
  for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true });
  cpSync(copy, root, { recursive: true });
  return root;
}

const newLog = () => compactStopped({ folder: history.folder, nowMs: Date.UTC(2026, 10, 21), ...QUIETLY });
const assertSame = (what = '') => assertSameContent(contentOfDetections(history.folder.root), content, what);
const assertClean = () => assertNothingFound(history, '');

/** Makes the database from the log alone. */
async function makeAnew(): Promise<void> {
  rmSync(history.folder.detections, { force: true });
  await history.restart();
  history.stop();
}

test('a new log gives the same database, and continues', async () => {
  restoreFolder();
  const before = findTail(history.folder.log).last;
  const { entry, bytes, bytes_before, ...made } = await newLog();
  assert.equal(entry, before?.entry);
  const [detections, versions] = [content.detection?.length, content.stream_row?.length];
  assert.deepEqual(made, { detections, versions, damage: null });
  assert.ok(bytes > 0 && bytes < bytes_before);
  const [first] = [...entriesAfter(history.folder.log, null)].flatMap(({ part }) => part.commit ?? []);
  const { id, after, operation } = first ?? assert.fail();
  assert.deepEqual([first?.entry, id, after, operation], [entry, before?.id, null, { kind: 'snapshot' }]);
  assert.deepEqual(readdirSync(history.folder.log), [`${String(entry).padStart(12, '0')}-snapshot.zst`]);
  assertSame();
  await assertClean();
  await makeAnew();
  assertSame('made from it');
  await history.restart();
  history.apply(newRows(9000, 10));
  history.apply(newRows(1, 90, { strength_score: 11, last_scored_at: '2026-11-20T11:00:00Z' }));
  const later = history.stopped();
  await assertClean();
  await makeAnew();
  assertSameContent(contentOfDetections(history.folder.root), later);
});

test('an older database is made anew from it', async () => {
  restoreFolder();
  await newLog();
  changeDetections(history.folder.root, "UPDATE log_mark SET entry = entry - 1, id = 'other'");
  assert.match(String((await history.restart()).madeAnew), /older than the first entry of the log/);
  history.stop();
  assertSame();
});

test('a damaged log is replaced', async () => {
  for (const at of [0, 1, -1]) {
    restoreFolder();
    flipBit(listSegments(history.folder.log).at(at)?.path ?? '');
    assert.match(String((await newLog()).damage), /log damaged/);
    await assertClean();
    await makeAnew();
    assertSame(`segment ${at}`);
  }
});

test('a damaged log with entries that the database lacks stays, unless it is moved away', async () => {
  restoreFolder();
  await history.loseInDatabase(() => {
    history.apply(newRows(7000, 5));
    history.apply(newRows(7100, 5));
  });
  const mark = readLogMarkOf(history.folder.detections) ?? assert.fail();
  const segments = listSegments(history.folder.log);
  const segment = segments.findLast(({ firstEntry }) => firstEntry <= mark.entry + 1) ?? assert.fail();
  using reader = new SegmentReader(segment);
  reader.skipTo(mark.entry);
  await assertMissed(segment.path, reader.end + 40, mark.entry, /has [2-9] entries/);
});

test('an entry of a single frame, alone in its segment, is missed like others', async () => {
  restoreFolder();
  // It ends its segment; the next one has only the time when it was delivered.
  await history.loseInDatabase(() => history.apply(newRows(7000, 400)));
  const mark = readLogMarkOf(history.folder.detections) ?? assert.fail();
  const [damaged, last] = listSegments(history.folder.log).slice(-2);
  assert.equal(last?.firstEntry, mark.entry + 2);
  await assertMissed(damaged?.path ?? '', -3, mark.entry, /has 2 entries/);
});

/** Damages a segment with entries that the database lacks: no log is begun before the damaged one is moved away. */
async function assertMissed(path: string, at: number, entry: number, lost: RegExp): Promise<void> {
  flipBit(path, at);
  const bytes = readFileSync(path);
  await assert.rejects(newLog(), new RegExp(`the damaged log ${lost.source} that detections\\.db lacks`));
  assert.deepEqual(readFileSync(path), bytes);
  renameSync(history.folder.log, `${history.folder.log}-away`);
  assert.equal((await newLog()).entry, entry);
  await assertClean();
}

test('no log is started from an inconsistent database, or one that contradicts the log', async () => {
  const LAST = 'SELECT max(place) FROM stream_row';
  const damages: [RegExp, string, boolean][] = [
    [/database differs/, "UPDATE detection SET exported_at_given = 'x' WHERE id = 't.7001.1.4'", false],
    [/does not exist|database differs/, `DELETE FROM stream_row WHERE place = (${LAST})`, true],
    [/which does not exist/, `UPDATE stream_row SET body = 'x' WHERE place = ${ROW}`, true],
    [/database differs/, `UPDATE stream_row SET version = 2 WHERE place = ${ROW}`, true],
    [/database differs/, `UPDATE rescored SET body = replace(body, 'Headline', 'headline')`, true],
    [/database differs/, `UPDATE stream_row SET score = 1 WHERE place = ${ROW}`, true],
  ];
  for (const [reason, sql, isLogDamaged] of damages) {
    changeDetections(restoreFolder(), sql);
    if (isLogDamaged) flipBit(listSegments(history.folder.log)[0]?.path ?? '');
    const names = readdirSync(history.folder.log);
    await assert.rejects(newLog(), reason);
    assert.deepEqual(readdirSync(history.folder.log), names, sql);
  }
  restoreFolder();
  writeFileSync(history.folder.damage, 'x\n');
  flipBit(listSegments(history.folder.log)[0]?.path ?? '');
  await assert.rejects(newLog(), /is damaged, so the log cannot be rewritten from it/);
});

test('rows of a removed subscription are not copied', async () => {
  restoreFolder();
  await history.restart();
  const applier = history.writer().begin();
  applier.removeSubscription(7001);
  history.writer().commit(applier, { kind: 'remove' });
  history.stop();
  await newLog();
  await assertClean();
  await history.restart();
  await history.remove(7001);
  const removed = withoutMark(history.stopped());
  assert.ok((removed.detection?.length ?? 0) < (content.detection?.length ?? 0));
  await makeAnew();
  assertSameContent(withoutMark(contentOfDetections(history.folder.root)), removed);
});

test('a crash at any moment leaves the old log or the new one', async () => {
  restoreFolder();
  await newLog();
  const begun = testFolder();
  cpSync(history.folder.root, begun, { recursive: true });
  const { log } = history.folder;
  const [{ path: snapshot } = { path: '' }] = listSegments(join(begun, 'log'));
  const place = () => cpSync(snapshot, join(log, basename(snapshot)));
  const makeDraft = (bytes: number) => {
    mkdirSync(join(log, 'draft'));
    const draft = join(log, 'draft', basename(snapshot).replace('-snapshot', ''));
    writeFileSync(draft, readFileSync(snapshot).subarray(0, bytes));
  };
  const states: Readonly<Record<string, () => void>> = {
    'half of the draft is written': () => makeDraft(9000),
    'the draft is written': () => makeDraft(Number.POSITIVE_INFINITY),
    'it was renamed': place,
    'some of the old segments are deleted': () => {
      for (const [index, { path }] of listSegments(log).entries()) if (index % 2 === 0) rmSync(path);
      place();
    },
  };
  for (const [what, leave] of Object.entries(states)) {
    restoreFolder();
    leave();
    await history.restart();
    history.stop();
    assertSame(what);
    await assertClean();
    assert.ok(listSegments(log).length === readdirSync(log).length, `${what}: nothing else is left`);
    await makeAnew();
    assertSame(`${what}, and then made anew`);
  }
});

const withoutMark = ({ log_mark: _, ...others }: ReturnType<typeof contentOfDetections>) => others;
