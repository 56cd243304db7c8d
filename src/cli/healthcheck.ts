/** `wirewatch healthcheck`: whether Wirewatch runs and is healthy. For containers, load balancers and scripts. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { request as requestTls } from 'node:https';
import type { Command } from 'commander';
import { listeningUrl } from '../config/listening.ts';
import { enabledExports } from '../config/load.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { value } from '../operations/member.ts';
import { printable } from '../printable.ts';
import { isErrorCode, misused, reasonOf, unlessError } from '../refused.ts';
import { dataFolder } from '../store/folder.ts';
import { readRunning } from '../store/noted-address.ts';
import { SECOND_MS } from '../time.ts';
import { Health, parseAs } from '../tools/pull/api.ts';
import { defineCommand } from './command.ts';
import { configOf } from './installation.ts';
import { commonOptions, dataFolderPath, readUrl } from './options.ts';

const TIMEOUT_SECONDS = 5;
/** The document has about two hundred bytes. */
const BODY_BYTES_MAX = 64 * 1024;

export const register = defineCommand({
  members: {
    url: value(readUrl, {
      hint: 'base address to check (default: where the Wirewatch of this data folder listens)',
      placeholder: 'url',
    }),
  },
  examples: ['healthcheck', 'healthcheck --url https://detections.example.org --json'],
  async run({ url }, self) {
    const result = await askHealth(self, url);
    const { healthy, reason } = result;
    if (commonOptions(self).json) return { value: result, text: '', failed: !healthy };
    if (reason !== null) process.stderr.write(`wirewatch: ${printable(reason)}\n`);
    if (!healthy) process.exitCode = 1;
    return null;
  },
});

/** @returns `status`: that of HTTP, null without an answer; `health`: as GET /v1/health gives it */
async function askHealth(command: Command, named: string | undefined) {
  const url = named ?? ownUrl(command);
  const unhealthy = (reason: string) => ({ healthy: false, url, status: null, reason, health: null });
  if (url === null)
    return unhealthy(
      `Wirewatch is not running on the data folder ${folderOfCommand(command).root}. Start it with "wirewatch serve", or name another data folder with --data or an address with --url`,
    );
  const address = `${url}/v1/health`;
  try {
    // Wirewatch's own certificate need not name the local address.
    const { status, body } = await get(address, named === undefined);
    const health = parseAs(Health, body);
    const strange = `${address} answered with status ${status}, but the answer is not from Wirewatch. Check the address, and name the right one with --url`;
    if (health === null) return { healthy: false, url, status, reason: strange, health };
    const reason =
      status === 200 ? null : degraded(health, named === undefined ? enabledOf(command) : EXPORT_NAMES);
    return { healthy: reason === null, url, status, reason, health };
  } catch (error) {
    return unhealthy(unreached(url, error));
  }
}

/** @returns null if Wirewatch does not run on the data folder: another one may have its port */
function ownUrl(command: Command): string | null {
  const folder = folderOfCommand(command);
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

/** Also that of a lab. */
const folderOfCommand = (command: Command) => dataFolder(dataFolderPath(commonOptions(command), 'appliance'));

async function get(address: string, isOwn: boolean) {
  const signal = AbortSignal.timeout(TIMEOUT_SECONDS * SECOND_MS);
  // The request has no secret, and a program that could answer in its place could also stop it.
  const sent = address.startsWith('https:')
    ? requestTls(address, { signal, agent: false, rejectUnauthorized: !isOwn })
    : request(address, { signal, agent: false });
  const answer: IncomingMessage = (await once(sent.end(), 'response'))[0];
  let body = '';
  for await (const chunk of answer.setEncoding('utf8')) {
    body += chunk;
    if (body.length > BODY_BYTES_MAX) break;
  }
  return { status: answer.statusCode ?? 0, body };
}

function degraded({ alerts, exports }: Health, names: Iterable<ExportName>): string {
  const { page_worthy } = alerts;
  const needing = page_worthy === 1 ? '1 open alert needs' : `${page_worthy} open alerts need`;
  const done = Array.from(names, (name) => {
    const at = exports[name].newest_done;
    return at === null
      ? `no window of ${name} has been finished yet`
      : `the newest finished window of ${name} ended at ${at}`;
  });
  const reasons = [...(page_worthy > 0 ? [`${needing} attention now`] : []), ...done];
  return `degraded: ${reasons.join('; ')}. See: wirewatch ${page_worthy > 0 ? 'alert list' : 'ingest status'}`;
}

function unreached(url: string, error: unknown): string {
  if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
    return `no answer from ${url} within ${TIMEOUT_SECONDS} s`;
  if (isErrorCode(error, 'ECONNREFUSED'))
    return `nothing is listening at ${url}. Start Wirewatch with "wirewatch serve", or name another address with --url`;
  return `${url}: ${reasonOf(error)}`;
}
