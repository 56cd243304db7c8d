/**
 * Hostile input: generated requests, thousands of bad clients, hostile exports. Then searches everything that the
 * program wrote or printed for the installation's secrets.
 */

import type { LogLine } from '../support/program.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { runCampaign } from './http/campaign.ts';
import { CLIENTS_MIN, runClients } from './http/clients.ts';
import { dropHostile, EXPORTS_MIN } from './http/exports.ts';
import { runCommands } from './http/operator.ts';
import { Secrets } from './http/secrets.ts';
import { startTarget } from './http/target.ts';
import { readProcess } from './metrics.ts';
import { type Outcome, type Part, type PartOptions, Tally } from './part.ts';

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
  run: (options) => httpWith(options, { hasShortTimeouts: false }),
};

/** @param hasShortTimeouts whether to shorten the program's idle timeouts, so that a test need not wait */
export async function httpWith(
  options: PartOptions,
  { hasShortTimeouts }: { hasShortTimeouts: boolean },
): Promise<Outcome> {
  const { folder, share, onProgress } = options;
  const secrets = new Secrets();
  const target = await startTarget(secrets, hasShortTimeouts);
  const { appliance } = target;
  const tally = new Tally();
  const { failures } = tally;
  const readLog = () => {
    for (const line of appliance.serving().takeLog()) {
      tally.count('lines of the log');
      secrets.search(`a line of the log, "${line.msg}"`, JSON.stringify(line));
      if (line.level === 'fatal' || (line.level === 'error' && !isOfHostileFile(line)))
        failures.push(`logged: ${JSON.stringify(line).slice(0, 500)}`);
    }
  };
  const reading = setInterval(readLog, 1000);
  const least = (count: number, min: number) => Math.max(min, Math.round(count * share));
  try {
    const exports = {
      count: least(EXPORTS, EXPORTS_MIN),
      prng: seededPrng(options.seed, 'exports'),
      memoryMib: async () => (await readProcess(target.admin)).memoryMib,
    };
    await dropHostile(appliance, exports, tally);
    onProgress('the hostile exports are dropped');
    const clients = {
      count: least(CLIENTS, CLIENTS_MIN),
      prng: seededPrng(options.seed, 'clients'),
      secrets,
    };
    const campaign = {
      facts: target.facts,
      seed: `${options.seed}`,
      requests: Math.round(REQUESTS * share),
      secrets,
      onProgress: (responses: number) => onProgress(`${responses} requests answered`),
    };
    await Promise.all([runClients(target, clients, tally), runCampaign(campaign, tally)]);
    await runCommands(target, secrets, folder, tally);
    for (const status of STATUSES)
      if (tally.figures[`answered ${status}`] === undefined)
        failures.push(`no request was answered ${status}`);
    if ((await appliance.get('/v1/me')).status !== 200) failures.push('the program no longer responds');
    await appliance.serving().stop();
    readLog();
    // Only the installation's secret file may contain its secret, and no file a key or token.
    secrets.searchFolder(appliance.data, ['secret']);
    // An input file of the commands, and the backup, which must contain the installation's secret.
    secrets.searchFolder(folder, ['secret', 'not-a-key']);
    failures.push(...secrets.found);
    tally.count('secrets planted', secrets.planted);
    tally.count('texts and files searched', secrets.searched);
    return tally;
  } finally {
    clearInterval(reading);
    await appliance.stop();
  }
}

/** A failed file is the only expected error in the log. */
function isOfHostileFile({ msg }: LogLine): boolean {
  return msg === 'file failed';
}
