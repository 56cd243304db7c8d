/** Pages of the change stream, against the least that can serve them from the same database (bare-server.ts). */
import { join } from 'node:path';
import { type Bench, type Figure, inTurn, median, SUBSCRIPTIONS } from './common.ts';
import { dropped, exportOf, prepareAccess } from './ingest.ts';
import { authorization, runLoad, walkOf, walkPlaces } from './load.ts';
import { startAppliance, startServer } from './program.ts';

const PAGE_REQUESTS = 600;
/** The ordinal of the first stream of a new database. */
const FIRST = '1';

/** Pages per second of 1,000 rows of one stream, read to its end again and again. */
export async function pages(bench: Bench): Promise<Figure[]> {
  const data = join(bench.folder, 'data');
  const headers = authorization(prepareAccess(data));
  await using appliance = await startAppliance(data);
  await dropped(join(data, 'drop'), exportOf(bench));
  await using bare = await startServer('bare-server.ts', join(data, 'detections.db'), FIRST);
  const sides = [
    { url: bare.url, path: walkPlaces },
    { url: appliance.url, path: walkOf(`&subscription_id=${SUBSCRIPTIONS[0]}`) },
  ];
  const measure = (side: (typeof sides)[number]) => runLoad({ ...side, headers, requests: PAGE_REQUESTS });
  const [before = 0, now = 0] = (await inTurn(sides, bench, measure)).map(median);
  return [{ what: 'stream page of 1,000 rows, one stream', unit: 'pages/s', before, now }];
}
