/** A scrub finds nothing if nothing is damaged; else each kind of damage, counted and named. When it runs by itself. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import {
  DELETE_DETECTIONS,
  DELETE_RESCORED,
  DELETE_STREAM_ROWS,
  endedStreams,
} from '../../src/log/detection-rows.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { readScrubRecord, type ScrubResult, writeScrubRecord } from '../../src/log/scrub-findings.ts';
import { startScrubs } from '../../src/log/scrub-schedule.ts';
import { listSegments } from '../../src/log/segment.ts';
import type { OwnProcess, Printed } from '../../src/own-process.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { placesOf } from '../../src/store/stream-place.ts';
import { HOUR_MS } from '../../src/time.ts';
import { changeDetections } from '../support/database-content.ts';
import { flipBit } from '../support/flip-bit.ts';
import { createHistory, type History, rescored } from '../support/history.ts';
import { patched, systemError, withFailingReads } from '../support/patched-fs.ts';
import { assertClean, CLEAN, FIRST, fill, INDEX, newRows, scrubbed } from '../support/scrub.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

type AtStep = (step: number) => Promise<void> | void;

/** Scrubs while something happens at each of its steps, counted from 1. @returns how many there were */
async function assertCleanWith(history: History, atStep: AtStep): Promise<number> {
  let steps = 0;
  const { findings, not_compared } = await scrubbed(history, async () => {
    steps += 1;
    await atStep(steps);
  });
  assert.deepEqual({ findings, not_compared }, CLEAN);
  return steps;
}

const history = await createHistory();
after(history.delete);

test('in a new database, beside ingest, and stopped', async () => {
  await assertClean(history, 'new');
  await fill(history);
  assert.ok(listSegments(history.folder.log).length > 2);
  await assertClean(history, 'beside the writer');
  history.stop();
  await assertClean(history, 'stopped');
  await history.restart();
  await assertClean(history, 'started again');
});

test('with transactions between any two steps', async () => {
  const steps = await assertCleanWith(history, (step) => {
    if (step % 2 !== 0 || step >= 80) return;
    history.apply(newRows(10_000 + step * 10, 10));
    history.apply(newRows(1 + step, 20, rescored(59, step)));
  });
  assert.ok(steps > 20, `${steps} steps`);
});

test('while a subscription is removed, and after it is added again', async () => {
  await assertCleanWith(history, async (step) => {
    if (step === 20) await history.remove(7002);
    if (step === 22) history.apply(newRows(1, 50));
  });
  await assertClean(history, 'afterwards');
});

test('while the log is rewritten without removed rows, at any step', async () => {
  for (let step = 1, steps = 1; step <= steps; step += 1) {
    using small = await createHistory(1024);
    small.apply(newRows(1, 60));
    small.apply(newRows(1, 40, rescored(15, 90)));
    const count = await assertCleanWith(small, async (at) => {
      // A range that was read before the removal contains rows that the log no longer has.
      if (at === step - 1)
        for (const minute of [16, 17, 18]) small.apply(newRows((minute - 10) * 10, 80, rescored(minute)));
      if (at !== step) return;
      await small.remove(7002);
      await small.compact();
    });
    steps = Math.max(steps, count);
  }
});

test('while rows of a removed subscription are still to be deleted', async () => {
  history.apply(newRows(20_000, 300));
  const { writer } = history;
  const applier = writer().begin();
  applier.removeSubscription(7001);
  writer().commit(applier, { kind: 'remove' });
  await assertClean(history, 'none is deleted');
  const [ordinal = 0] = endedStreams(history.db(), 7001);
  const values = { ordinal, ...placesOf(ordinal), limit: 10 };
  for (const sql of [DELETE_STREAM_ROWS, DELETE_DETECTIONS, DELETE_RESCORED])
    assert.ok(history.db().prepare(sql).run(values).changes > 0);
  await assertClean(history, 'some are deleted');
});

const [DIFFERS, MALFORMED] = ['database differs', 'database malformed'] as const;
const COLUMNS =
  'position, version, publisher_id, domain, band, score, print, source_hash, article_id, body, checksum';
const ONE_MORE = `
  INSERT INTO stream_row (place, ${COLUMNS}) SELECT ${FIRST + 500_000}, ${COLUMNS} FROM stream_row LIMIT 1`;
const DETECTION = /^detection of stream \d differs/;

describe('damage is found', async () => {
  const history = await createHistory();
  after(history.delete);
  await fill(history);
  history.stop();
  const sound = readFileSync(history.folder.detections);

  async function found(change: () => void): Promise<Record<string, string>> {
    change();
    const { findings } = await scrubbed(history);
    writeFileSync(history.folder.detections, sound);
    return Object.fromEntries(findings.map(({ kind, first }) => [kind, first[0] ?? '']));
  }

  const changed = (sql: string) => () => changeDetections(history.folder.root, sql);
  /** Overwrites the database file with what `change` makes of its content. */
  const rewritten = (change: (bytes: Buffer) => void) => () => {
    const bytes = Buffer.from(sound);
    change(bytes);
    writeFileSync(history.folder.detections, bytes);
  };

  test('the database: each kind, counted and named', async () => {
    const counted =
      /^stream_row of stream 1 differs from the log \(([\d,]+) rows, (?!\1)[\d,]+ in the log\)$/;
    const move = (from: number, to: number) => `UPDATE stream_row SET place = ${to} WHERE place = ${from};`;
    const exchange = move(FIRST, 1) + move(FIRST + 1, FIRST) + move(1, FIRST + 1);
    const differing: [sql: string, name: RegExp][] = [
      [`DELETE FROM stream_row WHERE place = ${FIRST}`, counted],
      [ONE_MORE, /^stream_row place/],
      [exchange, /^stream_row place/],
      [`UPDATE stream_row SET band = band + 1 WHERE place = ${FIRST}`, /stream 1 /],
      ["UPDATE detection SET exported_at_given = '2020-01-01T00:00:00Z' WHERE id = 't.7001.1.5'", DETECTION],
      ["UPDATE detection SET place = place + 1 WHERE id = 't.7001.1.5'", DETECTION],
      ['UPDATE ingest_file SET bytes = 11', /^ingest_file differs/],
      ['DELETE FROM export_window', /^export_window .*\(0 rows, 1 in the log\)$/],
      ['UPDATE stream SET sequence = 1 WHERE ordinal = 2', /^stream differs/],
      ["UPDATE rescored SET body = replace(body, 'H', 'h')", /^rescored place \d+: its text/],
      ['INSERT INTO delivery (first_position, last_position) VALUES (1, 1)', /^delivery differs/],
      ['DROP INDEX delivery_by_time', /^sqlite_schema differs/],
    ];
    const other = rewritten((bytes) => bytes.write('h', bytes.indexOf('Headline 77 ')));
    const cases: [change: () => void, kind: string, name: RegExp][] = [
      [other, DIFFERS, /^stream_row place \d+: its text does not match its checksum$/],
      ...differing.map(([sql, name]): [() => void, string, RegExp] => [changed(sql), DIFFERS, name]),
      [rewritten((bytes) => bytes.fill(0, 9 * 16_384, 10 * 16_384)), MALFORMED, /malformed/],
      // A schema format that SQLite does not know: https://sqlite.org/fileformat2.html#schemaformat
      [rewritten((bytes) => bytes.writeUInt32BE(9, 44)), MALFORMED, /^unsupported file format$/],
      [changed("UPDATE log_mark SET id = 'ffff'"), MALFORMED, /log_mark/],
      [() => rmSync(history.folder.detections), MALFORMED, /missing/],
    ];
    for (const [change, kind, name] of cases) {
      const findings = await found(change);
      assert.match(findings[kind] ?? '', name, JSON.stringify(findings));
    }
    assert.deepEqual(await found(() => {}), {}, 'no further findings');
  });

  test('an index that lacks a row, or has one too many', async () => {
    const withoutIndex = (sql: string) => () => {
      const redefine = "UPDATE sqlite_schema SET sql = ? WHERE name = 'stream_row_by_position'";
      const define = (definition: string) =>
        changeDetections(history.folder.root, (db) => {
          db.unsafeMode().pragma('writable_schema = ON');
          db.prepare(redefine).run(definition);
        });
      define(`${INDEX} WHERE 0`);
      changed(sql)();
      define(INDEX);
    };
    const less = await found(withoutIndex(`UPDATE stream_row SET position = 99 WHERE place = ${FIRST}`));
    assert.match(less[MALFORMED] ?? '', /row \d+ missing from index stream_row_by_position/);
    const more = await found(() => {
      changed(ONE_MORE)();
      withoutIndex(`DELETE FROM stream_row WHERE place = ${FIRST + 500_000}`)();
    });
    assert.match(more[MALFORMED] ?? '', /wrong # of entries in index stream_row_by_position/);
  });

  test('the log: a flipped bit in a segment, or a missing segment', async () => {
    const [first, second] = listSegments(history.folder.log);
    const last = listSegments(history.folder.log).at(-1);
    assert.ok(first && second && last && last !== second);
    const kindsFound = async () => {
      const { findings, not_compared } = await scrubbed(history);
      assert.equal(not_compared, 'the log is damaged');
      const kinds = findings.map(({ kind, count }) => [kind, count]);
      assert.deepEqual(kinds, [['log damaged', 1]]);
      return findings[0]?.first[0] ?? '';
    };
    for (const { path } of [first, second, last]) {
      const bytes = readFileSync(path);
      flipBit(path);
      // In the last segment, the damage may also look like a missing end.
      assert.match(await kindsFound(), new RegExp(path === last.path ? `${path}|ends with entry` : path));
      rmSync(path);
      await kindsFound();
      writeFileSync(path, bytes);
    }
    await assertClean(history, 'afterwards');
  });

  test('damage of the log that is not there when it is read again is not reported', async () => {
    const { path } = listSegments(history.folder.log)[1] ?? { path: '' };
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 1));
    let good = 0;
    assert.throws(() => {
      for (const _ of entriesAfter(history.folder.log, null)) good += 1;
    }, /is damaged at byte/);
    let step = 0;
    const { findings, not_compared } = await scrubbed(history, async () => {
      step += 1;
      if (step === good + 1) writeFileSync(path, bytes);
    });
    assert.deepEqual({ findings, not_compared }, CLEAN);
  });

  test('a database that cannot be opened is reported, but not as damage', async () => {
    const { detections } = history.folder;
    rmSync(detections);
    mkdirSync(detections);
    try {
      const unread = /cannot read .*detections\.db: unable to open database file\. Nothing was/;
      await assert.rejects(scrubbed(history), unread);
    } finally {
      rmdirSync(detections);
      writeFileSync(detections, sound);
    }
  });

  test('a log read that fails is damage only if it fails again', async () => {
    const path = listSegments(history.folder.log)[0]?.path ?? '';
    const unread = (times: number) => withFailingReads(path, times, () => scrubbed(history));
    assert.deepEqual((await unread(1)).findings, []);
    const { findings, not_compared } = await unread(Number.POSITIVE_INFINITY);
    assert.match(findings[0]?.first[0] ?? '', /^cannot read .*000000000001\.zst: EIO/);
    assert.equal(not_compared, 'the log is damaged');
  });

  test('a segment that cannot be opened is reported, but not as damage', async () => {
    using _ = patched('openSync', (open) => (path, ...rest) => {
      if (String(path).endsWith('1.zst')) throw systemError('EMFILE', 'open');
      return open(path, ...rest);
    });
    const unread = /cannot read .*000000000001\.zst: EMFILE: it fails, open\. Nothing was found/;
    await assert.rejects(scrubbed(history), unread);
  });

  test('a scrub ends, though each reading fails in another place', async () => {
    const paths = listSegments(history.folder.log).map((segment) => segment.path);
    assert.ok(paths.length >= 5);
    for (const [readings, places] of Object.entries({ 3: 2, 5: paths.length })) {
      const failing = paths.slice(0, places);
      let failed = 0;
      using _ = patched('openSync', (open) => (path, ...rest) => {
        if (path !== failing[failed % failing.length]) return open(path, ...rest);
        failed += 1;
        throw systemError('EMFILE', 'open');
      });
      await assert.rejects(scrubbed(history), /cannot read .*EMFILE: it fails, open\. Nothing was found/);
      assert.equal(failed, Number(readings));
    }
  });

  test('leaves no file behind, even if a kill interrupts it', async () => {
    // SQLite names its temporary files so: https://sqlite.org/tempfiles.html
    const left = (names: RegExp) => readdirSync(history.folder.root).filter((name) => names.test(name));
    assert.deepEqual(left(/etilqs|-wal|-shm/), []);
    await scrubbed(history, async () => assert.deepEqual(left(/etilqs/), []));
  });
});

const NOW = Date.UTC(2026, 10, 21);
const SCRUBBED: ScrubResult = { entry: 5, ...CLEAN };
const SOUND = ['log: null', 'access: null', 'secret: null'];
const of = (kind: ScrubResult['findings'][number]['kind']): ScrubResult => ({
  ...SCRUBBED,
  findings: [{ kind, count: 2, first: ['here'] }],
});

/** A scheduler on a data folder, whose scrubs end when the test decides. */
function scheduled(every_hours: number, root = testFolder(), { firstAfterMs = 0, isReady = true } = {}) {
  const state = { nowMs: NOW, isReady, begun: 0, givenUp: 0 };
  let current = Promise.withResolvers<Printed>();
  const [damageReports, lines]: [string[], string[]] = [[], []];
  const run = (args: readonly string[]): OwnProcess => {
    assert.deepEqual(args, ['verify', '--data', root]);
    state.begun += 1;
    const own = Promise.withResolvers<Printed>();
    current = own;
    const giveUp = async () => {
      state.givenUp += 1;
      own.reject(new Error('killed'));
    };
    return { printed: own.promise, giveUp };
  };
  const options = {
    ...{ data: root, every_hours, firstAfterMs, now: () => state.nowMs, isReady: () => state.isReady },
    log: (level: string, msg: string) => lines.push(`${level} ${msg}`),
    onDamage: (what: string, detail: string | null) => damageReports.push(`${what}: ${detail}`),
  };
  const { check, close } = startScrubs(options, run);
  return {
    ...{ root, state, damageReports, lines, check },
    [Symbol.asyncDispose]: close,
    /** Ends the running scrub with this result. */
    async end(result: ScrubResult | Error): Promise<void> {
      if (result instanceof Error) current.reject(result);
      else {
        writeScrubRecord(dataFolder(root), result, state.nowMs);
        current.resolve({ ...result });
      }
      await new Promise((resolve) => setImmediate(resolve));
    },
    /** Repeats the check until a scrub starts. */
    untilStarted: () =>
      until('a scrub', () => {
        check();
        return state.begun === 1;
      }),
  };
}

test('one runs after a start, then at an interval from the last one', async () => {
  await using later = scheduled(24, testFolder(), { firstAfterMs: HOUR_MS });
  later.check();
  assert.equal(later.state.begun, 0, 'not immediately');
  await using all = scheduled(24, testFolder(), { isReady: false });
  all.check();
  assert.equal(all.state.begun, 0, 'not while the database cannot be read');
  all.state.isReady = true;
  await all.untilStarted();
  all.check();
  assert.equal(all.state.begun, 1, 'one at a time');
  await all.end(SCRUBBED);
  assert.equal(readScrubRecord(dataFolder(all.root))?.at, NOW);
  assert.deepEqual(all.lines, ['info detections.db was compared with the log']);
  all.state.nowMs = NOW + 23 * HOUR_MS;
  all.check();
  assert.equal(all.state.begun, 1);
});

test('findings are reported, and reported again by the next start', async () => {
  const root = testFolder();
  {
    await using all = scheduled(24, root);
    await all.untilStarted();
    await all.end(of('log damaged'));
    assert.deepEqual(all.damageReports, ['log: 2 x log damaged (here)', 'access: null', 'secret: null']);
    // By a command.
    writeScrubRecord(dataFolder(root), of('database differs'), NOW + 1000);
    all.check();
    const found = [...SOUND, 'database: detections.db: 2 x database differs (here)'];
    assert.deepEqual(all.damageReports.slice(3), found);
    await using again = scheduled(24, root);
    assert.deepEqual(again.damageReports, found);
  }
  // As once the database was rebuilt.
  rmSync(dataFolder(root).verified);
  await using all = scheduled(24, root);
  assert.deepEqual(all.damageReports, []);
  await all.untilStarted();
});

test('with 0 hours none runs; a failed one is reported', async () => {
  await using never = scheduled(0);
  never.check();
  assert.equal(never.state.begun, 0);
  await using all = scheduled(1);
  await all.untilStarted();
  await all.end(new Error('cannot'));
  const warning = 'warn cannot compare detections.db with the log: trying again within an hour';
  assert.deepEqual(all.lines, [warning]);
  assert.equal(readScrubRecord(dataFolder(all.root)), null);
});

test('a stop ends the running one, and reports nothing', async () => {
  const all = scheduled(24);
  await all.untilStarted();
  await all[Symbol.asyncDispose]();
  all.check();
  assert.deepEqual([all.state.begun, all.state.givenUp, all.lines], [1, 1, []]);
});
