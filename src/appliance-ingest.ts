/** The ingest thread of an appliance: its settings, what its messages do, and what happens when it ends. */
import type { Worker } from 'node:worker_threads';
import type { Metrics } from './admin/metrics.ts';
import type { ApplianceCopy } from './appliance-copy.ts';
import type { AccessReader } from './auth/access-reader.ts';
import type { BoundedMap } from './bounded-map.ts';
import { exportShapes } from './config/export-settings.ts';
import { type Config, holdRules } from './config/load.ts';
import type { Conditions } from './health/alert-conditions.ts';
import type { Waiting } from './http/waiting.ts';
import { isOfAccess } from './ingest/threads/access-connection.ts';
import { type Passing, type ReportedEvents, startIngest } from './ingest/threads/ingest-client.ts';
import type { IngestSettings } from './ingest/threads/ingest-messages.ts';
import type { Logger } from './logger.ts';
import type { Live } from './operations/operation.ts';
import { paced } from './pace.ts';
import { unlessError } from './refused.ts';
import { deriveKey } from './seal.ts';
import { isBehind, isDamage, isWriteLost } from './store/database-errors.ts';
import type { DetectionsReader } from './store/detections-reader.ts';
import { LogDamage } from './store/log-errors.ts';
import { HOUR_MS, SECOND_MS } from './time.ts';

export interface ApplianceIngestOptions {
  readonly config: Config;
  readonly log: Logger;
  /** From bootIngestThread; terminated when the start fails. */
  readonly ingestThread: Worker;
}

/** What the thread's messages change. */
export interface IngestSurroundings {
  readonly secret: Buffer;
  readonly access: AccessReader;
  readonly reader: DetectionsReader;
  readonly conditions: Conditions;
  readonly recentDeliveries: BoundedMap<number, number>;
  readonly waiting: Pick<Waiting, 'changed'>;
  readonly metrics: Pick<Metrics, 'processed'> | null;
  readonly copy: Pick<ApplianceCopy, 'decide' | 'following' | 'promoted'>;
}

/** A thread that works for so long has resumed: damage that only it reads ends it at once again. */
const RESUMED_AFTER_MS = paced(10 * SECOND_MS);
const HEALED_AGAIN_AFTER_MS = paced(HOUR_MS);

/**
 * @returns also `begun`, which resolves when detections.db is open, or is being rebuilt: the port opens meanwhile; it
 *   rejects as `ready` does. `reading`: the file that is being read; null: there is none
 */
export function startApplianceIngest(
  options: ApplianceIngestOptions,
  surroundings: IngestSurroundings,
  undo: AsyncDisposableStack,
) {
  const { config, log, ingestThread } = options;
  const { conditions, copy, reader, secret } = surroundings;
  const recovering = Promise.withResolvers<void>();
  let reading: Live['reading'] = null;
  const events: ReportedEvents = {
    log: ({ level, fields, msg }) => log[level](fields, msg),
    ready() {
      reader.release();
    },
    recovering(reason) {
      reader.await(`detections.db is being rebuilt from the log: ${reason}`);
      log.warn(
        { reason },
        'rebuilding detections.db from the log: detections are unavailable until that is done',
      );
      recovering.resolve();
    },
    delivered({ first_position, delivered_at }) {
      surroundings.recentDeliveries.set(first_position, delivered_at);
      surroundings.waiting.changed();
    },
    progress({ file, rows, isDone }) {
      reading = isDone ? null : { file, rows };
    },
    condition: ({ name, detail }) => conditions.set(name, detail),
    following: (failure) => copy.following(failure),
    promoted: () => copy.promoted(),
    healed: () => conditions.set('log damaged', null),
    processed: (file) => surroundings.metrics?.processed(file),
  };
  const settings = { ...ingestSettings(config, secret), mode: 'serve' as const };
  const ingest = startIngest(settings, events, copy.decide, afterFaults(surroundings, log), ingestThread);
  // Runs before the locks are released: the thread must not write once another process can take them.
  undo.defer(ingest.stop);
  const begun = Promise.race([ingest.ready, recovering.promise]).then(
    () => void ingest.ended.then(reportEnd),
  );

  /** Reads continue without the ingest thread, so its end opens alerts. */
  function reportEnd(fault: Error | null): void {
    reading = null;
    if (fault === null) return;
    conditions.set('ingest stopped', fault.message);
    log.error(
      { err: fault },
      'ingest stopped because of an error; clients can still read. Fix the cause and restart',
    );
  }
  return { ...ingest, begun, reading: () => reading };
}

export function ingestSettings(config: Config, secret: Buffer): Omit<IngestSettings, 'mode'> {
  const { ingest, copy } = config;
  return {
    ...ingest,
    ...holdRules(config),
    ...exportShapes(config),
    data: config.dataFolder,
    photos: config.photos.folder,
    earliest_time: config.earliestTime,
    photo_key: deriveKey(secret, 'photo'),
    copy: copy.to === '' ? null : copy,
  };
}

/** @returns what to do about a fault; null: it ends ingest */
function afterFaults({ access, conditions, reader }: IngestSurroundings, log: Logger) {
  /** A damaged detections.db is not rebuilt again and again on a disk that damages it. Monotonic. */
  let rebuiltNotBeforeMs = 0;
  return (fault: Error): Passing | null => {
    if (isOfAccess(fault)) {
      if (isWriteLost(fault)) return null;
      // The thread reads subscriptions and pauses from it: no restart of the program is needed.
      return {
        isOver: () =>
          unlessError(false, () => {
            access.check();
            return true;
          }),
        onInterrupted() {
          conditions.set('ingest stopped', `access.db: ${fault.message}`);
          log.error({ err: fault }, 'access.db cannot be read: ingest waits and resumes automatically');
        },
        worksMs: RESUMED_AFTER_MS,
        onResumed() {
          conditions.set('ingest stopped', null);
          log.info('ingest resumed');
        },
      };
    }
    const isLogDamaged = fault instanceof LogDamage;
    // A start builds detections.db from the log, and makes damaged parts of that anew from the copy, if it has them.
    if (isLogDamaged || isBehind(fault))
      return {
        isOver: () => true,
        onInterrupted() {
          if (isLogDamaged) return;
          // Nobody reads the old one meanwhile.
          reader.close();
          reader.await(fault.message);
        },
      };
    if (!isDamage(fault)) return null;
    return {
      isOver: () => performance.now() >= rebuiltNotBeforeMs,
      onInterrupted() {
        conditions.set('database damaged', `detections.db: ${fault.message}`);
        log.error({ err: fault }, 'detections.db is damaged: it is rebuilt from the log');
      },
      onResumed() {
        rebuiltNotBeforeMs = performance.now() + HEALED_AGAIN_AFTER_MS;
        conditions.set('database damaged', null);
        log.info('detections.db was rebuilt from the log: detections are served again');
      },
    };
  };
}
