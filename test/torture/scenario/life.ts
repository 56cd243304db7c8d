/** The scenario, lived once undisturbed: what it is like before and after each stage, and which calls each stage makes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Detection } from '../../support/appliance.ts';
import { type Call, type Counted, compileLibrary, createInjector, type Injection, type Hit, type Injector } from '../io/inject.ts';
import { checkWorld } from './check.ts';
import { Model } from './model.ts';
import { makeSmallProgram } from './small-program.ts';
import { type Stage, stagesFrom } from './stages.ts';
import { type Event, type Snapshot, World } from './world.ts';

export interface LivedStage {
  readonly stage: Stage;
  /** Null: nothing is there. */
  readonly before: Snapshot | null;
  readonly calls: readonly Call[];
  /** After it. */
  readonly model: Model;
  readonly rows: readonly Detection[];
}

/** What came of one injection. */
export interface Trial {
  readonly hit: Hit | null;
  readonly events: readonly Event[];
  /** Null: everything held. */
  readonly failure: string | null;
}

export interface Life {
  readonly stages: readonly LivedStage[];
  /** Lives a stage once more, from what was before it, with something happening at one of its calls. */
  trial(stage: LivedStage, injection: Injection): Promise<Trial>;
}

/**
 * @param folder of its own, empty
 * @throws AssertionError where already the undisturbed life is not as the model has it
 */
export async function live(folder: string, counted: Counted, tell: (progress: string) => void): Promise<Life> {
  const main = makeSmallProgram();
  const root = join(folder, 'root');
  mkdirSync(root);
  const injector = createInjector(compileLibrary(folder), root, join(folder, 'control'));
  const world = new World(main, root, injector);
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
  return { stages, trial: (stage, injection) => tryOnce(world, injector, counted, stage, injection) };
}

async function tryOnce(
  world: World,
  injector: Injector,
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
    await checkWorld(world, model, rows);
  } catch (error) {
    failure = error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    injector.end();
    await world.end();
  }
  return { hit: injector.hit(), events: [...world.events], failure };
}

function modelOf(stages: readonly Stage[]): Model {
  const model = new Model();
  for (const { acts } of stages) for (const act of acts) act.then?.(model);
  return model;
}
