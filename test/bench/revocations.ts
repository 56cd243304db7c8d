/** How long a revocation takes while a large file is applied, from the command's start until the key is refused. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, cost, type Figure, median } from './common.ts';
import { createKey, dropped, exportOf, prepareAccess } from './ingest.ts';
import { authorization } from './load.ts';
import { command, startAppliance } from './program.ts';

const KEYS = 15;
const PAUSE_MS = 500;

/** The median and the longest time of revocations at rest (`before`) and beside the ingest of all rows of the bench. */
export async function revocations(bench: Bench): Promise<Figure[]> {
  const data = join(bench.folder, 'data');
  prepareAccess(data);
  const keys = Array.from({ length: 2 * KEYS }, () => createKey(data));
  const file = exportOf(bench);
  const appliance = await startAppliance(data);
  try {
    const revoke = async (key: string) => {
      const beganMs = performance.now();
      // The part of a key between prefix and secret.
      command(['key', 'revoke', key.split('_').at(-2) ?? '', '--yes', '--data', data]);
      const { status } = await fetch(`${appliance.url}/v1/me`, { headers: authorization(key) });
      if (status !== 401) throw new Error(`a revoked key got ${status}`);
      return performance.now() - beganMs;
    };
    const atRestMs: number[] = [];
    for (const key of keys.splice(0, KEYS)) atRestMs.push(await revoke(key));
    let isOver = false;
    const ingested = dropped(join(data, 'drop'), file).finally(() => {
      isOver = true;
    });
    const besideMs: number[] = [];
    for (const key of keys) {
      await sleep(PAUSE_MS);
      if (isOver) break;
      besideMs.push(await revoke(key));
    }
    await ingested;
    const what = (which: string) => `a revocation, ${which}, with ${besideMs.length} beside the ingest`;
    return [
      cost(what('median'), 'ms', median(besideMs), median(atRestMs)),
      cost(what('longest'), 'ms', Math.max(...besideMs), Math.max(...atRestMs)),
    ];
  } finally {
    await appliance.stop();
  }
}
