/** Requests to the ingest thread on a stopped installation: the thread runs in this process, for one request. */
import { dataFolder } from '../../store/folder.ts';
import { isLocked } from '../../store/locks.ts';
import { startIngest } from '../threads/ingest-client.ts';
import type { IngestEvent, IngestSettings } from '../threads/ingest-messages.ts';
import type { IngestRequest, RequestOutcome } from './requests.ts';

const CHECK_EVERY_MS = 100;

/** An appliance was started: whoever asked can ask that one. */
export class GaveWay extends Error {}

/**
 * Serves one request. The caller holds the lock of the data folder; if an appliance starts meanwhile, which waits for
 * that lock, the work ends at a safe point.
 *
 * @throws GaveWay then; Refused if the databases or the drop folder cannot be used
 */
export async function askAlone(
  settings: Omit<IngestSettings, 'mode'>,
  request: IngestRequest,
  tell: (progress: string) => void,
  onLog: (line: Extract<IngestEvent, { kind: 'log' }>) => void,
): Promise<RequestOutcome> {
  const { serveLock } = dataFolder(settings.data);
  const ingest = startIngest({ ...settings, mode: 'alone' }, (event) => {
    if (event.kind === 'log') onLog(event);
    if (event.kind === 'progress') tell(event.file);
    if (event.kind === 'recovering') tell(`bringing detections.db up to date from the log: ${event.reason}`);
  });
  let isGivingWay = false;
  const watch = setInterval(() => {
    if (isGivingWay || !isLocked(serveLock)) return;
    isGivingWay = true;
    void ingest.stop();
  }, CHECK_EVERY_MS);
  try {
    const outcome = await ingest.ask(request, tell);
    await ingest.stop();
    const fault = await ingest.ended;
    if (fault !== null) throw fault;
    if (isGivingWay && !outcome.ok) throw new GaveWay();
    return outcome;
  } finally {
    clearInterval(watch);
  }
}
