/**
 * `npm run bench`: each path of the appliance against its limit, within one run on one generated data set. What
 * counts is the ratio; machines differ, and so does one machine from minute to minute.
 *
 * Options: --rows N (300,000), --rounds N (3), --only NAME.
 */
import { copyFileSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { streamNumber } from '../../src/detection/content-type.ts';
import { openReader, openWriter } from '../../src/store/database.ts';
import { DETECTIONS_MIGRATIONS } from '../../src/store/detections-schema.ts';
import { runLoad } from './load.ts';
import { command, startAppliance, startBare } from './program.ts';

const SUBSCRIPTIONS = [7001, 7002, 7003, 7004];
const CONNECTIONS = 8;
const PAGE_REQUESTS = 600;
const LIGHT_REQUESTS = 20_000;

interface Row {
  readonly what: string;
  readonly against: string;
  readonly unit: string;
  readonly appliance: number;
  readonly limit: number;
  readonly reach: number;
}

interface Bench {
  readonly folder: string;
  readonly data: string;
  readonly rows: number;
  readonly rounds: number;
  key: string;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rows: { type: 'string' }, rounds: { type: 'string' }, only: { type: 'string' } },
  });
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-bench-'));
  const rows = Number(values.rows ?? 300_000);
  const bench: Bench = {
    folder,
    data: join(folder, 'data'),
    rows,
    rounds: Number(values.rounds ?? 3),
    key: '',
  };
  try {
    note(
      `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${rows} rows`,
    );
    command(
      'generate',
      '--out',
      join(folder, 'exports'),
      '--export',
      'newswire',
      '--rows',
      `${rows}`,
      '--subscriptions',
      SUBSCRIPTIONS.join(','),
    );
    const wanted = (name: string) => values.only === undefined || name.startsWith(values.only);
    const results: Row[] = [await ingest(bench)];
    const appliance = await startAppliance(bench.data);
    try {
      if (wanted('page')) results.push(...(await pages(bench, appliance.url)));
      if (wanted('light')) results.push(...(await light(bench, appliance.url)));
    } finally {
      await appliance.stop();
    }
    print(results);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Dropped to committed and archived, against inserting the same rows into the same tables. */
async function ingest(bench: Bench): Promise<Row> {
  const ours: number[] = [];
  const bare: number[] = [];
  const [file = ''] = readdirSync(join(bench.folder, 'exports'));
  for (let round = 0; round < bench.rounds; round += 1) {
    rmSync(bench.data, { recursive: true, force: true });
    prepareAccess(bench);
    const appliance = await startAppliance(bench.data);
    const drop = join(bench.data, 'drop');
    const copy = join(drop, `${file}.part`);
    // Copying it is not what is measured: it lies there, under a name that is left alone, before it is dropped.
    copyFileSync(join(bench.folder, 'exports', file), copy);
    const startMs = performance.now();
    renameSync(copy, join(drop, file));
    await archived(drop, file);
    ours.push(bench.rows / ((performance.now() - startMs) / 1000));
    await appliance.stop();
    bare.push(bareInsert(bench));
  }
  return {
    what: 'ingest, dropped to committed and archived',
    against: 'bare better-sqlite3, same rows, same tables, one transaction',
    unit: 'rows/s',
    appliance: median(ours),
    limit: median(bare),
    reach: 0.7,
  };
}

function prepareAccess(bench: Bench): void {
  const data = ['--data', bench.data];
  command('account', 'add', 'bench', '--name', 'Bench', ...data);
  for (const id of SUBSCRIPTIONS) command('subscription', 'add', `${id}`, '--account', 'bench', ...data);
  const made: unknown = JSON.parse(
    command(
      'key',
      'create',
      '--account',
      'bench',
      '--name',
      'bench',
      '--scopes',
      'detections:read',
      '--subscriptions',
      SUBSCRIPTIONS.join(','),
      '--json',
      ...data,
    ),
  );
  bench.key = String(Reflect.get(Object(made), 'key'));
}

async function archived(drop: string, file: string): Promise<void> {
  for (;;) {
    for (const day of readdirSync(join(drop, 'archive'))) {
      if (readdirSync(join(drop, 'archive', day)).includes(file)) return;
    }
    if (readdirSync(join(drop, 'failed')).length > 0) throw new Error(`${file} failed`);
    await sleep(2);
  }
}

/** @returns rows a second: each row is one in `detection` and one in `stream_row` */
function bareInsert(bench: Bench): number {
  const source = openReader(join(bench.data, 'detections.db'));
  const detections = source
    .prepare<unknown[], unknown[]>('SELECT * FROM detection ORDER BY rowid')
    .raw()
    .all();
  const streamRows = source
    .prepare<unknown[], unknown[]>('SELECT * FROM stream_row ORDER BY position')
    .raw()
    .all();
  source.close();
  const path = join(bench.folder, 'bare.db');
  const db = openWriter(path, DETECTIONS_MIGRATIONS);
  db.pragma('wal_autocheckpoint = 0');
  const places = (row: unknown[] | undefined) => (row ?? []).map(() => '?').join(', ');
  const insertDetection = db.prepare(`INSERT INTO detection VALUES (${places(detections[0])})`);
  const insertStreamRow = db.prepare(`INSERT INTO stream_row VALUES (${places(streamRows[0])})`);
  const startMs = performance.now();
  db.exec('BEGIN IMMEDIATE');
  for (const [index, row] of detections.entries()) {
    insertDetection.run(row);
    insertStreamRow.run(streamRows[index]);
  }
  db.exec('COMMIT');
  const seconds = (performance.now() - startMs) / 1000;
  db.close();
  for (const name of readdirSync(bench.folder))
    if (name.startsWith('bare.db')) rmSync(join(bench.folder, name));
  return detections.length / seconds;
}

/** Pages of 1,000 rows, walked through to the end and again from the start. */
async function pages(bench: Bench, url: string): Promise<Row[]> {
  const database = join(bench.data, 'detections.db');
  const stream = streamNumber(SUBSCRIPTIONS[0] ?? 0, 'text');
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const first = `/v1/detections/changes?limit=1000&since=${since}`;
  const walk = (scope: string) => (_: number, answer: Buffer | null) => {
    const tail = answer?.toString('latin1', Math.max(0, answer.length - 300)) ?? '';
    const cursor = /"has_more":true/.test(tail) ? /"next_cursor":"([^"]+)"/.exec(tail)?.[1] : undefined;
    return (cursor === undefined ? first : `/v1/detections/changes?limit=1000&cursor=${cursor}`) + scope;
  };
  const walkBare = (_: number, answer: Buffer | null) => {
    const last =
      answer === null ? '0' : (/\d+$/.exec(answer.toString('latin1', answer.length - 20))?.[0] ?? '0');
    return `/${stream}/${last}`;
  };
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
      reach: 0.7,
    },
    {
      what: `${what}, four streams`,
      against: 'node:http, one group_concat query over all',
      unit: 'pages/s',
      ...all,
      reach: 0.7,
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

async function light(bench: Bench, url: string): Promise<Row[]> {
  const headers = authorization(bench);
  const head = await fetch(`${url}/v1/detections/changes?limit=1&since=${new Date().toISOString()}`, {
    headers,
  });
  const { next_cursor }: { next_cursor: string } = JSON.parse(await head.text());
  const db = openReader(join(bench.data, 'detections.db'));
  const ids = db
    .prepare<unknown[], string>('SELECT id FROM detection ORDER BY rowid LIMIT 10000')
    .pluck()
    .all();
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
    { what: 'empty poll, with key check', against, unit: 'requests/s', ...poll, reach: 0.3 },
    { what: 'one detection by id, with key check', against, unit: 'requests/s', ...one, reach: 0.3 },
  ];
}

/** One after the other, in turn: what slows the machine slows both. The first turn of each warms up. */
async function rounds(
  bench: Bench,
  ours: () => ReturnType<typeof runLoad>,
  limit: () => ReturnType<typeof runLoad>,
): Promise<{ appliance: number; limit: number }> {
  const appliance: number[] = [];
  const bare: number[] = [];
  await ours();
  for (let round = 0; round < bench.rounds; round += 1) {
    bare.push((await limit()).requests_per_second);
    appliance.push((await ours()).requests_per_second);
  }
  return { appliance: median(appliance), limit: median(bare) };
}

function authorization(bench: Bench): Record<string, string> {
  return { authorization: `Bearer ${bench.key}` };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

function print(results: readonly Row[]): void {
  const lines = results.map((row) => {
    const ratio = row.appliance / row.limit;
    const verdict = ratio >= row.reach ? 'reached' : 'NOT REACHED';
    const figures = `${Math.round(row.appliance)} / ${Math.round(row.limit)} ${row.unit}`;
    return `| ${row.what} | ${row.against} | ${figures} | ${ratio.toFixed(2)} | ${row.reach} | ${verdict} |`;
  });
  note(['| what | against | measured | ratio | reach | |', '|---|---|---|---|---|---|', ...lines].join('\n'));
}

function note(text: string): void {
  process.stdout.write(`${text}\n`);
}

await main();
