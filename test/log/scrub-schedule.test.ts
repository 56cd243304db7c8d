/** The scheduled scrub: when it runs, its reports, and that a stop does not wait for it. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { readScrubRecord, type ScrubResult, writeScrubRecord } from '../../src/log/scrub-findings.ts';
import { startScrubs } from '../../src/log/scrub-schedule.ts';
import type { Outcome, OwnProcess } from '../../src/own-process.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { HOUR_MS } from '../../src/time.ts';
import { openAccess } from '../support/access.ts';
import { programCommand } from '../support/command.ts';
import { createHistory } from '../support/history.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const NOW = Date.UTC(2026, 10, 21);
const CLEAN: ScrubResult = { entry: 5, findings: [], not_compared: null };
const of = (kind: ScrubResult['findings'][number]['kind']): ScrubResult => ({
  ...CLEAN,
  findings: [{ kind, count: 2, first: ['here'] }],
});

/** A scheduler on a data folder, whose scrubs end when the test decides. */
function scheduled(every_hours: number, root = testFolder(), { firstAfterMs = 0, isReady = true } = {}) {
  const state = { nowMs: NOW, isReady, begun: 0 };
  let current = Promise.withResolvers<Outcome>();
  const [damageReports, lines]: [string[], string[]] = [[], []];
  const run = (args: readonly string[]): OwnProcess => {
    assert.deepEqual(args, ['verify', '--data', root]);
    state.begun += 1;
    const own = Promise.withResolvers<Outcome>();
    current = own;
    return { outcome: own.promise, giveUp: async () => own.resolve({ kind: 'failed', detail: 'killed' }) };
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
    const found = [
      'log: null',
      'access: null',
      'secret: null',
      'database: detections.db: 2 x database differs (here)',
    ];
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
  assert.deepEqual(all.lines, [
    'warn cannot compare detections.db with the log: trying again within an hour',
  ]);
  assert.equal(readScrubRecord(dataFolder(all.root)), null);
});

test('the process compares, and a stop kills it', async () => {
  using history = await createHistory();
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
});
