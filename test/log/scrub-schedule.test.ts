/** The scheduled scrub: when it runs, its reports, and that a stop does not wait for it. */
import assert from 'node:assert/strict';
import { copyFileSync, linkSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readScrubRecord, type ScrubResult, writeScrubRecord } from '../../src/log/scrub-findings.ts';
import { startScrubs } from '../../src/log/scrub-schedule.ts';
import type { Outcome, OwnProcess } from '../../src/own-process.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { HOUR_MS } from '../../src/time.ts';
import { openAccess } from '../support/access.ts';
import { programCommand } from '../support/command.ts';
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
  let current: PromiseWithResolvers<Outcome> | null = null;
  const [damageReports, lines]: [string[], string[]] = [[], []];
  const run = (args: readonly string[]): OwnProcess => {
    assert.deepEqual(args, ['verify', '--data', root]);
    begun += 1;
    const own = Promise.withResolvers<Outcome>();
    current = own;
    return {
      outcome: own.promise,
      giveUp: async () => own.resolve({ kind: 'failed', detail: 'killed' }),
    };
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
        if (result instanceof Error) current?.resolve({ kind: 'failed', detail: result.message });
        else {
          writeScrubRecord(dataFolder(root), result, nowMs);
          current?.resolve({ kind: 'done', printed: { ...result } });
        }
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
      writeScrubRecord(dataFolder(root), of('database differs'), NOW + 1000);
      all.check();
      assert.deepEqual(all.damageReports.slice(1), [
        'log: null',
        'database: detections.db: 2 x database differs (here)',
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

test('the process compares, and a stop kills it', async () => {
  const history = await createHistory();
  try {
    history.apply([{ content_type: 'text', row: {} }]);
    history.stop();
    openAccess(history.folder.root, { create: true }).close();
    writeFileSync(history.folder.secret, Buffer.alloc(32, 7));
    // As the program itself does: its own command.
    process.argv[1] = programCommand([]).args[0] ?? '';
    const schedule = (lines: string[]) =>
      startScrubs({
        data: history.folder.root,
        every_hours: 24,
        firstAfterMs: 0,
        now: Date.now,
        isReady: () => true,
        log: (level, msg, fields) => lines.push(`${level} ${msg} ${JSON.stringify(fields)}`),
        onDamage: (what, detail) => assert.equal(detail, null, what),
      });
    const stopped: string[] = [];
    await schedule(stopped).close();
    assert.deepEqual(stopped, []);
    assert.equal(readScrubRecord(history.folder), null);
    const lines: string[] = [];
    const running = schedule(lines);
    running.check();
    await until('the comparison', () => lines.length > 0);
    await running.close();
    assert.match(lines[0] ?? '', /^info detections\.db was compared with the log \{"entry":\d+\}$/);
    assert.deepEqual(readScrubRecord(history.folder)?.findings, []);
  } finally {
    history.delete();
  }
});
