/** What an operation on a stopped installation asks of the ingest thread: it runs in the process of the command. */
import { ingestSettings } from '../appliance-ingest.ts';
import type { Config } from '../config/load.ts';
import { askAlone } from '../ingest/requests/alone.ts';
import type { IngestRequest, RequestOutcome } from '../ingest/requests/requests.ts';
import { createLogger } from '../log.ts';
import { Refused } from '../refused.ts';
import { readSecret } from '../store/secret.ts';
import { folderOf } from './installation.ts';

/** @throws Refused `failed` with the reason if it could not be done */
export async function ingestAlone(
  config: Config,
  request: IngestRequest,
  tell: (progress: string) => void,
): Promise<Extract<RequestOutcome, { ok: true }>> {
  const log = createLogger({ level: 'warn' });
  const settings = ingestSettings(config, readSecret(folderOf(config)));
  const outcome = await askAlone(settings, request, {
    tell,
    onLog: ({ level, msg, fields }) => log[level](fields, msg),
  });
  if (!outcome.ok) throw new Refused('failed', outcome.reason);
  return outcome;
}
