/** How long an operator waits at rest, and while a large file is applied: for a revocation, and for the console's overview. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { consoleOf, redeem } from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';
import { type Bench, cost, type Figure, median } from './common.ts';
import { createKey, dropped, exportOf, prepareAccess } from './ingest.ts';
import { authorization } from './load.ts';
import { command, startAppliance } from './program.ts';

const TIMES = 15;
const PAUSE_MS = 500;
/** All that the overview asks for when it is opened. */
const OVERVIEW = [
  'overview',
  'operations',
  'windows',
  'customers',
  'detections/live?limit=6',
  'jobs',
  'trends?days=1',
];

/** The median and the longest time of each act at rest (`before`) and beside the ingest of all rows of the bench. */
export async function besideIngest(bench: Bench): Promise<Figure[]> {
  const data = join(bench.folder, 'data');
  prepareAccess(data);
  const keys = Array.from({ length: 2 * TIMES }, () => createKey(data));
  const file = exportOf(bench);
  const settings = { WIREWATCH_ADMIN_PORT: `${await freePort()}` };
  await using appliance = await startAppliance(data, { settings });
  const overview = await overviewOf(data);
  /** From the command's start until the key is refused. */
  const revoke = async () => {
    const key = keys.pop() ?? '';
    // The part of a key between prefix and secret.
    command(['key', 'revoke', key.split('_').at(-2) ?? '', '--yes', '--data', data]);
    const { status } = await fetch(`${appliance.url}/v1/me`, { headers: authorization(key) });
    if (status !== 401) throw new Error(`a revoked key got ${status}`);
  };
  const acts = { 'a revocation': revoke, "the console's overview": overview };
  const atRest = await timed(acts, () => false);
  let isOver = false;
  const ingested = dropped(join(data, 'drop'), file).finally(() => {
    isOver = true;
  });
  const beside = await timed(acts, () => isOver);
  await ingested;
  return Object.keys(acts).flatMap((act) => {
    const [before, now] = [atRest.get(act) ?? [], beside.get(act) ?? []];
    const what = (which: string) => `${act}, ${which}, with ${now.length} beside the ingest`;
    return [
      cost(what('median'), 'ms', median(now), median(before)),
      cost(what('longest'), 'ms', Math.max(...now), Math.max(...before)),
    ];
  });
}

/** @returns the milliseconds of each act, done in turn until there are enough or `isOver` */
async function timed(acts: Readonly<Record<string, () => Promise<void>>>, isOver: () => boolean) {
  const times = new Map(Object.keys(acts).map((act) => [act, [] as number[]]));
  for (let turn = 0; turn < TIMES; turn += 1) {
    for (const [act, run] of Object.entries(acts)) {
      await sleep(PAUSE_MS);
      if (isOver()) return times;
      const beganMs = performance.now();
      await run();
      times.get(act)?.push(performance.now() - beganMs);
    }
  }
  return times;
}

/** @returns loads the overview as a browser does: all its answers at once */
async function overviewOf(data: string): Promise<() => Promise<void>> {
  const { url } = JSON.parse(command(['console', '--data', data, '--json']));
  const { secret } = JSON.parse((await redeem(url)).text);
  const { get } = consoleOf(new URL(url).origin, secret);
  return async () => {
    await Promise.all(OVERVIEW.map((path) => get(path)));
  };
}
