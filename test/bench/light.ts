/** Light requests, against a bare server that sends 100 fixed bytes. */

import { join } from 'node:path';
import { openDatabase } from '../../src/store/database.ts';
import { authorization, type Bench, CONNECTIONS, type Row, rounds } from './common.ts';
import { runLoad } from './load.ts';
import { startBare } from './program.ts';

const LIGHT_REQUESTS = 20_000;

/** An empty poll, and one detection by id, each with its key check. */
export async function light(bench: Bench, url: string): Promise<Row[]> {
  const headers = authorization(bench);
  const head = await fetch(`${url}/v1/detections/changes?limit=1&since=${new Date().toISOString()}`, {
    headers,
  });
  const { next_cursor }: { next_cursor: string } = JSON.parse(await head.text());
  const db = openDatabase(join(bench.data, 'detections.db'), 'read');
  const ids = db.prepare<unknown[], string>('SELECT id FROM detection LIMIT 10000').pluck().all();
  db.close();
  let turn = 0;
  const paths = {
    poll: () => `/v1/detections/changes?cursor=${next_cursor}`,
    one: () => {
      turn += 7919;
      return `/v1/detections/${ids[turn % ids.length]}`;
    },
    fixed: () => '/',
  };
  const load = (to: string, path: () => string) =>
    runLoad({ url: to, connections: CONNECTIONS, requests: LIGHT_REQUESTS, headers, path });
  const fixed = async () => {
    const bare = await startBare('fixed');
    try {
      return await load(bare.url, paths.fixed);
    } finally {
      await bare.stop();
    }
  };
  const poll = await rounds(bench, () => load(url, paths.poll), fixed);
  const one = await rounds(bench, () => load(url, paths.one), fixed);
  const against = 'node:http, 100 fixed bytes';
  return [
    { what: 'empty poll, with key check', against, unit: 'requests/s', ...poll, reach: 0.5 },
    { what: 'one detection by id, with key check', against, unit: 'requests/s', ...one, reach: 0.5 },
  ];
}
