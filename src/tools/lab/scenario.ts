/** A scenario: operations with their times, played by the clock of a lab. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../../clock.ts';
import { parseToml } from '../../config/file.ts';
import { LAB } from '../../operations/lab.ts';
import { readMembers } from '../../operations/member.ts';
import { pathOf } from '../../operations/operation.ts';
import { operationAt } from '../../operations/table.ts';
import { misused, reasonOf } from '../../refused.ts';
import { parseDuration } from '../../time.ts';

export interface Step {
  /** Milliseconds of the lab's clock from the start. */
  readonly atMs: number;
  /** The name of its operation in an address: `lab-drop`. */
  readonly path: string;
  /** Its members, as JSON. */
  readonly given: unknown;
}

const EXPECTED = '{"steps": [{"at": "10m", "drop": {"rows": 5}}, …]}, as JSON or TOML';
const TIMER_MAX_MS = 2 ** 31 - 1;
/** A lab's own operations, by what they are called in a step: `fault add` is `faults`. */
const LAB_STEPS = new Map(
  LAB.filter(({ kind }) => kind === 'act').map((operation) => {
    const name = pathOf(operation).slice('lab-'.length).replace('fault-add', 'faults');
    return [name, operation];
  }),
);

/** @throws Refused `usage` with the step that is wrong */
export function readScenario(file: string): Step[] {
  let script: unknown;
  try {
    const text = readFileSync(file, 'utf8');
    script = file.endsWith('.toml') ? parseToml(text) : JSON.parse(text);
  } catch (error) {
    throw misused(`cannot read the scenario ${file}: ${reasonOf(error, file)}. Expected ${EXPECTED}`);
  }
  const steps = typeof script === 'object' && script !== null && 'steps' in script ? script.steps : null;
  if (!Array.isArray(steps)) throw misused(`${file}: expected ${EXPECTED}`);
  return steps
    .map((step: unknown, index) => readStep(step, `${file}, step ${index + 1}`))
    .sort((first, other) => first.atMs - other.atMs);
}

function readStep(step: unknown, place: string): Step {
  const { at, ...operations } = Object(step);
  const atMs = typeof at === 'string' ? parseDuration(at) : null;
  const [name = '', ...more] = Object.keys(operations);
  if (atMs === null || atMs < 0)
    throw misused(`${place}: at: expected a duration from the start, such as 90s or 10m`);
  const operation = LAB_STEPS.get(name) ?? operationAt(name);
  if (operation === null || more.length > 0)
    throw misused(
      `${place}: expected at and one of ${[...LAB_STEPS.keys()].join(', ')}, or another operation such as window-reset`,
    );
  try {
    readMembers(operation.members, operations[name]);
    return { atMs, path: pathOf(operation), given: operations[name] };
  } catch (error) {
    throw misused(`${place}: ${reasonOf(error)}`);
  }
}

/**
 * Plays the steps, each when it is due. Steps that are due together run in order; one that fails does not stop the next.
 * @returns a function to call after the clock was moved
 */
export function playScenario(
  steps: readonly Step[],
  run: (step: Step) => Promise<unknown>,
  onFailure: (step: Step, error: unknown) => void,
): () => void {
  const startMs = now();
  let moved = Promise.withResolvers<void>();
  const play = async () => {
    for (const step of steps) {
      const leftMs = () => Math.min(startMs + step.atMs - now(), TIMER_MAX_MS);
      // Without a reference: a step that is not due must not keep the lab from ending.
      while (leftMs() > 0) await Promise.race([sleep(leftMs(), undefined, { ref: false }), moved.promise]);
      await run(step).catch((error: unknown) => onFailure(step, error));
    }
  };
  void play();
  return () => {
    moved.resolve();
    moved = Promise.withResolvers();
  };
}
