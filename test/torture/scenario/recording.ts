/** Runs the scenario once without faults, and records each stage: the state before it, its calls and its result. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Detection } from '../../support/appliance.ts';
import {
  type Call,
  type Counted,
  compileLibrary,
  createInjector,
  type Hit,
  type Injection,
  type Injector,
} from '../io/inject.ts';
import { checkWorld } from './check.ts';
import { Model } from './model.ts';
import { makeSmallProgram } from './small-program.ts';
import { machineStagesFrom, type Stage, stagesFrom } from './stages.ts';
import { type Event, type Snapshot, World } from './world.ts';

export interface RecordedStage {
  readonly stage: Stage;
  /** Null: nothing is installed yet. */
  readonly before: Snapshot | null;
  readonly calls: readonly Call[];
  /** The expected state after the stage. */
  readonly model: Model;
  readonly rows: readonly Detection[];
}

/** The result of one injection. */
export interface Trial {
  readonly hit: Hit | null;
  readonly events: readonly Event[];
  /** Null if everything held. */
  readonly failure: string | null;
}

export type Recording = Awaited<ReturnType<typeof record>>;

/**
 * @param folder an empty folder
 * @throws AssertionError if even the run without faults differs from the model
 */
export async function record(folder: string, counted: Counted, onProgress: (progress: string) => void) {
  const main = makeSmallProgram(folder);
  const library = compileLibrary(folder);
  const { world, injector } = makeWorld(main, library, join(folder, 'first'));
  const stages: RecordedStage[] = [];
  const done: Stage[] = [];
  let before: Snapshot | null = null;
  const nowMs = Date.now();
  try {
    for (const stage of [...stagesFrom(nowMs), ...machineStagesFrom(nowMs)]) {
      world.load(before);
      injector.begin(counted, null, true);
      await world.runStage(stage);
      injector.end();
      const calls = injector.trace();
      done.push(stage);
      const model = modelOf(done);
      await world.start();
      const { rows } = await world.fresh();
      await world.stop();
      const after = world.save(join(folder, `after-${done.length}`));
      await checkWorld(world, model, null);
      stages.push({ stage, before, calls, model, rows });
      before = { ...after, copy: world.copy };
      onProgress(`${stage.name}: ${calls.length} calls`);
    }
  } finally {
    // A stage that fails leaves its program.
    await world.end();
  }
  return {
    stages,
    /**
     * @param own a folder that does not exist yet
     * @returns a function that repeats a stage from the state before it, with one call killed or failed
     */
    worker(own: string): (stage: RecordedStage, injection: Injection) => Promise<Trial> {
      const place = makeWorld(main, library, own);
      return (stage, injection) => tryOnce(place, counted, stage, injection);
    },
  };
}

interface Place {
  readonly world: World;
  readonly injector: Injector;
}

function makeWorld(main: string, library: string, folder: string): Place {
  const root = join(folder, 'root');
  mkdirSync(root, { recursive: true });
  const injector = createInjector(library, root, join(folder, 'control'));
  return { world: new World(main, root, injector), injector };
}

async function tryOnce(
  { world, injector }: Place,
  counted: Counted,
  { stage, before, model, rows }: RecordedStage,
  injection: Injection,
): Promise<Trial> {
  world.load(before);
  injector.begin(counted, injection);
  let failure: string | null = null;
  try {
    await world.runStage(stage);
    injector.end();
    const hit = injector.hit();
    await checkWorld(world, model, rows, {
      mayRebuild: isUnreadableDatabase(hit, injection),
      // A failing call may delay a file, and others are read first.
      mayReorder: injection.how === 'fail',
    });
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  } finally {
    injector.end();
    await world.end();
  }
  return { hit: injector.hit(), events: [...world.events], failure };
}

/** SQLite, and therefore the program, treats a read error (EIO) as damage. */
function isUnreadableDatabase(hit: Hit | null, injection: Injection): boolean {
  const isEio = injection.how === 'fail' && injection.error === 'EIO';
  return isEio && hit !== null && /^pread64 .*detections\.db/.test(hit.what);
}

function modelOf(stages: readonly Stage[]): Model {
  const model = new Model();
  for (const { steps } of stages) for (const step of steps) step.expect?.(model);
  return model;
}
