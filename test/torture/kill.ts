/**
 * Kills the program before each call that changes a file, and in the middle of writes: of equal calls in a row before the
 * first, the middle and the last. Then starts it again and repeats the interrupted operation, as an operator would.
 */
import type { Part } from './part.ts';
import { runTrials } from './scenario/trials.ts';

export const kill: Part = {
  name: 'kill',
  about: 'kills the program at calls that change a file, in a scenario with all operations',
  run: (options) =>
    runTrials(options, {
      counted: 'changes',
      alike: 'in a row',
      isCheckedRunning: true,
      injection: ({ number, name }, prng) => ({
        how: name.includes('write') && prng.chance(0.5) ? 'kill midway' : 'kill',
        at: number,
        name,
      }),
      check: ({ events }) =>
        events.some((event) => event.endsWith('killed')) ? null : 'no process was killed',
      kindOf: ({ what, isMidway }) => `${isMidway ? 'midway in' : 'before'} ${what.split(' ')[0]}`,
    }),
};
