/**
 * Ten open consoles in their own process: node console-clients.ts ORIGIN SECRET. Each reloads
 * its view every second, as if data changed all the time. Like real consoles, they reload one after the other.
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const CONSOLES = 10;
const ASK_EVERY_MS = 1000;
/** What every console reads; each also reads one view. */
const EVERYWHERE = ['changes', 'overview'];
const VIEWS = ['windows', 'files', 'customers', 'detections/live', 'history/audit'];

const [origin = '', secret = ''] = process.argv.slice(2);
const headers = { authorization: `Bearer ${secret}` };
const agent = new Agent({ keepAlive: true });

async function asked(path: string): Promise<void> {
  const [answer] = await once(request(`${origin}/console/${path}`, { agent, headers }).end(), 'response');
  if (answer.statusCode !== 200) throw new Error(`${path} is ${answer.statusCode}`);
  await once(answer.resume(), 'end');
}

async function live(index: number): Promise<never> {
  await sleep((index * ASK_EVERY_MS) / CONSOLES);
  for (;;) {
    for (const path of [...EVERYWHERE, VIEWS[index % VIEWS.length]]) await asked(`${path}`);
    await sleep(ASK_EVERY_MS);
  }
}

for (let index = 0; index < CONSOLES; index += 1) void live(index);
console.log(CONSOLES);
