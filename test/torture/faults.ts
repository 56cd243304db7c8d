/**
 * Every call on a file fails once, with one of four errors: the program retries, or an alert or an exit code says what
 * is wrong. After a restart at the latest, nothing is lost and the program continues.
 */
import { type Call, ERROR_NAMES, type ErrorName, type Injection } from './io/inject.ts';
import type { Part } from './part.ts';
import type { Trial } from './scenario/life.ts';
import { torment } from './scenario/trials.ts';

/** Reading cannot fill a disk. */
const OF_READS: readonly ErrorName[] = ['EIO', 'EBUSY', 'ESTALE'];
const READING =
  /^(read|readv|pread|pread64|open|opendir|fdopendir|scandir64|access|realpath|statx|stat64|lstat64|fstat64)$/;

export const faults: Part = {
  name: 'faults',
  about: 'every call on a file fails once with EIO, ENOSPC, EBUSY or ESTALE, in the same life',
  minutes: 920,
  needs: ['gcc'],
  run: (order) =>
    torment(order, {
      counted: 'changes and reads',
      injections: ({ number, name }: Call, prng) => {
        const error = prng.pick(READING.test(name) ? OF_READS : ERROR_NAMES);
        return [{ how: 'fail', at: number, name, error }];
      },
      check,
      kindsOf: (trial, injection) => [
        `${errorOf(injection)}: ${wayOf(trial)}`,
        `${errorOf(injection)} from ${trial.hit?.what.split(' ')[0]}`,
      ],
    }),
};

/** An error may prevent a start or end a command. A running appliance continues, or says that it cannot. */
function check({ events }: Trial): string | null {
  const ended = events.find((event) => /^the appliance, run:/.test(event) || event.endsWith('killed'));
  if (ended !== undefined) return `it ended by itself: ${ended}`;
  const mute = events.find((event) => /exit code \d+ *$/.test(event) || /^command [^:]*: \d+ *$/.test(event));
  return mute === undefined ? null : `it did not say why: ${mute}`;
}

/** How the program recovered. */
function wayOf({ events }: Trial): string {
  const [first] = events;
  if (first === undefined) return 'went on';
  if (first.startsWith('command')) return 'the command said so, and worked when repeated';
  if (first.startsWith('the appliance, start')) return 'the start said so, and worked when repeated';
  if (first.startsWith('the appliance, stop')) return 'the stop said so';
  return 'ingest stopped with an alert, and went on after a restart';
}

function errorOf(injection: Injection): string {
  return injection.how === 'fail' ? injection.error : injection.how;
}
