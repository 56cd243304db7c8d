/** Helpers for commands that send a request to the ingest thread. */
import type { Command } from 'commander';
import { ingestSettings } from '../appliance-ingest.ts';
import { untilServed } from '../ingest/requests/request-client.ts';
import { addRequest, type IngestRequest, type RequestOutcome } from '../ingest/requests/requests.ts';
import { createLogger } from '../log.ts';
import { Refused } from '../refused.ts';
import { deriveKey } from '../seal.ts';
import type { Database } from '../store/database.ts';
import { readSecret } from '../store/secret.ts';
import { openForCommand } from './access.ts';
import { configOf, folderOf } from './installation.ts';
import { createProgress } from './output.ts';

export type Served = Extract<RequestOutcome, { ok: true }>;

/** Sends a request and waits until it is served: see {@link serveAdded}. */
export function serveRequest(command: Command, wanted: IngestRequest): Promise<Served> {
  return serveAdded(command, (access) => addRequest(access, wanted, Date.now()));
}

/**
 * Waits until a request is served: by the running Wirewatch, otherwise by this process (see {@link untilServed}). Shows
 * progress on a terminal.
 *
 * @param add writes the request to access.db together with what belongs to it
 * @throws Refused `failed` with the reason if it could not be done
 */
export async function serveAdded(command: Command, add: (access: Database) => number): Promise<Served> {
  const config = configOf(command);
  const folder = folderOf(config);
  using access = openForCommand(command);
  const log = createLogger({ level: 'warn' });
  using progress = createProgress();
  const settings = ingestSettings(config, deriveKey(readSecret(folder), 'photo'), 'requests');
  const outcome = await untilServed(add(access.db), { access: access.db, folder }, settings, {
    onProgress: (text) => progress.update(text),
    onLog: ({ level, msg, fields }) => log[level](fields, msg),
  });
  if (!outcome.ok) throw new Refused('failed', outcome.reason);
  return outcome;
}
