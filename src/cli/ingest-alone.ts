/**
 * What an operation on a stopped installation asks of the ingest thread: it runs in the process of the command. A
 * compaction runs without that thread, which does not start if the log is damaged.
 */
import { ingestSettings } from '../appliance-ingest.ts';
import type { Config } from '../config/load.ts';
import { type Compacted, compactStopped, progressText } from '../history/compact.ts';
import { askAlone, GaveWay } from '../ingest/requests/alone.ts';
import type { IngestRequest, RequestOutcome } from '../ingest/requests/requests.ts';
import { createLogger } from '../log.ts';
import { Refused } from '../refused.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { isLocked } from '../store/locks.ts';
import { readSecret } from '../store/secret.ts';
import { VERSION } from '../version.ts';
import { folderOf } from './installation.ts';

/** @throws Refused `failed` with the reason if it could not be done */
export async function ingestAlone(
  config: Config,
  request: IngestRequest,
  tell: (progress: string) => void,
): Promise<Extract<RequestOutcome, { ok: true }>> {
  if (request.kind === 'compact') return { ok: true, compacted: await compactAlone(config, tell) };
  const log = createLogger({ level: 'warn' });
  const settings = ingestSettings(config, readSecret(folderOf(config)));
  const outcome = await askAlone(settings, request, tell, ({ level, msg, fields }) =>
    log[level](fields, msg),
  );
  if (!outcome.ok) throw new Refused('failed', outcome.reason);
  return outcome;
}

/** @throws GaveWay if an appliance starts meanwhile; Refused */
function compactAlone(config: Config, tell: (progress: string) => void): Promise<Compacted> {
  const folder = folderOf(config);
  refuseHalfRestored(folder);
  return compactStopped({
    folder,
    program: VERSION,
    nowMs: Date.now(),
    onProgress: (what, done, total) => tell(progressText(what, done, total)),
    async between() {
      if (isLocked(folder.serveLock)) throw new GaveWay();
    },
  });
}
