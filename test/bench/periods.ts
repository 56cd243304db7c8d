/**
 * Pages of a period: a thousand rows of one stream, and two hundred of eight, against bare servers with the same query.
 */
import { join } from 'node:path';
import {
  authorization,
  type Bench,
  CONNECTIONS,
  ordinalIn,
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
  // The period covers all rows.
  const from = new Date(first * 1000).toISOString();
  const to = new Date(last * 1000 + 1000).toISOString();
  const stream = ordinalIn(database, SUBSCRIPTIONS[0] ?? 0);
  const [fromSeconds, toSeconds] = [from, to].map((time) => Math.floor(Date.parse(time) / 1000));
  const ours = (scope: string) =>
    runLoad({
      url,
      connections: CONNECTIONS,
      requests: REQUESTS,
      headers: authorization(bench),
      path: () => `/v1/detections?from=${from}&to=${to}&limit=1000${scope}`,
    });
  const against = async (kind: string) => {
    const bare = await startBare(kind, database);
    try {
      const path = () => `/${stream}/0/${fromSeconds}/${toSeconds}`;
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
