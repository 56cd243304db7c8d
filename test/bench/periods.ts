/**
 * Pages of a period: a thousand rows of one stream, and two hundred of eight, against bare servers with the same query.
 */
import { join } from 'node:path';
import {
  authorization,
  type Bench,
  CONNECTIONS,
  ordinalIn,
  periodOf,
  type Row,
  rangeOf,
  rounds,
  SUBSCRIPTIONS,
} from './common.ts';
import { runLoad } from './load.ts';
import { startBare } from './program.ts';

const REQUESTS = 600;

/** Requests the first page of a period repeatedly: later pages use the same query. */
export async function periods(bench: Bench, url: string): Promise<Row[]> {
  const database = join(bench.data, 'detections.db');
  const { first, last } = rangeOf(database);
  const period = periodOf(database);
  const stream = ordinalIn(database, SUBSCRIPTIONS[0] ?? 0);
  const ours = (scope: string) =>
    runLoad({
      url,
      connections: CONNECTIONS,
      requests: REQUESTS,
      headers: authorization(bench),
      path: () => `${period}${scope}`,
    });
  const against = async (kind: string) => {
    const bare = await startBare(kind, database);
    try {
      const path = () => `/${stream}/0/${first}/${last + 1}`;
      return await runLoad({ url: bare.url, connections: CONNECTIONS, requests: REQUESTS, path });
    } finally {
      await bare.stop();
    }
  };
  const one = await rounds(
    bench,
    () => ours(`&subscription_id=${SUBSCRIPTIONS[0]}&content_type=text`),
    () => against('period'),
  );
  const eight = await rounds(
    bench,
    () => ours(''),
    () => against('period-all'),
  );
  const against_ = 'node:http, the same rows by one query';
  return [
    { what: 'period page of 1,000 rows, one stream', against: against_, unit: 'pages/s', ...one, reach: 0.8 },
    {
      what: 'period page of 200 rows, eight streams',
      against: against_,
      unit: 'pages/s',
      ...eight,
      reach: 0.8,
    },
  ];
}
