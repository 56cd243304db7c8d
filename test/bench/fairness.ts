/**
 * Health checks beside a key that asks for a hundred pages of a period at once, again and again. Requests to an idle bare
 * server are measured at the same time: both include the delays of the busy machine. Each is on a connection of its own.
 *
 * `node fairness.ts URL KEY PATH` is that key, in its own process.
 */
import { fileURLToPath } from 'node:url';
import { type Figure, SUBSCRIPTIONS } from './common.ts';
import { runLoad } from './load.ts';
import { startBare, startClients } from './program.ts';

const AT_ONCE = 100;
const SAMPLES = 500;

/** A request for 1,000 rows of one stream. @param period the path of a period that covers all rows */
export function pageOf(period: string): string {
  return `${period}&subscription_id=${SUBSCRIPTIONS[0]}&content_type=text`;
}

/** @returns the time of 99 of 100 checks, in milliseconds, and the same of the bare server */
export async function healthBeside(url: string, key: string, page: string): Promise<[number, number]> {
  const bare = await startBare('fixed');
  const clients = await startClients(fileURLToPath(import.meta.url), url, key, page);
  try {
    const sample = async (to: string, path: string, status: number) => {
      const durations: number[] = [];
      for (let sent = 0; sent < SAMPLES; sent += 1) {
        const one = { connections: 1, requests: 1, mayRest: true, status, path: () => path };
        durations.push(...(await runLoad({ url: to, ...one })).durations_ms);
      }
      return durations.sort((a, b) => a - b)[Math.floor(SAMPLES * 0.99)] ?? 0;
    };
    // Health is degraded, since only one of the exports has a window.
    return await Promise.all([sample(url, '/v1/health', 503), sample(bare.url, '/', 200)]);
  } finally {
    await clients.stop();
    await bare.stop();
  }
}

export async function fairness(url: string, key: string, period: string): Promise<Figure[]> {
  const [now, before] = await healthBeside(url, key, pageOf(period));
  return [{ what: BESIDE, unit: 'ms', before, now, isCost: true }];
}

export const BESIDE = 'health, 99 of 100, beside 100 pages of a period that one key asks for at once';

async function askFor(url: string, key: string, page: string): Promise<never> {
  const headers = { authorization: `Bearer ${key}` };
  const load = { url, headers, connections: AT_ONCE, requests: AT_ONCE, path: () => page };
  console.log(AT_ONCE);
  for (;;) await runLoad(load);
}

const [, program, url = '', key = '', page = ''] = process.argv;
if (program === fileURLToPath(import.meta.url)) await askFor(url, key, page);
