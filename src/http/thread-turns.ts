/** What needs one of Node's few threads for files takes turns, so that no kind of work has all of them. */

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
