/** A scenario: operations with their times, played by the clock of a lab. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../../clock.ts';
import { parseToml } from '../../config/file.ts';
import { isObject } from '../../is-object.ts';
import { readMembers } from '../../operations/member.ts';
import { pathOf } from '../../operations/operation.ts';
import { operationAt } from '../../operations/table.ts';
import { misused, reasonOf } from '../../refused.ts';
import { parseDuration } from '../../time.ts';

type Step = ReturnType<typeof readStep>;

const EXPECTED = '{"steps": [{"at": "10m", "drop": {"rows": 5}}, …]}, as JSON or TOML';
const TIMER_MAX_MS = 2 ** 31 - 1;

/** @throws Refused `usage` with the step that is wrong */
export function readScenario(file: string): Step[] {
  let script: unknown;
  try {
    const text = readFileSync(file, 'utf8');
    script = file.endsWith('.toml') ? parseToml(text) : JSON.parse(text);
  } catch (error) {
    throw misused(`cannot read the scenario ${file}: ${reasonOf(error, file)}. Expected ${EXPECTED}`);
  }
  const steps = isObject(script) ? script.steps : null;
  if (!Array.isArray(steps)) throw misused(`${file}: expected ${EXPECTED}`);
  return steps
    .map((step: unknown, index) => readStep(step, `${file}, step ${index + 1}`))
    .sort((first, other) => first.atMs - other.atMs);
}

/**
 * @returns `atMs`: milliseconds of the lab's clock from the start; `path`: the name of its operation in an address, such as
 *   `lab-drop`; `given`: its members, as JSON
 */
function readStep(step: unknown, place: string) {
  const { at, ...operations } = Object(step);
  const atMs = typeof at === 'string' ? parseDuration(at) : null;
  const [name = '', ...more] = Object.keys(operations);
  if (atMs === null || atMs < 0)
    throw misused(`${place}: at: expected a duration from the start, such as 90s or 10m`);
  // A lab's own are called without the group: `drop`, and `faults` for `fault add`.
  const operation = operationAt(`lab-${name === 'faults' ? 'fault-add' : name}`) ?? operationAt(name);
  if (operation === null || more.length > 0)
    throw misused(
      `${place}: expected at and one operation, of the lab such as drop, clock or faults, or another one such as window-reset`,
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
