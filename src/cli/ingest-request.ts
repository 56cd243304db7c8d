/** Helpers for commands that send a request to the ingest thread. */
import type { Command } from 'commander';
import { ingestSettings } from '../appliance-ingest.ts';
import { untilServed } from '../ingest/requests/request-client.ts';
import { addRequest, type IngestRequest, type RequestOutcome } from '../ingest/requests/requests.ts';
import { createLogger } from '../log.ts';
import { deriveKey } from '../seal.ts';
import type { Database } from '../store/database.ts';
import { readSecret } from '../store/secret.ts';
import { openForCommand } from './access.ts';
import { configOf, folderOf } from './installation.ts';
import { createProgress } from './output.ts';

/** Sends a request and waits until it is served: see {@link untilServed}. */
export function serveRequest(command: Command, wanted: IngestRequest): Promise<RequestOutcome> {
  return serveAdded(command, (access) => addRequest(access, wanted, Date.now()));
}

/**
 * Waits until a request is served: by the running Wirewatch, otherwise by this process. Shows progress on a terminal.
 *
 * @param add writes the request to access.db together with what belongs to it, or finds it there
 */
export async function serveAdded(
  command: Command,
  add: (access: Database) => number,
): Promise<RequestOutcome> {
  const config = configOf(command);
  const folder = folderOf(config);
  const access = openForCommand(command);
  const log = createLogger({ level: 'warn' });
  const progress = createProgress();
  try {
    const settings = ingestSettings(config, deriveKey(readSecret(folder), 'photo'), 'requests');
    return await untilServed(add(access.db), { access: access.db, folder }, settings, {
      onProgress: (text) => progress.update(text),
      onLog: ({ level, msg, fields }) => log[level](fields, msg),
    });
  } finally {
    progress.end();
    access.close();
  }
}
