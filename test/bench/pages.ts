/** Pages of the change stream, against the least that can serve them from the same database (bare-server.ts). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type Bench, type Figure, median, SUBSCRIPTIONS } from './common.ts';
import { dropped, exportOf, prepareAccess } from './ingest.ts';
import { authorization, type Load, type PathOf, runLoad, walkOf } from './load.ts';
import { startAppliance, stop } from './program.ts';

const PAGE_REQUESTS = 600;
/** The ordinal of the first stream of a new database. */
const FIRST = '1';

/** Pages per second of 1,000 rows of one stream, read to its end again and again. */
export async function pages(bench: Bench): Promise<Figure[]> {
  const data = join(bench.folder, 'data');
  const key = prepareAccess(data);
  const appliance = await startAppliance(data);
  const args = [join(import.meta.dirname, 'bare-server.ts'), join(data, 'detections.db'), FIRST];
  try {
    await dropped(join(data, 'drop'), exportOf(bench));
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [line] = await once(child.stdout, 'data');
      const fromStart: PathOf = (_, answer) => {
        const last = /\] (\d+)$/.exec(answer?.toString('latin1', Math.max(0, answer.length - 30)) ?? '')?.[1];
        return answer === null || answer.length < 100 ? '/0' : `/${last}`;
      };
      const load = { requests: PAGE_REQUESTS, headers: authorization(key) };
      const bare: Load = { ...load, url: `${line}`.trim(), path: fromStart };
      const own: Load = { ...load, url: appliance.url, path: walkOf(`&subscription_id=${SUBSCRIPTIONS[0]}`) };
      const rates: [number[], number[]] = [[], []];
      // The first round warms up.
      for (let round = 0; round <= bench.rounds; round += 1)
        for (const [which, side] of [bare, own].entries()) {
          const rate = await runLoad(side);
          if (round > 0) rates[which]?.push(rate);
        }
      const what = 'stream page of 1,000 rows, one stream';
      return [{ what, unit: 'pages/s', before: median(rates[0]), now: median(rates[1]) }];
    } finally {
      await stop(child, 'SIGTERM');
    }
  } finally {
    await appliance.stop();
  }
}
