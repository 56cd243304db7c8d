/**
 * Hostile input: generated requests, thousands of bad clients, hostile exports. Afterwards, the installation's secrets
 * are searched for in everything that the program wrote or printed.
 */

import type { LogLine } from '../support/program.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { type CampaignOutcome, runCampaign } from './http/campaign.ts';
import { CLIENTS_MIN, runClients } from './http/clients.ts';
import { dropHostile, EXPORTS_MIN } from './http/exports.ts';
import { runCommands } from './http/operator.ts';
import { createSecrets, type Secrets } from './http/secrets.ts';
import { startTarget, type Target } from './http/target.ts';
import { readMetrics } from './metrics.ts';
import type { Order, Outcome, Part } from './part.ts';

const REQUESTS = 2_000_000;
/** Five thousand of them at once: the others soon close their connection. */
const CLIENTS = 7000;
const EXPORTS = 2000;
/** What the requests must reach to be meaningful. */
const STATUSES = [200, 304, 400, 401, 403, 404, 405, 413, 431];

export const http: Part = {
  name: 'http',
  about: 'made-up requests, bad clients, hostile exports; secrets searched for in all that comes out',
  minutes: 150,
  needs: ['mkfifo'],
  run: (order) => httpWith(order, { isHurried: false }),
};

/** @param isHurried shortens the program's idle timeouts, so that a test need not wait */
export async function httpWith(order: Order, { isHurried }: { isHurried: boolean }): Promise<Outcome> {
  const { folder, share, tell } = order;
  const secrets = createSecrets();
  const target = await startTarget(secrets, isHurried);
  const { appliance } = target;
  const failures: string[] = [];
  let logLines = 0;
  const readLog = () => {
    for (const line of appliance.serving().takeLog()) {
      logLines += 1;
      secrets.search(`a line of the log, "${line.msg}"`, JSON.stringify(line));
      if (line.level === 'fatal' || (line.level === 'error' && !isOfHostileFile(line)))
        failures.push(`logged: ${JSON.stringify(line).slice(0, 500)}`);
    }
  };
  const reading = setInterval(readLog, 1000);
  try {
    const exports = await dropHostile(appliance, {
      count: Math.max(EXPORTS_MIN, Math.round(EXPORTS * share)),
      prng: seededPrng(order.seed, 'exports'),
      folder,
      memoryMib: () => memoryMib(target),
    });
    tell('the hostile exports are dropped');
    const [clients, requests] = await Promise.all([
      runClients(target, {
        count: Math.max(CLIENTS_MIN, Math.round(CLIENTS * share)),
        prng: seededPrng(order.seed, 'clients'),
        secrets,
      }),
      runCampaign({
        facts: target.facts,
        seed: `${order.seed}`,
        requests: Math.round(REQUESTS * share),
        secrets,
        onProgress: (answers) => tell(`${answers} requests answered`),
      }),
    ]);
    const operator = await runCommands(target, secrets, folder);
    failures.push(...exports.failures, ...clients.failures, ...requests.failures, ...operator.failures);
    for (const status of STATUSES)
      if (!requests.statuses.has(status)) failures.push(`no request was answered ${status}`);
    if ((await appliance.get('/v1/me')).status !== 200) failures.push('it no longer answers');
    await appliance.serving().stop();
    readLog();
    searchFiles(secrets, appliance.data, folder);
    failures.push(...secrets.found);
    return {
      figures: {
        ...figuresOf(requests),
        ...clients.figures,
        ...exports.figures,
        commands: operator.commands,
        'lines of the log': logLines,
        'secrets planted': secrets.planted,
        'texts and files searched': secrets.searched,
      },
      failures,
    };
  } finally {
    clearInterval(reading);
    await appliance.stop();
  }
}

function figuresOf({ answers, connections, statuses }: CampaignOutcome): Outcome['figures'] {
  const counts = [...statuses].sort(([a], [b]) => a - b);
  return {
    requests: answers,
    connections,
    ...Object.fromEntries(counts.map(([status, count]) => [`answered ${status}`, count])),
  };
}

/** A failed file is logged as an error, the only expected one. */
function isOfHostileFile({ msg }: LogLine): boolean {
  return msg === 'file failed';
}

async function memoryMib({ admin }: Target): Promise<number> {
  const [bytes = 0] = await readMetrics(admin, ['process_resident_memory_bytes']);
  return bytes / 2 ** 20;
}

/** Searches the disk: only the secret's own files may contain it, and none a key or token. */
function searchFiles(secrets: Secrets, data: string, folder: string): void {
  secrets.searchFolder(data, ['secret']);
  // Files for the commands, and the one file that must contain the installation's secret.
  secrets.searchFolder(folder, ['secret', 'not-a-key', 'backup.tar']);
}
