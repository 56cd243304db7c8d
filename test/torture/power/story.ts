/**
 * Records a run of the real program through the stages of the scenario: its calls on files, responses and printed
 * output. In some stages it is killed.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMs } from '../../../src/time.ts';
import { contentOf, fileName, idOf, newRow, nextWindowMs } from '../../support/export-files.ts';
import { filesWaiting, isErrorLine } from '../../support/installation-state.ts';
import { type RunningProgram, runProgram } from '../../support/program.ts';
import { compileLibrary, createInjector } from '../io/inject.ts';
import { dropRecorded, type IoEvent, readRecord } from '../io/record.ts';
import { makeSmallProgram } from '../scenario/small-program.ts';
import { stagesFrom } from '../scenario/stages.ts';
import { DATA, SETTINGS, World } from '../scenario/world.ts';
import type { Known } from './known.ts';

export interface Story {
  readonly events: readonly IoEvent[];
  /** The recorded folder, in its final state; it was empty before the first event. */
  readonly root: string;
  /** From {@link compileLibrary}. */
  readonly library: string;
  /** By request id. */
  readonly pages: ReadonlyMap<string, Page>;
  /** The detection ids of each good file, by file name; files dropped later are added. */
  readonly files: Map<string, readonly string[]>;
}

/** What the test itself deletes is not in the record, and expired files may be gone. There is one machine. */
const LEFT_OUT = ['made anew', 'retention'];

/** After so many changes of files, the program is killed: in its start, while it reads a file, in a command. */
const KILLS: Readonly<Record<string, number>> = {
  correction: 12,
  'failed, held and reset': 130,
  backfill: 80,
  pause: 210,
  'backup again': 45,
  replay: 60,
  removal: 320,
};

/** @param folder for the installation, the record and the library */
export async function recordStory(folder: string): Promise<Story> {
  const library = compileLibrary(folder);
  const root = join(folder, 'recorded');
  const record = join(folder, 'record');
  let follower: ReturnType<typeof startFollower> | null = null;
  const injector = createInjector(library, root, join(folder, 'control'));
  const world = new World(makeSmallProgram(folder), root, injector, record);
  const files = new Map<string, readonly string[]>();
  world.load(null);
  try {
    for (const stage of stagesFrom(Date.now())) {
      if (LEFT_OUT.includes(stage.name) || stage.role !== undefined) continue;
      for (const step of stage.steps)
        if (step.kind === 'drop' && step.ids.length > 0) files.set(step.name, step.ids);
      const at = KILLS[stage.name];
      if (at !== undefined) injector.begin('changes', { how: 'kill', at });
      await world.runStage(stage);
      injector.end();
      follower ??= startFollower(world.keys.follower ?? '', () => world.url);
    }
    return { events: readRecord(record), root, library, pages: follower?.pages ?? new Map(), files };
  } finally {
    follower?.stop();
    await world.end();
  }
}

/** Starts the program on the data folder below a root, and records its calls. */
function runRecorded(
  args: readonly string[],
  { library, record, root }: { readonly library: string; readonly record: string; readonly root: string },
): RunningProgram {
  const recorded = { LD_PRELOAD: library, IO_ROOT: root, IO_RECORD: record };
  return runProgram([...args, '--data', join(root, DATA)], { ...SETTINGS, ...recorded });
}

/**
 * Starts the real program on an image, drops one more file, and waits until every file is read.
 *
 * @param record the file for the record
 */
export async function startOn(
  image: string,
  { files, library }: Story,
  known: Known,
  record: string,
): Promise<void> {
  const recording = { library, record, root: image };
  writeFileSync(record, '');
  const program = runRecorded(['serve', '--port', '0'], recording);
  try {
    const url = await program.url();
    const drop = join(image, DATA, 'drop');
    const { alerts }: { alerts: { paused: number } } = JSON.parse(
      await (await fetch(`${url}/v1/health`)).text(),
    );
    if (alerts.paused === 1) await runRecorded(['ingest', 'resume'], recording).ended;
    // Without a known key, the subscription may not exist yet, and rows would be skipped.
    if (known.keys.size > 0) dropNew(record, drop, files);
    // One that a reset had taken is in .taken/, with a number before its name.
    const filesThat = (...what: string[]) =>
      program.log().flatMap(({ msg, file }) => (what.includes(String(msg)) ? String(file) : []));
    const isHeld = (name: string) =>
      filesThat('file held').some((one) => name === one || name.endsWith(`.${one}`));
    await program.until('the files to be read', () => filesWaiting(drop).every(isHeld) || undefined);
    const failed = filesThat('file failed', 'file refused').filter((name) => files.has(name));
    assert.deepEqual(failed, [], 'a good file must not fail');
    assert.equal(await program.stop(), 0, 'the program failed to stop');
    assert.deepEqual(program.log().filter(isErrorLine), [], 'a power cut must not cause errors in the log');
  } finally {
    await program.kill();
  }
}

function dropNew(record: string, drop: string, files: Story['files']): void {
  const row = newRow();
  const name = fileName('newswire', nextWindowMs());
  dropRecorded(record, join(drop, name), contentOf('ndjson', [row]));
  files.set(name, [idOf(row)]);
}

export interface Page {
  /** The rows as received, separated by commas. */
  readonly rows: string;
  readonly cursor: string;
}

const LIMIT = 40;
const POLL_MS = 4;
const BEGIN = '{"data":[';
const END = '],"next_cursor"';

/** Follows the change stream from now on. @param url of the appliance that runs @returns `pages`: by request id */
function startFollower(key: string, url: () => string | null) {
  const pages = new Map<string, Page>();
  const over = new AbortController();
  const follow = async () => {
    for (let start = `since=${formatMs(Date.now() - 60_000)}`; !over.signal.aborted; ) {
      const answer = await ask(url(), key, `${start}&limit=${LIMIT}`);
      if (answer !== null && answer.page.rows !== '') {
        pages.set(answer.request, answer.page);
        start = `cursor=${answer.page.cursor}`;
      }
      await sleep(POLL_MS);
    }
  };
  void follow();
  return { pages, stop: () => over.abort() };
}

/** @returns null if there is no page: the program has stopped, or is still starting */
async function ask(url: string | null, key: string, query: string) {
  if (url === null) return null;
  try {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/v1/detections/changes?${query}`, { headers });
    const body = await response.text();
    if (response.status !== 200) return null;
    const rows = body.slice(BEGIN.length, body.lastIndexOf(END));
    const { next_cursor } = JSON.parse(`{"x":[${body.slice(body.lastIndexOf(END))}`);
    const request = response.headers.get('x-request-id') ?? '';
    const page: Page = { rows, cursor: String(next_cursor) };
    return { request, page };
  } catch {
    return null;
  }
}
