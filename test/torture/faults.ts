/**
 * Makes calls on files fail, each kind of call on each file once in each stage, with one of four errors; starts that are
 * alike are one stage, and so are stops. The program must retry, or report the error with an alert or an exit code. After
 * a restart at the latest, it must continue, and nothing may be lost.
 */
import { ERROR_NAMES, type ErrorName } from './io/inject.ts';
import type { Part } from './part.ts';
import type { Trial } from './scenario/trials.ts';
import { runTrials } from './scenario/trials.ts';

/** Reading cannot fill a disk. */
const OF_READS: readonly ErrorName[] = ['EIO', 'EBUSY', 'ESTALE'];
const READING =
  /^(read|readv|pread64|open|opendir|fdopendir|scandir64|access|realpath|statx|stat64|lstat64|fstat64)$/;

export const faults: Part = {
  name: 'faults',
  about: 'each kind of call on each file fails once in each stage, with EIO, ENOSPC, EBUSY or ESTALE',
  run: (options) =>
    runTrials(options, {
      counted: 'changes and reads',
      alike: 'all',
      injection: ({ number, name }, prng) => {
        const error = prng.pick(READING.test(name) ? OF_READS : ERROR_NAMES);
        return { how: 'fail', at: number, name, error };
      },
      check,
      kindOf: ({ what }) => `in ${what.split(' ')[0]}`,
    }),
};

/** An error may prevent a start or end a command. A running appliance must continue, or report that it cannot. */
function check({ events }: Trial): string | null {
  const ended = events.find((event) => /^the appliance, run:/.test(event) || event.endsWith('killed'));
  if (ended !== undefined) return `the appliance exited: ${ended}`;
  const mute = events.find((event) => /exit code \d+ *$/.test(event) || /^command [^:]*: \d+ *$/.test(event));
  return mute === undefined ? null : `no error message: ${mute}`;
}
