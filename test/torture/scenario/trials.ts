/** Repeats stages of the scenario many times, in parallel, each time with one call killed or failed. */
import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import type { Detection } from '../../support/appliance.ts';
import { seededPrng, shuffled } from '../../support/seeded-prng.ts';
import {
  type Call,
  type Counted,
  compileLibrary,
  createInjector,
  type Hit,
  type Injection,
} from '../io/inject.ts';
import { inEach, type PartOptions } from '../part.ts';
import { checkWorld } from './check.ts';
import { Model } from './model.ts';
import { makeSmallProgram } from './small-program.ts';
import { type Stage, stagesFrom } from './stages.ts';
import { type Snapshot, World } from './world.ts';

/** More would only compete for the disk. */
const WORKERS_MAX = 4;
const PROGRESS_EVERY = 25;
/**
 * The number of calls varies: near the end of a stage, a repeated run may have none left. Then an earlier one is tried.
 */
const EARLIER = 0.9;
const TRIES_MAX = 4;
/** The share of cases whose call a busy machine may still not make. A single case must fire. */
const MISSED_MAX = 0.05;

export interface TrialPlan {
  readonly counted: Counted;
  /** Which calls of a stage are one case, each with one name on one file: all of them, or those in a row. */
  readonly alike: 'all' | 'in a row';
  /** The fault to inject at a call. */
  readonly injection: (call: Call, prng: Prng) => Injection;
  /** Whether the appliance that runs after a kill is checked as it runs, without another start. */
  readonly isCheckedRunning?: boolean;
  /** A further check of the result. @returns the failure, or null */
  readonly check: (trial: Trial) => string | null;
  /** The figure that counts a case that fired. */
  readonly kindOf: (hit: Hit) => string;
}

type Chosen = Readonly<{ stage: RecordedStage; injection: Injection }>;

/** A possible case, with the properties by which cases are chosen. */
interface Case extends Chosen {
  /** What happens to which call: `kill midway write`. */
  readonly kind: string;
  /** The call, the stage or whether the appliance starts or stops, and the file. */
  readonly where: string;
}

/**
 * Runs the share's number of cases: first one of every kind, then another of each, and so on.
 *
 * TORTURE_CASE, a list of cases as printed by failures, runs only those.
 */
export async function runTrials(options: PartOptions, plan: TrialPlan): Promise<void> {
  const { stages, main, library } = await record(options.folder, plan.counted, options.onProgress);
  const cases = stages.flatMap((stage) => casesOf(stage, plan.injection, options.seed));
  const inAnyOrder = (list: readonly Case[]) => shuffled(seededPrng(options.seed, 'choice'), list);
  const all =
    plan.alike === 'all'
      ? [...new Map(inAnyOrder(cases).map((each) => [each.where, each])).values()]
      : inAnyOrder(endsOfRuns(cases));
  const { TORTURE_CASE } = process.env;
  const chosen = TORTURE_CASE === undefined ? choose(all, options) : casesNamed(TORTURE_CASE, stages);
  const { tally } = options;
  const { failures } = tally;
  tally.count('calls', cases.length);
  tally.count('cases in all', all.length);
  tally.count('cases', chosen.length);
  const missed: string[] = [];
  let done = 0;
  const lanes = Array.from({ length: Math.min(WORKERS_MAX, availableParallelism()) }, (_, index) =>
    makeWorld(main, library, join(options.folder, `lane-${index}`)),
  );
  await inEach(lanes, chosen, async (lane, each) => {
    const trial = await untilHit(lane, plan, each);
    const { hit, events } = trial;
    const failure = trial.failure ?? (hit === null ? null : plan.check(trial));
    if (hit === null && failure === null) missed.push(caseOf(each));
    if (hit !== null) {
      tally.count('fired');
      tally.count(`  ${plan.kindOf(hit)}`);
    }
    if (failure !== null) {
      const text = `TORTURE_CASE='[${caseOf(each)}]' (${hit?.what}): ${failure}\n    ${events.join('\n    ')}`;
      failures.push(text);
      options.onProgress(text);
    }
    done += 1;
    if (done % PROGRESS_EVERY === 0)
      options.onProgress(`${done} of ${chosen.length}, ${failures.length} wrong`);
  });
  if (missed.length > 0) tally.count('whose call did not occur again', missed.length);
  if (missed.length > chosen.length * MISSED_MAX)
    failures.push(`the calls of these did not occur: ${missed.join(', ')}`);
}

function casesOf(stage: RecordedStage, injectionAt: TrialPlan['injection'], seed: number): Case[] {
  const { steps, stop } = stage.callsBefore;
  const isAsOthers = isPlain(stage);
  const partOf = ({ number }: Call) => {
    if (isAsOthers && number <= steps) return 'start';
    return isAsOthers && number > stop ? 'stop' : stage.stage.name;
  };
  return stage.calls.map((call) => {
    const injection = injectionAt(call, seededPrng(seed, stage.stage.name, call.number));
    // Without the parts of a path that differ from run to run.
    const path = call.path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16}/g, '*').replace(/\d+/g, '*');
    const kind = `${injection.how} ${call.name}`;
    return { stage, injection, kind, where: `${call.name} ${partOf(call)} ${path}` };
  });
}

/** Whether it begins and ends as other stages do: of an appliance without a second machine, which has all its files. */
const isPlain = ({ stage: { serves, role = 'alone', without = [] }, before }: RecordedStage): boolean =>
  serves && role === 'alone' && without.length === 0 && before !== null;

/** The first, the middle and the last of each run of alike cases: SQLite writes hundreds of pages in a row. */
function endsOfRuns(cases: readonly Case[]): Case[] {
  const runs: Case[][] = [];
  for (const each of cases) {
    const run = runs.at(-1);
    if (run?.[0]?.where === each.where) run.push(each);
    else runs.push([each]);
  }
  return runs.flatMap((run) => run.filter((_, at) => [0, run.length >> 1, run.length - 1].includes(at)));
}

function choose(all: readonly Case[], { share }: PartOptions): Case[] {
  const kinds = [...Map.groupBy(all, ({ kind }) => kind).values()];
  const turns = kinds.flatMap((cases) => cases.map((each, turn) => ({ each, turn })));
  const inTurn = turns.sort((one, other) => one.turn - other.turn).map(({ each }) => each);
  return inTurn.slice(0, Math.ceil(all.length * share));
}

/** Repeats a case, in the list of TORTURE_CASE. */
const caseOf = ({ stage, injection }: Chosen): string =>
  JSON.stringify({ stage: stage.stage.name, ...injection });

function casesNamed(text: string, stages: readonly RecordedStage[]): Chosen[] {
  const cases: readonly (Injection & { readonly stage: string })[] = JSON.parse(text);
  return cases.map(({ stage: name, ...injection }) => {
    const stage = stages.find((each) => each.stage.name === name);
    if (stage === undefined) throw new Error(`TORTURE_CASE: no stage is called ${name}`);
    return { stage, injection };
  });
}

async function untilHit(lane: Lane, plan: TrialPlan, { stage, injection }: Chosen): Promise<Trial> {
  for (let tries = 1, at = injection.at; ; tries += 1, at = Math.max(1, Math.floor(at * EARLIER))) {
    const trial = await tryOnce(lane, plan, stage, { ...injection, at });
    if (trial.hit !== null || trial.failure !== null || tries === TRIES_MAX) return trial;
  }
}

interface RecordedStage {
  readonly stage: Stage;
  /** Null: nothing is installed yet. */
  readonly before: Snapshot | null;
  readonly calls: readonly Call[];
  /** How many of the calls are made before the first step, and before the stop. */
  readonly callsBefore: { readonly steps: number; readonly stop: number };
  /** The expected state after the stage. */
  readonly model: Model;
  readonly rows: readonly Detection[];
}

export interface Trial {
  readonly hit: Hit | null;
  /** See the world's. */
  readonly events: readonly string[];
  /** Null if everything held. */
  readonly failure: string | null;
}

/**
 * Runs the scenario once without faults, and records each stage: the state before it, its calls and its result.
 *
 * @param folder an empty folder
 * @throws AssertionError if even the run without faults differs from the model
 */
async function record(folder: string, counted: Counted, onProgress: (progress: string) => void) {
  const main = makeSmallProgram(folder);
  const library = compileLibrary(folder);
  const { world, injector } = makeWorld(main, library, join(folder, 'first'));
  const stages: RecordedStage[] = [];
  const done: Stage[] = [];
  let before: Snapshot | null = null;
  try {
    for (const stage of stagesFrom(Date.now())) {
      world.load(before);
      injector.begin(counted, null, true);
      const callsBefore = { steps: 0, stop: 0 };
      const onPart = (part: 'steps' | 'stop') => {
        callsBefore[part] = injector.trace().length;
      };
      await world.runStage(stage, { onPart });
      injector.end();
      const calls = injector.trace();
      done.push(stage);
      const model = new Model();
      for (const { steps } of done) for (const step of steps) step.expect?.(model);
      await world.start();
      const { rows } = await world.fresh();
      await world.stop();
      const after = world.save(join(folder, `after-${done.length}`));
      await checkWorld(world, model, null);
      stages.push({ stage, before, calls, callsBefore, model, rows });
      before = { ...after, copy: world.copy };
      onProgress(`${stage.name}: ${calls.length} calls`);
    }
  } finally {
    // A stage that fails leaves its program.
    await world.end();
  }
  return { stages, main, library };
}

function makeWorld(main: string, library: string, folder: string) {
  const root = join(folder, 'root');
  mkdirSync(root, { recursive: true });
  const injector = createInjector(library, root, join(folder, 'control'));
  return { world: new World(main, root, injector), injector };
}

type Lane = ReturnType<typeof makeWorld>;

/** Repeats a stage from the state before it, with one call killed or failed. */
async function tryOnce(
  { world, injector }: Lane,
  { counted, isCheckedRunning = false }: TrialPlan,
  { stage, before, callsBefore, model, rows }: RecordedStage,
  injection: Injection,
): Promise<Trial> {
  const isLeftRunning = isCheckedRunning && stage.role !== 'standby' && injection.at <= callsBefore.stop;
  world.load(before);
  injector.begin(counted, injection);
  let failure: string | null = null;
  try {
    await world.runStage(stage, { isLeftRunning });
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
