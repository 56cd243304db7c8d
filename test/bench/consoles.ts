/**
 * What ten open consoles cost the clients of the API: light requests without them, twice, which shows the noise, and
 * beside them. And how long the console's first view takes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { OWN_PAGE, send } from '../support/console-client.ts';
import { freePort } from '../support/free-port.ts';
import { authorization, type Bench, type Figure } from './common.ts';
import { runLoad } from './load.ts';
import { command, startAppliance } from './program.ts';

const CONSOLES = 10;
const REQUESTS = 10_000;
/** A console asks again for what it shows when something changed; at most so often, here all the time. */
const ASK_EVERY_MS = 1000;
const VIEWS = ['overview', 'windows'];

export async function consoles(bench: Bench): Promise<Figure[]> {
  const port = await freePort();
  const appliance = await startAppliance(bench.data, undefined, { WIREWATCH_ADMIN_PORT: `${port}` });
  try {
    const origin = `http://127.0.0.1:${port}`;
    const headers = { cookie: await session(bench.data, origin) };
    const [first = 0, again = 0] = [await overviewMs(origin, headers), await overviewMs(origin, headers)];
    const light = () => lightMs(bench, appliance.url);
    await light();
    const alone = await light();
    const noise = await light();
    let isOver = false;
    const open = Array.from({ length: CONSOLES }, async () => {
      while (!isOver) {
        for (const view of VIEWS) await send('GET', `${origin}/console/${view}`, headers);
        await sleep(ASK_EVERY_MS);
      }
    });
    const beside = await light();
    isOver = true;
    await Promise.all(open);
    const cost = (what: string, now: number, before: number | null): Figure => ({
      what,
      unit: 'ms',
      before,
      now,
      isCost: true,
    });
    return [
      cost(`light request beside ${CONSOLES} consoles, 99 of 100`, beside, alone),
      cost('the same once more without them: the noise', noise, alone),
      cost("the console's overview, the first time", first, null),
      cost('the same again', again, null),
    ];
  } finally {
    await appliance.stop();
  }
}

/** @returns the cookie of a session */
async function session(data: string, origin: string): Promise<string> {
  const { url } = JSON.parse(command('console', '--data', data, '--json'));
  const token = new URL(url).hash.slice('#login='.length);
  const reply = await send('POST', `${origin}/console/session`, OWN_PAGE, { token });
  return reply.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

async function overviewMs(origin: string, headers: Readonly<Record<string, string>>): Promise<number> {
  // What was asked for a moment ago is shared.
  await sleep(3000);
  const startMs = performance.now();
  const { status } = await send('GET', `${origin}/console/overview`, headers);
  if (status !== 200) throw new Error(`the overview is ${status}`);
  return performance.now() - startMs;
}

/** The longest of 99 in 100. */
async function lightMs(bench: Bench, url: string): Promise<number> {
  const load = { connections: 1, requests: REQUESTS, headers: authorization(bench), mayRest: true };
  const { durations_ms } = await runLoad({ ...load, url, path: () => '/v1/me' });
  return durations_ms[Math.floor(durations_ms.length * 0.99)] ?? 0;
}
