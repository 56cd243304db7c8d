/**
 * What an operation on a stopped installation asks of the ingest thread: it runs in the process of the command, for one
 * request. A compaction runs without that thread, which does not start if the log is damaged.
 */
import { ingestSettings } from '../appliance-ingest.ts';
import type { Config } from '../config/load.ts';
import { GaveWay, type IngestRequest, type RequestOutcome } from '../ingest/requests/requests.ts';
import { startIngest } from '../ingest/threads/ingest-client.ts';
import { type Compacted, compactStopped, progressText } from '../log/compact.ts';
import { createLogger } from '../logger.ts';
import { failed } from '../refused.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { isLocked } from '../store/locks.ts';
import { readSecret } from '../store/secret.ts';
import { VERSION } from '../version.ts';
import { folderOf } from './installation.ts';

const CHECK_EVERY_MS = 100;

/**
 * The caller holds the lock of the data folder; if an appliance starts meanwhile, which waits for that lock, the work ends
 * at a safe point.
 * @throws GaveWay then; Refused with the reason if it could not be done
 */
export async function ingestAlone(
  config: Config,
  request: IngestRequest,
  tell: (progress: string) => void,
): Promise<Extract<RequestOutcome, { ok: true }>> {
  if (request.kind === 'compact') return { ok: true, compacted: await compactAlone(config, tell) };
  const log = createLogger({ level: 'warn' });
  const folder = folderOf(config);
  const settings = ingestSettings(config, readSecret(folder));
  const ingest = startIngest({ ...settings, mode: 'alone' }, (event) => {
    if (event.kind === 'log') log[event.level](event.fields, event.msg);
    if (event.kind === 'progress') tell(event.file);
    if (event.kind === 'recovering') tell(`bringing detections.db up to date from the log: ${event.reason}`);
  });
  let isGivingWay = false;
  const watch = setInterval(() => {
    if (isGivingWay || !isLocked(folder.serveLock)) return;
    isGivingWay = true;
    void ingest.stop();
  }, CHECK_EVERY_MS);
  try {
    const outcome = await ingest.ask(request, tell);
    await ingest.stop();
    const fault = await ingest.ended;
    if (fault !== null) throw fault;
    if (outcome.ok) return outcome;
    throw isGivingWay ? new GaveWay() : failed(outcome.reason);
  } finally {
    clearInterval(watch);
  }
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
