/** Rebuilding the database from the log, and the log from the database: equal column by column. */

import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openAccess } from '../../src/auth/open-access.ts';
import { entriesAfter, findTail } from '../../src/history/log-reader.ts';
import { type RebuiltLog, rebuildDatabase, rebuildLog } from '../../src/history/rebuild.ts';
import { scrub } from '../../src/history/scrub.ts';
import { findEntry, listSegments } from '../../src/history/segment.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { readLogMarkOf } from '../../src/store/log-mark.ts';
import { placeOf } from '../../src/store/stream-place.ts';
import { assertSameContent, type Content, contentOfDetections } from '../support/database-content.ts';
import { createHistory, type History, type HistoryRow } from '../support/history.ts';

const NOW = Date.UTC(2026, 10, 21);
/** A row of the first stream. */
const ROW = placeOf(1, 5);

const newRows = (from: number, count: number, members: HistoryRow['row'] = {}): HistoryRow[] =>
  Array.from({ length: count }, (_, index) => ({
    content_type: index % 3 === 0 ? 'image' : 'text',
    row: { subscription_id: 7001 + (index % 3), article_id: from + index, ...members },
    ...(index % 4 === 0 ? { given: '2026-11-20T08:10:00Z' } : {}),
    ...(index % 5 === 0 ? { withheld: 'https://print.example/1' } : {}),
  }));

const epoch = (number: number, orphans = 'read') => ({
  with: (db: History['db'] extends () => infer Db ? Db : never) =>
    db
      .prepare('INSERT INTO version_epoch (number, at, position, reason, orphans) VALUES (?, ?, ?, ?, ?)')
      .run(number, Date.UTC(2026, 10, 20, 10 + number), number, 'test', orphans),
});

/** Versions of several epochs, rescored before and after them, and a subscription that was removed and added again. */
async function fill(history: History): Promise<void> {
  const again = (minute: number, score?: number) => ({
    last_scored_at: `2026-11-20T09:${minute}:00Z`,
    ...(score === undefined ? {} : { strength_score: score }),
  });
  history.apply(newRows(1, 900));
  history.apply(newRows(1, 90, again(10, 90)));
  history.apply(newRows(50, 90, again(11)), epoch(1));
  history.apply(newRows(100, 90, again(12, 91)));
  history.apply(newRows(120, 90, again(13)));
  await history.restart();
  await history.remove(7002);
  history.apply(newRows(5000, 200), epoch(2, 'to read'));
  history.apply(newRows(5000, 30, again(14, 70)));
  history.apply(newRows(2, 60, again(15)));
  history.apply(newRows(6000, 5), epoch(3, 'left'));
}

describe('rebuild', () => {
  let history: History;
  let copy: string;
  let content: Content;
  before(async () => {
    history = await createHistory();
    await fill(history);
    history.stop();
    openAccess(history.folder.root, { create: true, operation: { kind: 'test' } }).close();
    content = contentOfDetections(history.folder.root);
    copy = `${history.folder.root}-copy`;
    cpSync(history.folder.root, copy, { recursive: true });
  });
  after(() => {
    history.delete();
    rmSync(copy, { recursive: true, force: true });
  });

  /** Restores the data folder to its original state. */
  function restoreFolder(): string {
    const { root } = history.folder;
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true });
    cpSync(copy, root, { recursive: true });
    return root;
  }

  const options = () => ({
    folder: history.folder,
    program: 'test',
    onProgress: () => {},
    between: async () => {},
  });
  const newLog = (): Promise<RebuiltLog> => rebuildLog(options(), NOW);
  const assertSame = (what = '') =>
    assertSameContent(withoutMark(contentOfDetections(history.folder.root)), withoutMark(content), what);

  async function assertClean(): Promise<void> {
    const { findings, not_compared } = await scrub(options());
    assert.deepEqual({ findings, not_compared }, { findings: [], not_compared: null });
  }

  test('the rebuilt database is equal, and is another file', async () => {
    restoreFolder();
    const db = openDatabase(history.folder.detections, 'write', DETECTIONS_SCHEMA);
    db.exec("UPDATE detection SET exported_at_given = 'x' WHERE id = 'i.7001.1.4'; DELETE FROM delivery");
    db.close();
    const { entries, detections, versions } = await rebuildDatabase(options());
    assert.equal(entries, findTail(history.folder.log).last?.entry);
    assert.equal(detections, content.detection?.length);
    assert.equal(versions, content.stream_row?.length);
    assertSame();
    await assertClean();
    assert.ok(!existsSync(history.folder.damage));
  });

  test('without a log, or with a damaged or short one, nothing is changed', async () => {
    for (const [reason, damage] of [
      [/contains no log/, () => rmSync(history.folder.log, { recursive: true })],
      [/is damaged at byte/, () => flip(listSegments(history.folder.log)[0]?.path ?? '')],
      [/ends with entry/, () => rmSync(listSegments(history.folder.log).at(-1)?.path ?? '')],
      [/begins with entry/, () => rmSync(listSegments(history.folder.log)[0]?.path ?? '')],
    ] as const) {
      restoreFolder();
      damage();
      await assert.rejects(rebuildDatabase(options()), reason);
      assertSame();
      assert.ok(!existsSync(history.folder.damage));
    }
  });

  test('a new log gives the same database, and continues', async () => {
    restoreFolder();
    const before = findTail(history.folder.log).last;
    const { entry, kept, detections } = await newLog();
    assert.equal(entry, (before?.entry ?? 0) + 1);
    assert.equal(detections, content.detection?.length);
    assert.equal(kept, `${history.folder.log}-until-20261121T000000Z`);
    assert.ok(listSegments(kept).length > 1);
    const [first] = entriesOf(history.folder.log);
    assert.deepEqual(
      [first?.entry, first?.after, first?.operation],
      [entry, before?.id, { kind: 'snapshot' }],
    );
    assert.deepEqual(readdirSync(history.folder.log), [`${String(entry).padStart(12, '0')}.zst`]);
    assertSame();
    await assertClean();
    rmSync(history.folder.detections);
    await history.restart();
    assertSame('made from it');
    history.apply(newRows(9000, 10));
    history.apply(newRows(1, 90, { strength_score: 11, last_scored_at: '2026-11-20T11:00:00Z' }));
    history.stop();
    const later = contentOfDetections(history.folder.root);
    await assertClean();
    rmSync(history.folder.detections);
    await history.restart();
    history.stop();
    assertSameContent(contentOfDetections(history.folder.root), later);
  });

  test('two logs that are replaced within a second are both kept', async () => {
    restoreFolder();
    const [first, second] = [await newLog(), await newLog()];
    assert.equal(second.kept, `${history.folder.log}-until-20261121T000001Z`);
    for (const { kept } of [first, second]) assert.ok(listSegments(kept ?? '').length > 0);
    await assertClean();
  });

  test('a database from before the new log is rebuilt from it', async () => {
    restoreFolder();
    await newLog();
    cpSync(join(copy, 'detections.db'), history.folder.detections);
    const { madeAnew, applied } = await history.restart();
    assert.deepEqual([madeAnew, applied], [null, 0], 'it must contain the start of the log');
    history.stop();
    assertSame('of the moment at which the log was begun');
    const db = openDatabase(history.folder.detections, 'write', DETECTIONS_SCHEMA);
    db.exec("UPDATE log_mark SET entry = entry - 1, id = 'other'");
    db.close();
    assert.match(String((await history.restart()).madeAnew), /older than the first entry of the log/);
    history.stop();
    assertSame('older');
  });

  test('a damaged log is replaced', async () => {
    for (const at of [0, 1, -1]) {
      restoreFolder();
      flip(listSegments(history.folder.log).at(at)?.path ?? '');
      await newLog();
      await assertClean();
      await history.restart();
      history.stop();
      assertSame(`segment ${at}`);
    }
  });

  test('entries of a damaged log that the database lacks are counted as lost', async () => {
    const root = restoreFolder();
    const none = await newLog();
    assert.equal(none.entries_lost, 0);
    restoreFolder();
    const older = readFileSync(join(root, 'detections.db'));
    await history.restart();
    history.apply(newRows(7000, 5));
    history.apply(newRows(7100, 5));
    history.stop();
    for (const end of ['-wal', '-shm']) rmSync(join(root, `detections.db${end}`), { force: true });
    writeFileSync(join(root, 'detections.db'), older);
    const mark = readLogMarkOf(join(root, 'detections.db')) ?? assert.fail();
    const segment =
      listSegments(history.folder.log).findLast(({ firstEntry }) => firstEntry <= mark.entry + 1) ??
      assert.fail();
    const { end } = findEntry(segment, mark.entry);
    const bytes = readFileSync(segment.path);
    bytes[end + 40] = (bytes[end + 40] ?? 0) ^ 1;
    writeFileSync(segment.path, bytes);
    const { entries_lost } = await newLog();
    assert.ok(entries_lost >= 2);
  });

  test('no log is started from an inconsistent database, or one that contradicts the log', async () => {
    const damages: [RegExp, string, boolean][] = [
      [/row differs/, "UPDATE detection SET exported_at_given = 'x' WHERE id = 'i.7001.1.4'", false],
      [/stream ordinal/, 'DELETE FROM stream_row WHERE place = (SELECT max(place) FROM stream_row)', true],
      [/is not a version of a detection/, `UPDATE stream_row SET body = 'x' WHERE place = ${ROW}`, true],
      [/is not a version of a detection/, `UPDATE stream_row SET version = 2 WHERE place = ${ROW}`, true],
      [
        /differs from its version/,
        `UPDATE rescored SET body = replace(body, 'headline”', 'Headline”')`,
        true,
      ],
      [/row differs.*score/, `UPDATE stream_row SET score = 1 WHERE place = ${ROW}`, true],
    ];
    for (const [reason, sql, isLogDamaged] of damages) {
      restoreFolder();
      const db = openDatabase(history.folder.detections, 'write', DETECTIONS_SCHEMA);
      db.exec(sql);
      db.close();
      if (isLogDamaged) flip(listSegments(history.folder.log)[0]?.path ?? '');
      const names = readdirSync(history.folder.root).filter((name) => /log/.test(name));
      await assert.rejects(newLog(), reason);
      assert.deepEqual(
        readdirSync(history.folder.root).filter((name) => /log/.test(name)),
        names,
        sql,
      );
    }
    restoreFolder();
    writeFileSync(history.folder.damage, 'x\n');
    await assert.rejects(newLog(), /is damaged, so no log can be created from it/);
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
    history.stop();
    const removed = withoutMark(contentOfDetections(history.folder.root));
    assert.ok((removed.detection?.length ?? 0) < (content.detection?.length ?? 0));
    rmSync(history.folder.detections);
    await history.restart();
    history.stop();
    assertSameContent(withoutMark(contentOfDetections(history.folder.root)), removed);
  });

  test('a later removal removes rows from a new log', async () => {
    restoreFolder();
    await newLog();
    await history.restart();
    history.apply(newRows(9000, 20));
    await history.remove(7001);
    await history.remove(7002);
    assert.equal(await history.purge(), null);
    history.stop();
    await assertClean();
    const lines = [...entriesAfter(history.folder.log, null)].flatMap(({ part }) => part.lines);
    assert.deepEqual(
      lines.filter((line) => /^\{"\w+":"[ti]\.700[12]\./.test(line)),
      [],
    );
    const removed = contentOfDetections(history.folder.root);
    assert.ok((removed.detection?.length ?? 0) > 100, 'other entries must stay');
    rmSync(history.folder.detections);
    await history.restart();
    history.stop();
    assertSameContent(contentOfDetections(history.folder.root), removed);
  });

  test('a crash at any moment leaves one of the two logs, complete', async () => {
    restoreFolder();
    await newLog();
    const begun = `${history.folder.root}-begun`;
    cpSync(history.folder.root, begun, { recursive: true });
    const { root, log } = history.folder;
    const until = '-until-20261121T000000Z';
    const states: [what: string, leave: () => void][] = [
      ['the draft is written', () => cpSync(join(begun, 'log'), `${log}-draft`, { recursive: true })],
      ['it was accepted', () => cpSync(join(begun, 'log'), `${log}-new`, { recursive: true })],
      [
        'the old one was moved',
        () => {
          renameSync(log, `${log}${until}`);
          cpSync(join(begun, 'log'), `${log}-new`, { recursive: true });
        },
      ],
      [
        'the new one was moved',
        () => {
          renameSync(log, `${log}${until}`);
          cpSync(join(begun, 'log'), log, { recursive: true });
        },
      ],
    ];
    try {
      for (const [what, leave] of states) {
        restoreFolder();
        leave();
        await history.restart();
        openAccess(root, { operation: { kind: 'test' } }).close();
        history.stop();
        assertSame(what);
        await assertClean();
        assert.ok(!existsSync(`${log}-new`) && existsSync(log), what);
        rmSync(dataFolder(root).detections);
        await history.restart();
        history.stop();
        assertSame(`${what}, and then made anew`);
      }
    } finally {
      rmSync(begun, { recursive: true, force: true });
    }
  });
});

function withoutMark({ log_mark: _, ...others }: Content): Content {
  return others;
}

function* entriesOf(log: string) {
  for (const { part } of entriesAfter(log, null)) if (part.kind === 'commit') yield part.commit;
}

function flip(path: string): void {
  const bytes = readFileSync(path);
  const at = Math.floor(bytes.length / 2);
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  writeFileSync(path, bytes);
}
