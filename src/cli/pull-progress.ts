/** The progress of `wirewatch pull`: a line that is redrawn on a terminal, and a line from time to time elsewhere. */

import { counted } from '../counted.ts';
import { printable } from '../printable.ts';
import { MINUTE_MS } from '../time.ts';
import { type Progress, type ProgressStream, progress } from './output.ts';

/** Without a terminal: often enough to see that a long copy continues, and nothing for a short one. */
const LINE_EVERY_MS = MINUTE_MS;

export interface PullProgress {
  /** @param what is being read; rows, all that were read so far */
  update(what: string, rows: number): void;
  /** Clears the line of a terminal; what follows is printed in its place. */
  end(): void;
}

/** @param now epoch milliseconds */
export function pullProgress(
  stream: ProgressStream = process.stderr,
  now: () => number = Date.now,
): PullProgress {
  if (stream.isTTY !== true) return lines(stream, now);
  let shown: { what: string; line: Progress } | null = null;
  const end = () => {
    shown?.line.end();
    shown = null;
  };
  return {
    update(what, rows) {
      if (shown?.what !== what) {
        end();
        shown = { what, line: progress(`${what}, rows`, { stream, now }) };
      }
      shown.line.update(rows);
    },
    end,
  };
}

function lines(stream: ProgressStream, now: () => number): PullProgress {
  let lastMs = now();
  return {
    update(what, rows) {
      if (now() - lastMs < LINE_EVERY_MS) return;
      lastMs = now();
      stream.write(`${printable(what)}: ${counted(rows, 'row')} read so far\n`);
    },
    end() {},
  };
}
