/**
 * Runs `wirewatch manual your-exports` exactly as written: saves its files, runs its commands in order, and compares
 * their output with the page. The program's clock is that of the page's example. The comment before each code block
 * gives its kind: `file: NAME`, `run` (with `at TIME` and `exit code N` if these differ), `run in the background`, and
 * `prints` for the output of the preceding command.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { onPath, programCommand } from '../support/command.ts';
import { without } from '../support/installed.ts';
import { example, topic } from '../support/manual.ts';
import { shiftedClock } from '../support/preload.ts';
import { type RunningProgram, runProgram } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

/** 11:43 in Berlin: the page's "now", unless a block has another time. */
const STORY_BEGINS = '2026-11-20T10:43:00Z';
const TIMEOUT_MS = 120_000;
const SETTINGS = {
  WIREWATCH_SERVER_PORT: '0',
  WIREWATCH_INGEST_QUIET_MS: '20',
  WIREWATCH_INGEST_RESCAN_SECONDS: '0.2',
};
const BLOCK =
  /<!-- (file|run in the background|run|prints)(?:: (\S+))?(?: at (\S+Z))?(?:: exit code (\d+))? -->\n```[a-z]+\n([\s\S]*?)```/g;
const blocks = Array.from(
  topic('your-exports').matchAll(BLOCK),
  ([, kind, name = '', at = STORY_BEGINS, code = '0', text = '']) => ({ kind, name, at, code, text }),
);
type Block = (typeof blocks)[number];

const ZONES = 'import zoneinfo; zoneinfo.ZoneInfo("Europe/Berlin")';
const skip =
  without('iconv', 'gzip', 'curl') ||
  (spawnSync('python3', ['-c', ZONES]).status !== 0 && 'python3 of version 3.9 with time zones is missing') ||
  (process.env.WIREWATCH_PROGRAM !== undefined && 'the clock of an executable cannot be set');

describe('the page of your own exports', { skip }, () => {
  const folder = testFolder();
  const home = join(folder, 'home');
  const PATH = onPath(join(folder, 'bin'));
  let running: { readonly program: RunningProgram; readonly url: string; readonly at: string } | null = null;
  after(() => stop());

  function environment(at: string): Record<string, string> {
    return {
      ...SETTINGS,
      PATH,
      WIREWATCH_HASTE: programCommand([]).options.env.WIREWATCH_HASTE ?? '',
      ...shiftedClock(Date.parse(at) - Date.now()),
    };
  }

  async function start(at: string): Promise<void> {
    const program = runProgram(['serve', '--data', join(home, 'wirewatch-data')], environment(at));
    running = { program, url: await program.url(), at };
  }

  async function stop(): Promise<void> {
    await running?.program.stop();
    running = null;
  }

  /** Waits until ingest is idle, like a person who reads on. */
  async function idle(): Promise<void> {
    const drop = join(home, 'wirewatch-data', 'drop');
    const waiting = () => [
      ...readdirSync(drop).filter((name) => /\.(ndjson|csv)/.test(name)),
      ...(existsSync(join(drop, '.taken')) ? readdirSync(join(drop, '.taken')) : []),
    ];
    await until('ingest to be idle', () => waiting().length === 0);
  }

  /** Runs a block at its time. @returns its output, stdout and stderr together */
  async function run({ at, code, text }: Block): Promise<string> {
    if (running !== null && running.at !== at) {
      await idle();
      await stop();
      await start(at);
    }
    if (running !== null) await idle();
    const url = running?.url ?? 'http://unknown.invalid';
    const script = text.replaceAll('http://127.0.0.1:8080', url);
    const say = () =>
      spawnSync('sh', ['-eu', '-c', `exec 2>&1\n${script}`], {
        cwd: home,
        encoding: 'utf8',
        env: environment(at),
        timeout: TIMEOUT_MS,
      });
    let { status, stdout } = say();
    // A file that was applied a moment ago may still be shown as being read.
    if (text === 'wirewatch ingest status\n')
      await until('the end of reading', () => {
        const isOver = !/^reading /m.test(stdout);
        if (!isOver) ({ status, stdout } = say());
        return isOver;
      });
    assert.equal(String(status), code, `${text}\n${stdout}`);
    return `${stdout.trimEnd()}\n`.replaceAll(`${home}/`, '');
  }

  test('every command on it works and prints the shown output', async () => {
    mkdirSync(home);
    const said: string[] = [];
    const printed: string[] = [];
    let last = '';
    for (const block of blocks) {
      switch (block.kind) {
        case 'file':
          mkdirSync(dirname(join(home, block.name)), { recursive: true });
          writeFileSync(join(home, block.name), block.text);
          break;
        case 'run in the background':
          assert.equal(block.text, 'wirewatch serve\n');
          await start(STORY_BEGINS);
          break;
        case 'run':
          last = await run(block);
          break;
        case 'prints':
          said.push(block.text);
          printed.push(last);
      }
    }
    assert.deepEqual(printed, said);
    assert.ok(printed.length >= 10 && blocks.length >= 28, `${blocks.length} blocks`);
  });

  test('the schedule calls the script as on the page', () => {
    const called = 'python3 windows.py treffer.csv /srv/wirewatch/drop next-window';
    assert.ok(example('your-exports', 'service-unit').includes(`ExecStart=/usr/bin/${called}\n`));
    const ran = called.replace('/srv/wirewatch/drop', 'wirewatch-data/drop');
    assert.ok(blocks.some((block) => block.kind === 'run' && block.text.includes(ran)));
  });
});
