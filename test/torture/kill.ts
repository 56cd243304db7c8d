/**
 * Kills the program before each call that changes a file, and in the middle of each write. Then the program is started
 * again and the interrupted operation repeated, as an operator would.
 */
import type { Part } from './part.ts';
import { torment } from './scenario/trials.ts';

export const kill: Part = {
  name: 'kill',
  about: 'killed at every call that changes a file, in a life that has it all',
  minutes: 185,
  needs: ['gcc'],
  run: (order) =>
    torment(order, {
      counted: 'changes',
      injections: ({ number, name }, prng) => [
        { how: name.includes('write') && prng.chance(0.5) ? 'kill midway' : 'kill', at: number, name },
      ],
      check: ({ events }) => (events.some((event) => event.endsWith('killed')) ? null : 'nobody was killed'),
      kindsOf: ({ hit }) => [`${hit?.isMidway === true ? 'midway in' : 'before'} ${hit?.what.split(' ')[0]}`],
    }),
};
