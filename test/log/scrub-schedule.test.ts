/** The scheduled scrub: when it runs, its reports, and that a stop does not wait for it. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { readScrubRecord, type ScrubResult, writeScrubRecord } from '../../src/log/scrub-findings.ts';
import { startScrubs } from '../../src/log/scrub-schedule.ts';
import type { Outcome, OwnProcess } from '../../src/own-process.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { HOUR_MS } from '../../src/time.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const NOW = Date.UTC(2026, 10, 21);
const CLEAN: ScrubResult = { entry: 5, findings: [], not_compared: null };
const SOUND = ['log: null', 'access: null', 'secret: null'];
const of = (kind: ScrubResult['findings'][number]['kind']): ScrubResult => ({
  ...CLEAN,
  findings: [{ kind, count: 2, first: ['here'] }],
});

/** A scheduler on a data folder, whose scrubs end when the test decides. */
function scheduled(every_hours: number, root = testFolder(), { firstAfterMs = 0, isReady = true } = {}) {
  const state = { nowMs: NOW, isReady, begun: 0, givenUp: 0 };
  let current = Promise.withResolvers<Outcome>();
  const [damageReports, lines]: [string[], string[]] = [[], []];
  const run = (args: readonly string[]): OwnProcess => {
    assert.deepEqual(args, ['verify', '--data', root]);
    state.begun += 1;
    const own = Promise.withResolvers<Outcome>();
    current = own;
    const giveUp = async () => {
      state.givenUp += 1;
      own.resolve({ kind: 'failed', detail: 'killed' });
    };
    return { outcome: own.promise, giveUp };
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
      if (result instanceof Error) current.resolve({ kind: 'failed', detail: result.message });
      else {
        writeScrubRecord(dataFolder(root), result, state.nowMs);
        current.resolve({ kind: 'done', printed: { ...result } });
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
  await all.end(CLEAN);
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
