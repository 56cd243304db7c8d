/**
 * What an operation on a stopped installation asks of the ingest thread: it runs in the process of the command, for one
 * request. A compaction runs without that thread, which does not start if the log is damaged.
 */
import { ingestSettings } from '../appliance-ingest.ts';
import { findAccess } from '../auth/spare-copy.ts';
import type { Config } from '../config/load.ts';
import { openTried } from '../copy/open-place.ts';
import { createShipper } from '../copy/ship.ts';
import { type ReportedEvents, startIngest } from '../ingest/threads/ingest-client.ts';
import type { Answers, IngestRequest, Kind } from '../ingest/threads/ingest-messages.ts';
import { compactStopped, progressText } from '../log/compact.ts';
import type { Mark } from '../log/format.ts';
import { createLogger } from '../logger.ts';
import { clauseOf, failed } from '../refused.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { dataFolder } from '../store/folder.ts';
import { readSecret } from '../store/secret.ts';
import { showProgress } from './output.ts';

/** The caller holds the lock of the data folder. @throws Refused with the reason if it could not be done */
export async function ingestAlone(config: Config, request: IngestRequest): Promise<Answers[Kind]> {
  const folder = dataFolder(config.dataFolder);
  if (request.kind === 'compact') {
    refuseHalfRestored(folder);
    const onProgress = (what: string, done: number, total: number) =>
      showProgress(progressText(what, done, total));
    return compactStopped({ folder, nowMs: Date.now(), onProgress, async between() {} });
  }
  const log = createLogger({ level: 'warn' });
  const settings = ingestSettings(config, readSecret(folder));
  let undecided: unknown = null;
  const decide = async (entry: Mark) => {
    try {
      const place = await openTried(config.copy.to, config.copy);
      await createShipper(place, folder).ship(findAccess(folder), entry);
    } catch (error) {
      undecided = error;
      void ingest.stop();
    }
  };
  const events: Partial<ReportedEvents> = {
    log: ({ level, fields, msg }) => log[level](fields, msg),
    progress: ({ file }) => showProgress(file),
    recovering: (reason) => showProgress(`bringing detections.db up to date from the log: ${reason}`),
  };
  const ingest = startIngest({ ...settings, mode: 'alone' }, events, decide);
  const [asked] = await Promise.allSettled([ingest.ask(request, showProgress)]);
  await ingest.stop();
  const fault = await ingest.ended;
  if (fault !== null) throw fault;
  if (undecided !== null)
    throw failed(
      `the copy ${config.copy.to} could not be written, for which changes wait: ${clauseOf(undecided)}. What was begun is completed once Wirewatch runs and the copy can be written. Then run this again, unless it was done by that.`,
    );
  if (asked.status === 'rejected') throw asked.reason;
  return asked.value;
}
