/** Pages of the change stream and of a period, against bare servers on the same database. */
import { join } from 'node:path';
import {
  authorization,
  type Bench,
  CONNECTIONS,
  lastNumber,
  ordinalIn,
  type Row,
  rounds,
  SUBSCRIPTIONS,
} from './common.ts';
import { runLoad } from './load.ts';
import { startBare } from './program.ts';

const PAGE_REQUESTS = 600;

/** Paths that read the change stream page by page, and start again at its end. */
export function walkOf(limit: number): (scope: string) => (_: number, answer: Buffer | null) => string {
  const pages = `/v1/detections/changes?limit=${limit}`;
  const first = `${pages}&since=${new Date(Date.now() - 3_600_000).toISOString()}`;
  return (scope) => (_, answer) => {
    const tail = answer?.toString('latin1', Math.max(0, answer.length - 300)) ?? '';
    const cursor = /"has_more":true/.test(tail) ? /"next_cursor":"([^"]+)"/.exec(tail)?.[1] : undefined;
    return (cursor === undefined ? first : `${pages}&cursor=${cursor}`) + scope;
  };
}

/** Reads pages of 1,000 rows to the end of the stream, and then again from its start. */
export async function pages(bench: Bench, url: string): Promise<Row[]> {
  const database = join(bench.data, 'detections.db');
  const stream = ordinalIn(database, SUBSCRIPTIONS[0] ?? 0);
  const walk = walkOf(1000);
  const walkBare = (_: number, answer: Buffer | null) => `/${stream}/${lastNumber(answer)}`;
  const ours = (scope: string) =>
    runLoad({
      url,
      connections: CONNECTIONS,
      requests: PAGE_REQUESTS,
      headers: authorization(bench),
      path: walk(scope),
    });
  const against = async (kind: string) => {
    const bare = await startBare(kind, database);
    try {
      return await runLoad({
        url: bare.url,
        connections: CONNECTIONS,
        requests: PAGE_REQUESTS,
        path: walkBare,
      });
    } finally {
      await bare.stop();
    }
  };
  const one = await rounds(
    bench,
    () => ours(`&subscription_id=${SUBSCRIPTIONS[0]}`),
    () => against('grouped'),
  );
  const all = await rounds(
    bench,
    () => ours(''),
    () => against('grouped-all'),
  );
  const rowByRow = await rounds(
    bench,
    () => ours(`&subscription_id=${SUBSCRIPTIONS[0]}`),
    () => against('row-by-row'),
  );
  const what = 'stream page of 1,000 rows';
  return [
    {
      what: `${what}, one stream`,
      against: 'node:http, one group_concat query',
      unit: 'pages/s',
      ...one,
      reach: 0.8,
    },
    {
      what: `${what}, four streams`,
      against: 'node:http, one group_concat query over all',
      unit: 'pages/s',
      ...all,
      reach: 0.8,
    },
    {
      what: `${what}, one stream`,
      against: 'node:http, parsed and stringified row by row',
      unit: 'pages/s',
      ...rowByRow,
      reach: 2.5,
    },
  ];
}
