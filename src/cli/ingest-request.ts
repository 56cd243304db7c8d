/** What the commands share that ask the one who ingests for something. */
import type { Command } from 'commander';
import { ingestSettings } from '../appliance.ts';
import { request } from '../ingest/request-client.ts';
import type { IngestRequest, RequestOutcome } from '../ingest/requests.ts';
import { createLogger } from '../log.ts';
import { openAccess } from '../store/access.ts';
import { deriveKey } from '../store/derived-key.ts';
import { readSecret } from '../store/folder.ts';
import { configOf, folderOf } from './ingest-settings.ts';

/** Has a request served by the running appliance, or here where none runs; shows on a terminal how far it is. */
export async function serveRequest(command: Command, wanted: IngestRequest): Promise<RequestOutcome> {
  const config = configOf(command);
  const folder = folderOf(config);
  const access = openAccess(folder.root);
  const log = createLogger({ level: 'warn' });
  try {
    const settings = ingestSettings(config, deriveKey(readSecret(folder), 'photo'), 'requests');
    return await request(access, folder, settings, wanted, {
      now: Date.now,
      onProgress: (text) => {
        if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
      },
      onLog: (level, msg, fields) => log[level](fields, msg),
    });
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
    access.close();
  }
}
