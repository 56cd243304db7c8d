/** The progress of `wirewatch pull`: a line that is redrawn on a terminal, and a line from time to time elsewhere. */
import { counted } from '../counted.ts';
import { printable } from '../printable.ts';
import { MINUTE_MS } from '../time.ts';
import { type ProgressStream, progressOfSteps } from './output.ts';

/** Without a terminal: often enough to see that a long copy continues, and nothing for a short one. */
const LINE_EVERY_MS = MINUTE_MS;

/** @param now epoch milliseconds */
export function pullProgress(stream: ProgressStream = process.stderr, now: () => number = Date.now) {
  const drawn = progressOfSteps({ stream, now });
  let lastMs = now();
  return {
    /** @param what is being read; rows, all that were read so far */
    update(what: string, rows: number): void {
      if (stream.isTTY === true) drawn.update(`${what}, rows`, rows);
      else if (now() - lastMs >= LINE_EVERY_MS) {
        lastMs = now();
        stream.write(`${printable(what)}: ${counted(rows, 'row')} read so far\n`);
      }
    },
    /** Clears the line of a terminal; what follows is printed in its place. */
    end: drawn.end,
  };
}
