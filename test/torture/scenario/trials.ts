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
  ERROR_NAMES,
  type Hit,
  type Injection,
} from '../io/inject.ts';
import { inEach, type Outcome, type PartOptions, Tally } from '../part.ts';
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
  readonly check: (trial: Trial, injection: Injection) => string | null;
  /** The figures that count a case that fired. */
  readonly kindsOf: (trial: Trial, injection: Injection) => readonly string[];
}

interface Chosen {
  readonly stage: RecordedStage;
  readonly injection: Injection;
}

/** A possible case, with the properties by which cases are chosen. */
interface Case extends Chosen {
  readonly call: string;
  /** The fault and the call: `fail EIO fsync`. */
  readonly kind: string;
  /** The call, the stage or whether the appliance starts or stops, and the file. */
  readonly where: string;
}

/**
 * Chooses the share's number of cases: first one of every call, then of every kind of each, then of every kind in every
 * place, then others.
 *
 * TORTURE_CASE, as printed by a failure, runs only that case, and leaves its files; "; " separates several.
 */
export async function runTrials(
  options: PartOptions,
  { counted, alike, injection: injectionAt, isCheckedRunning = false, check, kindsOf }: TrialPlan,
): Promise<Outcome> {
  const recording = await record(options.folder, counted, options.onProgress);
  const cases = recording.stages.flatMap((stage) => casesOf(stage, injectionAt, options.seed));
  const inAnyOrder = (list: readonly Case[]) => shuffled(seededPrng(options.seed, 'choice'), list);
  const all =
    alike === 'all'
      ? [...new Map(inAnyOrder(cases).map((each) => [each.where, each])).values()]
      : inAnyOrder(endsOfRuns(cases));
  const repeated = process.env.TORTURE_CASE?.split('; ').map((text) => caseNamed(text, recording.stages));
  const chosen = repeated ?? choose(all, options);
  const tally = new Tally();
  const { failures } = tally;
  tally.count('calls', cases.length);
  tally.count('cases in all', all.length);
  tally.count('cases', chosen.length);
  const missed: string[] = [];
  let done = 0;
  const workers = Array.from({ length: Math.min(WORKERS_MAX, availableParallelism()) }, (_, index) =>
    recording.worker(join(options.folder, `lane-${index}`), isCheckedRunning),
  );
  await inEach(workers, chosen, async (worker, each) => {
    const trial = await untilHit(worker, each);
    const { injection } = each;
    const failure = trial.failure ?? (trial.hit === null ? null : check(trial, injection));
    if (trial.hit === null && trial.failure === null) missed.push(caseOf(each));
    if (trial.hit !== null) {
      tally.count('fired');
      for (const kind of kindsOf(trial, injection)) tally.count(`  ${kind}`);
    }
    if (failure !== null)
      failures.push(
        `TORTURE_CASE='${caseOf(each)}' (${trial.hit?.what}): ${failure}\n    ${trial.events.join('\n    ')}`,
      );
    done += 1;
    if (done % PROGRESS_EVERY === 0 || failure !== null)
      options.onProgress(
        `${done} of ${chosen.length}, ${failures.length} wrong${failure === null ? '' : `: ${failures.at(-1)}`}`,
      );
  });
  if (missed.length > 0) tally.count('whose call did not occur again', missed.length);
  if (missed.length > chosen.length * MISSED_MAX)
    failures.push(`the calls of these did not occur: ${missed.join('; ')}`);
  return tally;
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
    const kind = `${injection.how} ${injection.how === 'fail' ? injection.error : ''} ${call.name}`;
    const where = `${call.name} ${partOf(call)} ${plain(call.path)}`;
    return { stage, injection, call: call.name, kind, where };
  });
}

/** Whether it begins and ends as other stages do: of an appliance without a second machine, which has all its files. */
function isPlain({ stage: { serves, role = 'alone', without = [] }, before }: RecordedStage): boolean {
  return serves && role === 'alone' && without.length === 0 && before !== null;
}

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

/** A path without the parts that differ from run to run. */
function plain(path: string): string {
  return path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16}/g, '*').replace(/\d+/g, '*');
}

function choose(all: readonly Case[], { share }: PartOptions): Case[] {
  const places = inTurn(all, ({ kind, where }) => `${kind} ${where}`);
  const kinds = inTurn(places, ({ kind }) => kind);
  return inTurn(kinds, ({ call }) => call).slice(0, Math.ceil(all.length * share));
}

/** One item of each kind, then another of each, and so on; within a turn in their order. */
function inTurn<Item>(items: readonly Item[], kindOf: (item: Item) => string): Item[] {
  const counts = new Map<string, number>();
  const turns = items.map((item) => {
    const turn = counts.get(kindOf(item)) ?? 0;
    counts.set(kindOf(item), turn + 1);
    return { item, turn };
  });
  return turns.sort((one, other) => one.turn - other.turn).map(({ item }) => item);
}

/** The value of TORTURE_CASE that repeats a case. */
function caseOf({ stage: { stage }, injection }: Chosen): string {
  const how = injection.how === 'fail' ? `fail ${injection.error}` : injection.how;
  return `${stage.name}, ${how} ${injection.at} ${injection.name}`;
}

function caseNamed(text: string, stages: readonly RecordedStage[]): Chosen {
  const [, name, how, at, call = ''] = /^(.+), (kill|kill midway|fail \w+) (\d+) (\w+)$/.exec(text) ?? [];
  const stage = stages.find((each) => each.stage.name === name);
  const error = ERROR_NAMES.find((each) => how === `fail ${each}`);
  const where = { at: Number(at), name: call };
  if (stage !== undefined && error !== undefined)
    return { stage, injection: { how: 'fail', error, ...where } };
  if (stage !== undefined && (how === 'kill' || how === 'kill midway'))
    return { stage, injection: { how, ...where } };
  throw new Error(`TORTURE_CASE: expected a case such as "removal, fail EIO 12 fsync", not "${text}"`);
}

async function untilHit(
  worker: ReturnType<Recording['worker']>,
  { stage, injection }: Chosen,
): Promise<Trial> {
  for (let tries = 1, at = injection.at; ; tries += 1, at = Math.max(1, Math.floor(at * EARLIER))) {
    const trial = await worker(stage, { ...injection, at });
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

type Recording = Awaited<ReturnType<typeof record>>;

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
      await world.runStage(stage, {
        onPart(part) {
          callsBefore[part] = injector.trace().length;
        },
      });
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
  return {
    stages,
    /**
     * @param own a folder that does not exist yet
     * @returns a function that repeats a stage from the state before it, with one call killed or failed
     */
    worker(
      own: string,
      isCheckedRunning: boolean,
    ): (stage: RecordedStage, injection: Injection) => Promise<Trial> {
      const place = makeWorld(main, library, own);
      return (stage, injection) => {
        const isLeftRunning =
          isCheckedRunning && stage.stage.role !== 'standby' && injection.at <= stage.callsBefore.stop;
        return tryOnce(place, { counted, isLeftRunning }, stage, injection);
      };
    },
  };
}

function makeWorld(main: string, library: string, folder: string) {
  const root = join(folder, 'root');
  mkdirSync(root, { recursive: true });
  const injector = createInjector(library, root, join(folder, 'control'));
  return { world: new World(main, root, injector), injector };
}

async function tryOnce(
  { world, injector }: ReturnType<typeof makeWorld>,
  { counted, isLeftRunning }: { counted: Counted; isLeftRunning: boolean },
  { stage, before, model, rows }: RecordedStage,
  injection: Injection,
): Promise<Trial> {
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
