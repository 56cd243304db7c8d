/** Runs the stages of the scenario many times, several at once, each time with one call killed or failed. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Prng } from '../../../src/generate/prng.ts';
import { seededPrng } from '../../support/seeded-prng.ts';
import { type Call, type Counted, ERROR_NAMES, type Injection } from '../io/inject.ts';
import type { Order, Outcome } from '../part.ts';
import { type Life, type LivedStage, live, type Trial } from './life.ts';

/** More would only compete for the disk. */
const LANES_MAX = 4;
const TOLD_EVERY = 25;
/** The number of calls varies from run to run: near the end of a stage there may be none left to hit. */
const EARLIER = 0.9;
const TRIES_MAX = 4;

export interface Torment {
  readonly counted: Counted;
  /** What to do at each call, one at a time. */
  readonly injections: (call: Call, prng: Prng) => readonly Injection[];
  /** A further check of the result; null: it holds. */
  readonly check: (trial: Trial, injection: Injection) => string | null;
  /** Names under which a case that fired is counted. */
  readonly kindsOf: (trial: Trial, injection: Injection) => readonly string[];
}

interface Chosen {
  readonly stage: LivedStage;
  readonly injection: Injection;
}

/** A case that can be chosen, with what makes it similar to others. */
interface Case extends Chosen {
  /** What happens to which call: `fail EIO fsync`. */
  readonly kind: string;
  /** The kind, with the stage and the file. */
  readonly place: string;
}

/**
 * Chooses as many cases as the share says: first one of every kind, then one of every kind in every place, then the rest.
 *
 * TORTURE_CASE, as a failure prints it, runs that case alone; "; " separates several.
 */
export async function torment(
  order: Order,
  { counted, injections, check, kindsOf }: Torment,
): Promise<Outcome> {
  const life = await live(order.folder, counted, order.tell);
  const all = life.stages.flatMap((stage) => casesOf(stage, injections, order.seed));
  const repeated = process.env.TORTURE_CASE?.split('; ').map((text) => caseNamed(text, life.stages));
  const chosen = repeated ?? choose(all, order);
  const figures: Record<string, number> = {
    'calls of the whole scenario': life.stages.reduce((sum, { calls }) => sum + calls.length, 0),
    'cases in all': all.length,
    cases: chosen.length,
  };
  const count = (what: string) => {
    figures[what] = (figures[what] ?? 0) + 1;
  };
  const failures: string[] = [];
  let done = 0;
  await inLanes(chosen, order.folder, life, async (each, trial) => {
    const { injection } = each;
    const failure = trial.failure ?? (trial.hit === null ? 'nothing was hit' : check(trial, injection));
    if (trial.hit !== null) {
      count('fired');
      for (const kind of kindsOf(trial, injection)) count(`  ${kind}`);
    }
    if (failure !== null)
      failures.push(
        `TORTURE_CASE='${caseOf(each)}' (${trial.hit?.what}): ${failure}\n    ${trial.events.join('\n    ')}`,
      );
    done += 1;
    if (done % TOLD_EVERY === 0 || failure !== null)
      order.tell(
        `${done} of ${chosen.length}, ${failures.length} wrong${failure === null ? '' : `: ${failures.at(-1)}`}`,
      );
  });
  return { figures, failures };
}

function casesOf(stage: LivedStage, injections: Torment['injections'], seed: number): Case[] {
  return stage.calls.flatMap((call) => {
    const prng = seededPrng(seed, stage.stage.name, call.number);
    return injections(call, prng).map((injection) => {
      const kind = `${injection.how} ${injection.how === 'fail' ? injection.error : ''} ${call.name}`;
      return { stage, injection, kind, place: `${kind} ${stage.stage.name} ${plain(call.path)}` };
    });
  });
}

/** A path without the parts that differ from run to run. */
function plain(path: string): string {
  return path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '*').replace(/\d+/g, '*');
}

function choose(all: readonly Case[], { share, seed }: Order): Case[] {
  const prng = seededPrng(seed, 'choice');
  const shuffled = all.map((item) => ({ item, at: prng.unit() })).sort((one, other) => one.at - other.at);
  const places = ranks(shuffled, ({ item }) => item.place).sort((one, other) => one.rank - other.rank);
  const kinds = ranks(places, ({ of }) => of.item.kind);
  const first = kinds.filter(({ rank }) => rank === 0);
  const rest = kinds.filter(({ rank }) => rank > 0);
  return [...first, ...rest].slice(0, Math.ceil(all.length * share)).map(({ of }) => of.of.item);
}

/** How many items of the same kind precede each. */
function ranks<Item>(items: readonly Item[], kindOf: (item: Item) => string): { of: Item; rank: number }[] {
  const seen = new Map<string, number>();
  return items.map((of) => {
    const rank = seen.get(kindOf(of)) ?? 0;
    seen.set(kindOf(of), rank + 1);
    return { of, rank };
  });
}

/** The value of TORTURE_CASE that repeats it. */
function caseOf({ stage: { stage }, injection }: Chosen): string {
  const how = injection.how === 'fail' ? `fail ${injection.error}` : injection.how;
  return `${stage.name}, ${how} ${injection.at} ${injection.name}`;
}

/** @param text as {@link caseOf} writes it */
function caseNamed(text: string, stages: readonly LivedStage[]): Chosen {
  const [, name, how, at, call = ''] = /^(.+), (kill|kill midway|fail \w+) (\d+) (\w+)$/.exec(text) ?? [];
  const stage = stages.find((each) => each.stage.name === name);
  const error = ERROR_NAMES.find((each) => how === `fail ${each}`);
  const where = { at: Number(at), name: call };
  if (stage !== undefined && error !== undefined)
    return { stage, injection: { how: 'fail', error, ...where } };
  if (stage !== undefined && (how === 'kill' || how === 'kill midway'))
    return { stage, injection: { how, ...where } };
  throw new Error(`TORTURE_CASE: expected one like "removal, fail EIO 12 fsync", not "${text}"`);
}

async function inLanes(
  chosen: readonly Chosen[],
  folder: string,
  life: Life,
  done: (each: Chosen, trial: Trial) => Promise<void>,
): Promise<void> {
  const waiting = [...chosen].values();
  const lanes = Array.from({ length: Math.min(LANES_MAX, availableParallelism()) }, async (_, index) => {
    const lane = life.lane(join(folder, `lane-${index}`));
    for (const each of waiting) await done(each, await untilHit(lane, each));
  });
  await Promise.all(lanes);
}

async function untilHit(lane: ReturnType<Life['lane']>, { stage, injection }: Chosen): Promise<Trial> {
  for (let tries = 1, at = injection.at; ; tries += 1, at = Math.max(1, Math.floor(at * EARLIER))) {
    const trial = await lane(stage, { ...injection, at });
    if (trial.hit !== null || trial.failure !== null || tries === TRIES_MAX) return trial;
  }
}
