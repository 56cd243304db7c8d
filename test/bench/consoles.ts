/**
 * The cost of ten open consoles for clients of the API, and the time that the console's views take. The database has
 * backfills of at most two million rows, and 90 days of windows of both exports, some of them failed. Each round
 * measures light requests without consoles, with consoles, and again without them, which shows the noise.
 */

import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../../src/store/database.ts';
import { OWN_PAGE, send, withSecret } from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';
import { authorization, type Bench, type Figure, median, SUBSCRIPTIONS } from './common.ts';
import { dropped, prepareAccess } from './ingest.ts';
import { runLoad } from './load.ts';
import { command, startAppliance, startClients } from './program.ts';

const CLIENTS = fileURLToPath(new URL('console-clients.ts', import.meta.url));
const REQUESTS = 10_000;

const FILE_ROWS = 2_000_000;
const WINDOWS = 90 * 144;
const FAILED = 200;

export async function consoles(bench: Bench): Promise<Figure[]> {
  await prepare(bench);
  return besideConsoles(bench);
}

/** Measures on an existing data folder. */
export async function besideConsoles(bench: Bench): Promise<Figure[]> {
  const port = await freePort();
  const appliance = await startAppliance(bench.data, undefined, { WIREWATCH_ADMIN_PORT: `${port}` });
  try {
    const origin = `http://127.0.0.1:${port}`;
    const secret = await session(bench.data, origin);
    const headers = withSecret(secret);
    const first = await viewMs(`${origin}/console/overview`, headers);
    const again = await viewMs(`${origin}/console/overview`, headers);
    const windows = await viewMs(`${origin}/console/windows`, headers);
    const light = () => lightMs(bench, appliance.url);
    await light();
    const alone: number[] = [];
    const beside: number[] = [];
    const noise: number[] = [];
    for (let round = 0; round < bench.rounds; round += 1) {
      alone.push(await light());
      const consoles = await startClients(CLIENTS, origin, secret);
      beside.push(await light());
      await consoles.stop();
      noise.push(await light());
    }
    const cost = (what: string, now: number, before: number | null): Figure => ({
      what,
      unit: 'ms',
      before,
      now,
      isCost: true,
    });
    return [
      cost('light request beside ten consoles, 99 of 100', median(beside), median(alone)),
      cost('the same once more without them: the noise', median(noise), median(alone)),
      cost("the console's overview, the first time", first, null),
      cost('the same again', again, null),
      cost("the console's map of 90 days of windows", windows, null),
    ];
  } finally {
    await appliance.stop();
  }
}

/** Creates the data folder with the requested number of rows, and the windows. */
async function prepare(bench: Bench): Promise<void> {
  rmSync(bench.data, { recursive: true, force: true });
  bench.key = prepareAccess(bench.data, SUBSCRIPTIONS);
  const appliance = await startAppliance(bench.data);
  try {
    const drop = join(bench.data, 'drop');
    for (let rows = 0; rows < bench.rows; rows += FILE_ROWS) {
      const part = ['--backfill', `part-${rows}`, '--seed', `${rows}`];
      const count = ['--rows', `${Math.min(FILE_ROWS, bench.rows - rows)}`, '--export', 'newswire'];
      const out = generated(bench, [...part, ...count]);
      await dropped(drop, out, readdirSync(out)[0] ?? '');
    }
    const out = generated(bench, ['--windows', `${WINDOWS}`, '--rows', '1', '--form', 'ndjson']);
    const files = readdirSync(out).sort();
    const apart = Math.floor(files.length / FAILED);
    for (const [at, file] of files.entries()) {
      if (at % apart === 0) writeFileSync(join(out, file), '{}\n');
      renameSync(join(out, file), join(drop, file));
    }
    while (windowsOf(bench) < files.length) await sleep(500);
  } finally {
    await appliance.stop();
  }
}

/** @returns the folder, otherwise empty */
function generated({ folder }: Bench, options: readonly string[]): string {
  const out = join(folder, 'consoles');
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out);
  command('generate', '--out', out, '--subscriptions', SUBSCRIPTIONS.join(','), ...options);
  return out;
}

function windowsOf({ data }: Bench): number {
  const db = openDatabase(join(data, 'detections.db'), 'read');
  try {
    const count = "SELECT count(*) FROM export_window WHERE status IN ('done', 'failed')";
    return db.prepare<[], number>(count).pluck().get() ?? 0;
  } finally {
    db.close();
  }
}

/** @returns the secret of a session */
async function session(data: string, origin: string): Promise<string> {
  const { url } = JSON.parse(command('console', '--data', data, '--json'));
  const token = new URL(url).hash.slice('#login='.length);
  const reply = await send('POST', `${origin}/console/session`, OWN_PAGE, { token });
  return JSON.parse(reply.text).secret;
}

async function viewMs(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  // Let the cached response of an earlier request expire.
  await sleep(3000);
  const startMs = performance.now();
  const { status } = await send('GET', url, headers);
  if (status !== 200) throw new Error(`${url} is ${status}`);
  return performance.now() - startMs;
}

/** The 99th percentile. */
async function lightMs(bench: Bench, url: string): Promise<number> {
  const load = { connections: 1, requests: REQUESTS, headers: authorization(bench), mayRest: true };
  const { durations_ms } = await runLoad({ ...load, url, path: () => '/v1/me' });
  return durations_ms[Math.floor(durations_ms.length * 0.99)] ?? 0;
}
