/** A backup of a log that is purged during the copy is restorable at any moment. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { copyLog } from '../../src/backup/log-copy.ts';
import { findTail } from '../../src/history/log-reader.ts';
import { listSegments } from '../../src/history/segment.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { ordinalOf } from '../../src/store/stream-place.ts';
import { assertSameContent } from '../support/database-content.ts';
import {
  contentNow,
  contentOfLog,
  fill,
  history,
  purgeUntil,
  rescored,
  rowsOf,
  Stopping,
  streamOf,
} from '../support/purge.ts';

describe('a backup of a log that is being rewritten', () => {
  const copyTo = () => `${history.folder.root}-backup`;
  const asideOf = () => `${history.folder.root}-aside`;
  const liveCopy = () => `${history.folder.root}-live`;
  afterEach(() => {
    for (const folder of [copyTo(), asideOf(), liveCopy(), `${liveCopy()}-old`])
      rmSync(folder, { recursive: true, force: true });
  });

  function copy(from: string, onBytes: () => void = () => {}): void {
    mkdirSync(copyTo(), { recursive: true });
    const end = findTail(from).last;
    copyLog({ from, to: join(copyTo(), 'log'), end, aside: asideOf(), onBytes });
  }

  /** The backup must reach as far as before, and be consistent: each stream is complete or removed. */
  async function assertGood(what: string, least: number): Promise<void> {
    const place = dataFolder(copyTo());
    assert.ok((findTail(place.log).last?.entry ?? 0) >= least, what);
    const { stream = [], stream_row = [], detection = [] } = await contentOfLog(place);
    for (const { ordinal, subscription_id, sequence, removed } of stream.map(streamOf)) {
      const isOfIt = (row: unknown) => ordinalOf(Number(Object(row).place)) === ordinal;
      assert.equal(stream_row.filter(isOfIt).length, removed === 1 ? 0 : sequence, what);
      assert.equal(detection.some(isOfIt), removed === 0, what);
      const known = ordinals.get(`${subscription_id} ${Object(stream[ordinal - 1]).content_type}`);
      assert.equal(ordinal, known, what);
    }
  }
  let ordinals: ReadonlyMap<string, number>;
  function noteOrdinals(): void {
    const rows = history.db().prepare<[], Record<string, unknown>>('SELECT * FROM stream').all();
    ordinals = new Map(
      rows.map((row) => [`${row.subscription_id} ${row.content_type}`, Number(row.ordinal)]),
    );
  }

  test('started at any step and interrupted at any point: it is good, and the next one completes it', async () => {
    await fill();
    const { log } = history.folder;
    copy(log);
    const least = findTail(log).last?.entry ?? 0;
    const old = `${liveCopy()}-old`;
    cpSync(join(copyTo(), 'log'), old, { recursive: true, preserveTimestamps: true });
    history.apply([...rowsOf([7001, 7002], 7000, 80), ...rowsOf([7002], 1000, 30, rescored(16))]);
    history.apply(rowsOf([7001], 7500, 60));
    await history.remove(7002);
    noteOrdinals();
    let cut = 0;
    for (let turn = 1; ; turn += 3) {
      const isEnded = await purgeUntil(turn);
      for (let calls = 0; ; calls += 1) {
        rmSync(join(copyTo(), 'log'), { recursive: true });
        cpSync(old, join(copyTo(), 'log'), { recursive: true, preserveTimestamps: true });
        let called = 0;
        const cutOff = () => {
          called += 1;
          if (called > calls) throw new Stopping();
        };
        try {
          copy(log, cutOff);
          break;
        } catch (error) {
          assert.ok(error instanceof Stopping);
          await assertGood(`turn ${turn}, cut off after ${calls}`, least);
          cut += 1;
        }
      }
      await assertGood(`turn ${turn}`, least);
      const expected = contentNow();
      copy(log);
      assertSameContent(await contentOfLog(dataFolder(copyTo())), expected, `turn ${turn}`);
      if (!isEnded) break;
    }
    assert.ok(cut > 20, `${cut}`);
    assert.ok(readdirSync(asideOf()).length > 3, 'replaced segments must be kept');
  });

  test('with segments replaced while it copies: it copies them again', async () => {
    await fill();
    await history.remove(7002);
    noteOrdinals();
    const { log } = history.folder;
    const old = `${liveCopy()}-old`;
    cpSync(log, old, { recursive: true, preserveTimestamps: true });
    await history.purge();
    history.stop();
    const newest = listSegments(log).toReversed();
    for (const rewritten of [1, 3, newest.length])
      for (let at = 1; ; at += 1) {
        rmSync(liveCopy(), { recursive: true, force: true });
        cpSync(old, liveCopy(), { recursive: true, preserveTimestamps: true });
        rmSync(copyTo(), { recursive: true, force: true });
        if (at % 2 === 0) copy(liveCopy());
        let calls = 0;
        const rewrite = () => {
          calls += 1;
          if (calls !== at) return;
          for (const { path } of newest.slice(0, rewritten)) {
            const target = join(liveCopy(), basename(path));
            cpSync(path, `${target}.tmp`);
            renameSync(`${target}.tmp`, target);
          }
        };
        // A backup without the log's end has both segments to replace and segments to add.
        if (at % 2 === 0) for (const { path } of listSegments(join(copyTo(), 'log')).slice(3)) rmSync(path);
        copy(liveCopy(), rewrite);
        await assertGood(`${rewritten} at ${at}`, 1);
        copy(liveCopy());
        for (const { path } of listSegments(liveCopy()))
          assert.deepEqual(readFileSync(join(copyTo(), 'log', basename(path))), readFileSync(path));
        if (calls < at) break;
      }
  });
});
