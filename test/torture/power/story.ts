/**
 * Records a run of the real program through the stages of the scenario: its calls on files, responses and printed
 * output. In some stages it is killed.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { formatMs } from '../../../src/time.ts';
import { type RunningProgram, runProgram } from '../../support/program.ts';
import { compileLibrary, createInjector } from '../io/inject.ts';
import { type IoEvent, readRecord } from '../io/record.ts';
import { makeSmallProgram } from '../scenario/small-program.ts';
import { stagesFrom } from '../scenario/stages.ts';
import { DATA, SETTINGS, World } from '../scenario/world.ts';
import { Follower, type Page } from './follower.ts';

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
  /** The follower's key: of subscription 7001. */
  readonly key: string;
}

/** What the test itself deletes is not in the record, and expired files may be gone. */
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
  const drafts = join(folder, 'drafts');
  mkdirSync(drafts);
  let url: string | null = null;
  let follower: Follower | null = null;
  const onServer = (current: string | null) => {
    url = current;
    follower?.at(url);
  };
  const injector = createInjector(library, root, join(folder, 'control'));
  const world = new World(makeSmallProgram(folder), root, injector, { record, drafts, onServer });
  const files = new Map<string, readonly string[]>();
  world.load(null);
  try {
    for (const stage of stagesFrom(Date.now())) {
      if (LEFT_OUT.includes(stage.name)) continue;
      for (const step of stage.steps)
        if (step.kind === 'drop' && step.ids.length > 0) files.set(step.name, step.ids);
      const at = KILLS[stage.name];
      if (at !== undefined) injector.begin('changes', { how: 'kill', at });
      await world.runStage(stage);
      injector.end();
      follower ??= new Follower(world.keys.follower ?? '', `since=${formatMs(Date.now() - 60_000)}`);
    }
    const { follower: key = '' } = world.keys;
    return { events: readRecord(record), root, library, pages: follower?.pages ?? new Map(), files, key };
  } finally {
    follower?.stop();
    await world.end();
  }
}

/** Starts the program on the data folder below a root, and records its calls. */
export function runRecorded(
  args: readonly string[],
  { library, record, root }: { readonly library: string; readonly record: string; readonly root: string },
): RunningProgram {
  const recorded = { LD_PRELOAD: library, IO_ROOT: root, IO_RECORD: record };
  return runProgram([...args, '--data', join(root, DATA)], { ...SETTINGS, ...recorded });
}
