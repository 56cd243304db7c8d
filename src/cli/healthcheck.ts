/** `wirewatch healthcheck`: whether Wirewatch runs and is healthy. For containers, load balancers and scripts. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { listeningUrl } from '../config/listening.ts';
import { enabledExports } from '../config/load.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { value } from '../operations/member.ts';
import { failed, isErrorCode, misused, reasonOf, unlessError } from '../refused.ts';
import { readRunning } from '../store/noted-address.ts';
import { SECOND_MS } from '../time.ts';
import { Health, parseAs } from '../tools/pull/api.ts';
import { defineCommand } from './command.ts';
import { configOf } from './installation.ts';
import { anyFolder, commonOptions, readUrl } from './options.ts';

const TIMEOUT_SECONDS = 5;

export const register = defineCommand({
  members: {
    url: value(readUrl, {
      hint: 'base address to check (default: where the Wirewatch of this data folder listens)',
      placeholder: 'url',
    }),
  },
  examples: ['healthcheck', 'healthcheck --url https://detections.example.org --json'],
  async run({ url }, self) {
    const found = await askHealth(self, url);
    const { reason } = found;
    if (commonOptions(self).json)
      return { value: { healthy: reason === null, ...found }, text: '', failed: reason !== null };
    if (reason !== null) throw failed(reason);
    return null;
  },
});

/**
 * @returns `status`: that of HTTP, null without an answer; `health`: as GET /v1/health gives it; `reason`: why it is not
 *   healthy, null if it is
 */
async function askHealth(command: Command, named: string | undefined) {
  const url = named ?? ownUrl(command);
  const unanswered = (reason: string) => ({ url, status: null, health: null, reason });
  if (url === null)
    return unanswered(
      `Wirewatch is not running on the data folder ${anyFolder(command).root}. Start it with "wirewatch serve", or name another data folder with --data or an address with --url`,
    );
  const address = `${url}/v1/health`;
  try {
    // Wirewatch's own certificate need not name the local address.
    const { status, body } = await get(address, named === undefined);
    const health = parseAs(Health, body);
    const found = { url, status, health };
    const strange = `${address} answered with status ${status}, but the answer is not from Wirewatch. Check the address, and name the right one with --url`;
    if (health === null) return { ...found, reason: strange };
    if (status === 200) return { ...found, reason: null };
    return { ...found, reason: degraded(health, named === undefined ? enabledOf(command) : EXPORT_NAMES) };
  } catch (error) {
    return unanswered(unreached(url, error));
  }
}

/** @returns null if Wirewatch does not run on the data folder, also that of a lab: another one may have its port */
function ownUrl(command: Command): string | null {
  const folder = anyFolder(command);
  const running = readRunning(folder);
  // Without an installation in the folder, Wirewatch may run on another folder: the settings tell its address.
  if (running.kind === 'stopped' && existsSync(folder.access)) return null;
  if (running.kind === 'running' && running.url !== null) return running.url;
  const own = listeningUrl(configOf(command).server);
  if (own !== null) return own;
  throw misused(
    'the port is set to 0 (any free port), so the settings do not tell which port is used. Name the address with --url',
  );
}

/** The exports that are switched on, as far as the settings can be read. */
const enabledOf = (command: Command) => unlessError(EXPORT_NAMES, () => enabledExports(configOf(command)));

async function get(address: string, isOwn: boolean) {
  const signal = AbortSignal.timeout(TIMEOUT_SECONDS * SECOND_MS);
  // The request has no secret, and a program that could answer in its place could also stop it.
  const sent = address.startsWith('https:')
    ? requestTls(address, { signal, agent: false, rejectUnauthorized: !isOwn })
    : request(address, { signal, agent: false });
  const answer: IncomingMessage = (await once(sent.end(), 'response'))[0];
  return { status: answer.statusCode ?? 0, body: await text(answer) };
}

function degraded({ alerts, exports }: Health, names: Iterable<ExportName>): string {
  const { page_worthy } = alerts;
  const reasons = Array.from(names, (name) => {
    const at = exports[name].newest_done;
    return at === null
      ? `no window of ${name} has been finished yet`
      : `the newest finished window of ${name} ended at ${at}`;
  });
  if (page_worthy === 0) return `degraded: ${reasons.join('; ')}. See: wirewatch ingest status`;
  const needing = page_worthy === 1 ? '1 open alert needs' : `${page_worthy} open alerts need`;
  return `degraded: ${[`${needing} attention now`, ...reasons].join('; ')}. See: wirewatch alert list`;
}

function unreached(url: string, error: unknown): string {
  if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
    return `no answer from ${url} within ${TIMEOUT_SECONDS} s`;
  if (isErrorCode(error, 'ECONNREFUSED'))
    return `nothing is listening at ${url}. Start Wirewatch with "wirewatch serve", or name another address with --url`;
  return `${url}: ${reasonOf(error)}`;
}
