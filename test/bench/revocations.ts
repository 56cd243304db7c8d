/** How long a revocation takes while a large file is applied, from the command's start until the key is refused. */
import { copyFileSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, type Figure, median, SUBSCRIPTIONS } from './common.ts';
import { createKey, isArchived, prepareAccess } from './ingest.ts';
import { command, startAppliance } from './program.ts';

const KEYS = 15;
const PAUSE_MS = 500;

/** The median and the longest time of revocations at rest (`before`) and beside the ingest of all rows of the bench. */
export async function revocations(bench: Bench): Promise<Figure[]> {
  prepareAccess(bench.data, SUBSCRIPTIONS);
  const keys = Array.from({ length: 2 * KEYS }, () => createKey(bench.data, SUBSCRIPTIONS));
  const appliance = await startAppliance(bench.data);
  try {
    const revoke = async (key: string) => {
      const beganMs = performance.now();
      command('key', 'revoke', idOf(key), '--yes', '--data', bench.data);
      const { status } = await fetch(`${appliance.url}/v1/me`, {
        headers: { authorization: `Bearer ${key}` },
      });
      if (status !== 401) throw new Error(`a revoked key got ${status}`);
      return performance.now() - beganMs;
    };
    const atRestMs: number[] = [];
    for (const key of keys.splice(0, KEYS)) atRestMs.push(await revoke(key));
    const drop = join(bench.data, 'drop');
    const [file = ''] = readdirSync(join(bench.folder, 'exports'));
    copyFileSync(join(bench.folder, 'exports', file), join(drop, `${file}.part`));
    renameSync(join(drop, `${file}.part`), join(drop, file));
    const besideMs: number[] = [];
    for (const key of keys) {
      await sleep(PAUSE_MS);
      if (isArchived(drop, file)) break;
      besideMs.push(await revoke(key));
    }
    const figure = (what: string, of: (ms: readonly number[]) => number): Figure => ({
      what: `a revocation, ${what}, with ${besideMs.length} beside the ingest`,
      unit: 'ms',
      before: of(atRestMs),
      now: of(besideMs),
      isCost: true,
    });
    return [figure('median', median), figure('longest', (ms) => Math.max(...ms))];
  } finally {
    await appliance.stop();
  }
}

/** The part of a key between prefix and secret. */
function idOf(key: string): string {
  return key.split('_').at(-2) ?? '';
}
