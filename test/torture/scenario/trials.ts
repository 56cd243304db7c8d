/** Many lives of the scenario's stages, each with one call hit: chosen, lived side by side, counted. */

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Prng } from '../../../src/generate/prng.ts';
import { seededPrng } from '../../support/seeded-prng.ts';
import { type Call, type Counted, ERROR_NAMES, type Injection } from '../io/inject.ts';
import type { Order, Outcome } from '../part.ts';
import { type Life, type LivedStage, live, type Trial } from './life.ts';

/** More would only wait for each other's disk. */
const LANES_MAX = 4;
const TOLD_EVERY = 25;
/** A run makes now a call more, now one less; near the end there may be none to hit. */
const EARLIER = 0.9;
const TRIES_MAX = 4;

export interface Torment {
  readonly counted: Counted;
  /** What is done to each call, in turn. */
  readonly injections: (call: Call, prng: Prng) => readonly Injection[];
  /** What else must hold of what came of it; null: it does. */
  readonly judge: (trial: Trial, injection: Injection) => string | null;
  /** Under which names it is counted, once it has fired. */
  readonly kindsOf: (trial: Trial, injection: Injection) => readonly string[];
}

interface Chosen {
  readonly stage: LivedStage;
  readonly injection: Injection;
}

/** One that can be chosen, and with what it is alike. */
interface Case extends Chosen {
  /** In what is done to which call: `fail EIO fsync`. */
  readonly deed: string;
  /** And where: in which stage, to which file. */
  readonly place: string;
}

/**
 * As many as the share says, so that every deed comes first, then each of them in every place, then all else.
 *
 * With TORTURE_CASE set to what a failure says repeats it, that one alone; several with "; " between them.
 */
export async function torment(
  order: Order,
  { counted, injections, judge, kindsOf }: Torment,
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
    const failure = trial.failure ?? (trial.hit === null ? 'nothing was hit' : judge(trial, injection));
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
      const deed = `${injection.how} ${injection.how === 'fail' ? injection.error : ''} ${call.name}`;
      return { stage, injection, deed, place: `${deed} ${stage.stage.name} ${plain(call.path)}` };
    });
  });
}

/** A path without what is another in each run. */
function plain(path: string): string {
  return path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '*').replace(/\d+/g, '*');
}

function choose(all: readonly Case[], { share, seed }: Order): Case[] {
  const prng = seededPrng(seed, 'choice');
  const shuffled = all.map((item) => ({ item, at: prng.unit() })).sort((one, other) => one.at - other.at);
  const places = ranks(shuffled, ({ item }) => item.place).sort((one, other) => one.rank - other.rank);
  const deeds = ranks(places, ({ of }) => of.item.deed);
  const first = deeds.filter(({ rank }) => rank === 0);
  const rest = deeds.filter(({ rank }) => rank > 0);
  return [...first, ...rest].slice(0, Math.ceil(all.length * share)).map(({ of }) => of.of.item);
}

/** Which one of its kind each is, in their order. */
function ranks<Item>(items: readonly Item[], kindOf: (item: Item) => string): { of: Item; rank: number }[] {
  const seen = new Map<string, number>();
  return items.map((of) => {
    const rank = seen.get(kindOf(of)) ?? 0;
    seen.set(kindOf(of), rank + 1);
    return { of, rank };
  });
}

/** What repeats it, at the same call though another run may have one more before it. */
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
