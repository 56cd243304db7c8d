/** What needs one of Node's few threads for files takes turns, so that no kind of work has all of them. */
import { Refused } from '../refused.ts';

export function createTurns(atOnce: number): <Value>(run: () => Promise<Value>) => Promise<Value> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (run) => {
    if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

/** Opens or reads a file that is sent: it may be on a share that hangs, and each call holds its thread until that is back. */
export const inFileTurn = createTurns(2);

/** While a share hangs, requests for its files must not take all connections, nor stay for clients that have gone. */
const OPENING_MAX = 200;
let opening = 0;

/** @throws Refused `unavailable` where so many files are being opened already */
export async function inOpeningTurn<Value>(open: () => Promise<Value>): Promise<Value> {
  if (opening >= OPENING_MAX) throw new Refused('unavailable', 'Too many files are being opened.');
  opening += 1;
  try {
    return await inFileTurn(open);
  } finally {
    opening -= 1;
  }
}
