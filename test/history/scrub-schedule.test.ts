/** The scheduled scrub: when it runs, its reports, and that a stop does not wait for it. */
import assert from 'node:assert/strict';
import { copyFileSync, linkSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ScrubResult } from '../../src/history/scrub.ts';
import { readScrubRecord, writeScrubRecord } from '../../src/history/scrub-record.ts';
import { type RunningScrub, startScrubs } from '../../src/history/scrub-schedule.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { HOUR_MS } from '../../src/time.ts';
import { createHistory } from '../support/history.ts';
import { until } from '../support/until.ts';

const NOW = Date.UTC(2026, 10, 21);
const CLEAN: ScrubResult = { entry: 5, findings: [], not_compared: null };
const of = (kind: ScrubResult['findings'][number]['kind']): ScrubResult => ({
  ...CLEAN,
  findings: [{ kind, count: 2, first: ['here'] }],
});

interface Scheduled {
  readonly root: string;
  readonly damageReports: string[];
  readonly lines: string[];
  setNow(ms: number): void;
  setReady(isReady: boolean): void;
  /** The number of started scrubs. */
  begun(): number;
  /** Ends the running scrub with this result. */
  end(result: ScrubResult | Error): Promise<void>;
  check(): void;
}

/** A scheduler on a data folder, whose scrubs end when the test decides. */
async function scheduled(
  everyHours: number,
  use: (scheduled: Scheduled) => Promise<void>,
  root = mkdtempSync(join(tmpdir(), 'wirewatch-test-')),
): Promise<void> {
  let nowMs = NOW;
  let isReady = true;
  let begun = 0;
  let current: PromiseWithResolvers<ScrubResult | null> | null = null;
  const [damageReports, lines]: [string[], string[]] = [[], []];
  const run = (): RunningScrub => {
    begun += 1;
    const own = Promise.withResolvers<ScrubResult | null>();
    current = own;
    return { result: own.promise, end: async () => own.resolve(null) };
  };
  writeFileSync(join(root, 'detections.db'), '', { flag: 'a' });
  const options = {
    data: root,
    every_hours: everyHours,
    firstAfterMs: 50,
    now: () => nowMs,
    isReady: () => isReady,
    log: (level: string, msg: string) => lines.push(`${level} ${msg}`),
    onDamage: (what: string, detail: string | null) => damageReports.push(`${what}: ${detail}`),
  };
  const schedule = startScrubs(options, run);
  try {
    await use({
      root,
      damageReports,
      lines,
      setNow: (ms) => {
        nowMs = ms;
      },
      setReady: (is) => {
        isReady = is;
      },
      begun: () => begun,
      async end(result) {
        if (result instanceof Error) current?.reject(result);
        else current?.resolve(result);
        await new Promise((resolve) => setImmediate(resolve));
      },
      check: () => schedule.check(),
    });
  } finally {
    await schedule.close();
    rmSync(root, { recursive: true, force: true });
  }
}

/** Repeats the check until a scrub starts. */
const untilStarted = ({ check, begun }: Scheduled, count: number) =>
  until(`scrub ${count}`, () => {
    check();
    return begun() === count;
  });

test('one runs after a start, then at an interval from the last one', () =>
  scheduled(24, async (all) => {
    assert.equal(all.begun(), 0, 'not immediately');
    all.setReady(false);
    await new Promise((resolve) => setTimeout(resolve, 60));
    all.setReady(true);
    await untilStarted(all, 1);
    all.check();
    assert.equal(all.begun(), 1, 'one at a time');
    await all.end(CLEAN);
    assert.equal(readScrubRecord(dataFolder(all.root))?.at, NOW);
    assert.deepEqual(all.lines, ['info detections.db was compared with the log']);
    all.setNow(NOW + 23 * HOUR_MS);
    all.check();
    assert.equal(all.begun(), 1);
  }));

test('findings are reported, and reported again by the next start', async () => {
  const root = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  const kept = `${root}-kept.json`;
  const held = `${root}-held.db`;
  await scheduled(
    24,
    async (all) => {
      await untilStarted(all, 1);
      await all.end(of('log damaged'));
      assert.deepEqual(all.damageReports, ['log: 2 x log damaged (here)']);
      // By a command.
      writeScrubRecord(dataFolder(root), of('row missing'), NOW + 1000);
      all.check();
      assert.deepEqual(all.damageReports.slice(1), [
        'log: null',
        'database: detections.db: 2 x row missing (here)',
      ]);
      copyFileSync(join(root, 'verified.json'), kept);
      // Otherwise the next file could get the inode of this one.
      linkSync(join(root, 'detections.db'), held);
    },
    root,
  );
  const again = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  copyFileSync(kept, join(again, 'verified.json'));
  await scheduled(
    24,
    async (all) => {
      // Meanwhile the database was rebuilt: another file.
      assert.deepEqual(all.damageReports, ['log: null']);
      await untilStarted(all, 1);
    },
    again,
  );
  rmSync(kept);
  rmSync(held);
});

test('with 0 hours none runs; a failed one is reported', async () => {
  await scheduled(0, async (all) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    all.check();
    assert.equal(all.begun(), 0);
  });
  await scheduled(1, async (all) => {
    await untilStarted(all, 1);
    await all.end(new Error('cannot'));
    assert.deepEqual(all.lines, [
      'warn cannot compare detections.db with the log: trying again within an hour',
    ]);
    assert.equal(readScrubRecord(dataFolder(all.root)), null);
  });
});

test('the thread compares, and a stop interrupts it', async () => {
  const history = await createHistory();
  try {
    const rows = Array.from(
      { length: 20_000 },
      (_, at) => ({ content_type: 'text', row: { article_id: at } }) as const,
    );
    history.apply(rows);
    const lines: string[] = [];
    const schedule = startScrubs({
      data: history.folder.root,
      every_hours: 24,
      firstAfterMs: 0,
      now: Date.now,
      isReady: () => true,
      log: (level, msg) => lines.push(`${level} ${msg}`),
      onDamage: (what, detail) => assert.equal(detail, null, what),
    });
    schedule.check();
    // Time for the scrub to make progress.
    await new Promise((resolve) => setTimeout(resolve, 200));
    await schedule.close();
    // Neither a result nor an error: the scrub was interrupted.
    assert.deepEqual(lines, []);
    assert.equal(readScrubRecord(history.folder), null);
  } finally {
    history.delete();
  }
});
