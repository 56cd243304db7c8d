/**
 * Hostile input: generated requests, thousands of bad clients, hostile exports. Then searches everything that the
 * program wrote or printed for the installation's secrets.
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
import type { Outcome, Part, PartOptions } from './part.ts';

const REQUESTS = 2_000_000;
/** Five thousand of them stay connected at the same time; the others soon close their connection. */
const CLIENTS = 7000;
const EXPORTS = 2000;
/** Statuses that the requests must cause: otherwise they test too little. */
const STATUSES = [200, 304, 400, 401, 403, 404, 405, 413, 431];

export const http: Part = {
  name: 'http',
  about: 'generated requests, bad clients, hostile exports; searches all output for secrets',
  minutes: 25,
  needs: ['mkfifo'],
  run: (options) => httpWith(options, { hasShortTimeouts: false }),
};

/** @param hasShortTimeouts whether to shorten the program's idle timeouts, so that a test need not wait */
export async function httpWith(
  options: PartOptions,
  { hasShortTimeouts }: { hasShortTimeouts: boolean },
): Promise<Outcome> {
  const { folder, share, onProgress } = options;
  const secrets = createSecrets();
  const target = await startTarget(secrets, hasShortTimeouts);
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
      prng: seededPrng(options.seed, 'exports'),
      folder,
      memoryMib: () => memoryMib(target),
    });
    onProgress('the hostile exports are dropped');
    const [clients, requests] = await Promise.all([
      runClients(target, {
        count: Math.max(CLIENTS_MIN, Math.round(CLIENTS * share)),
        prng: seededPrng(options.seed, 'clients'),
        secrets,
      }),
      runCampaign({
        facts: target.facts,
        seed: `${options.seed}`,
        requests: Math.round(REQUESTS * share),
        secrets,
        onProgress: (responses) => onProgress(`${responses} requests answered`),
      }),
    ]);
    const operator = await runCommands(target, secrets, folder);
    failures.push(...exports.failures, ...clients.failures, ...requests.failures, ...operator.failures);
    for (const status of STATUSES)
      if (!requests.statuses.has(status)) failures.push(`no request was answered ${status}`);
    if ((await appliance.get('/v1/me')).status !== 200) failures.push('the program no longer responds');
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

function figuresOf({ responses, connections, statuses }: CampaignOutcome): Outcome['figures'] {
  const counts = [...statuses].sort(([a], [b]) => a - b);
  return {
    requests: responses,
    connections,
    ...Object.fromEntries(counts.map(([status, count]) => [`answered ${status}`, count])),
  };
}

/** A failed file is the only expected error in the log. */
function isOfHostileFile({ msg }: LogLine): boolean {
  return msg === 'file failed';
}

async function memoryMib({ admin }: Target): Promise<number> {
  const [bytes = 0] = await readMetrics(admin, ['process_resident_memory_bytes']);
  return bytes / 2 ** 20;
}

/** Searches the disk: only the installation's secret file may contain its secret, and no file a key or token. */
function searchFiles(secrets: Secrets, data: string, folder: string): void {
  secrets.searchFolder(data, ['secret']);
  // An input file of the commands, and the backup, which must contain the installation's secret.
  secrets.searchFolder(folder, ['secret', 'not-a-key']);
}
