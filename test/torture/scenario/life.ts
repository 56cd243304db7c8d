/** Runs the scenario once undisturbed and keeps the state before and after each stage, and the calls that each makes. */
import { cpSync, existsSync, mkdirSync } from 'node:fs';
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
import { type Stage, stagesFrom } from './stages.ts';
import { type Event, type Snapshot, World } from './world.ts';

export interface LivedStage {
  readonly stage: Stage;
  /** Null: nothing is installed. */
  readonly before: Snapshot | null;
  readonly calls: readonly Call[];
  /** After it. */
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

export interface Life {
  readonly stages: readonly LivedStage[];
  /**
   * @param folder not there yet
   * @returns a function that repeats a stage from the state before it, with one call hit
   */
  lane(folder: string): (stage: LivedStage, injection: Injection) => Promise<Trial>;
}

/**
 * @param folder of its own, empty
 * @throws AssertionError if even the undisturbed run differs from the model
 */
export async function live(
  folder: string,
  counted: Counted,
  tell: (progress: string) => void,
): Promise<Life> {
  const main = makeSmallProgram(folder);
  const library = compileLibrary(folder);
  const { world, injector } = makeWorld(main, library, join(folder, 'first'));
  const stages: LivedStage[] = [];
  const lived: Stage[] = [];
  let before: Snapshot | null = null;
  for (const stage of stagesFrom(Date.now())) {
    world.load(before);
    injector.begin(counted, null, true);
    await world.carryOut(stage);
    injector.end();
    const calls = injector.trace();
    lived.push(stage);
    const model = modelOf(lived);
    await world.start();
    const { rows } = await world.fresh();
    await world.stop();
    const after = world.save(join(folder, `after-${lived.length}`));
    await checkWorld(world, model, null);
    stages.push({ stage, before, calls, model, rows });
    before = { ...after, copy: world.copy };
    tell(`${stage.name}: ${calls.length} calls`);
  }
  return {
    stages,
    lane(own) {
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
  { stage, before, model, rows }: LivedStage,
  injection: Injection,
): Promise<Trial> {
  world.load(before);
  injector.begin(counted, injection);
  let failure: string | null = null;
  try {
    await world.carryOut(stage);
    injector.end();
    const hit = injector.hit();
    await checkWorld(world, model, rows, {
      mayRebuild: isUnreadableDatabase(hit, injection),
      // A file that an error delays is read after others.
      mayReorder: injection.how === 'fail',
    });
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    keep(world);
  } finally {
    injector.end();
    await world.end();
  }
  return { hit: injector.hit(), events: [...world.events], failure };
}

/** SQLite, and so the program, takes a read that fails with EIO for damage. */
function isUnreadableDatabase(hit: Hit | null, injection: Injection): boolean {
  const isEio = injection.how === 'fail' && injection.error === 'EIO';
  return isEio && hit !== null && /^pread64 .*detections\.db/.test(hit.what);
}

/** Keeps the files as the hit left them, and as the program left them afterwards. */
function keep({ root }: World): void {
  for (const folder of [root, `${root}-as-found`]) {
    if (!existsSync(folder)) continue;
    let number = 1;
    while (existsSync(`${folder}-${number}`)) number += 1;
    cpSync(folder, `${folder}-${number}`, { recursive: true, preserveTimestamps: true });
  }
}

function modelOf(stages: readonly Stage[]): Model {
  const model = new Model();
  for (const { acts } of stages) for (const act of acts) act.expect?.(model);
  return model;
}
