/** The appliance as a whole: the lock, the ingesting thread, the readers and the server, started and stopped in order. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createAccessReader } from './auth/access-reader.ts';
import type { Config } from './config/load.ts';
import { EXPORT_NAMES } from './detection/content-type.ts';
import { startServer } from './http/server.ts';
import { type IngestClient, startIngest } from './ingest/ingest-client.ts';
import type { IngestSettings } from './ingest/ingest-settings.ts';
import type { Logger } from './log.ts';
import { Refused } from './refused.ts';
import { openAccess } from './store/access.ts';
import { openReader, takeLock } from './store/database.ts';
import { deriveKey } from './store/derived-key.ts';
import { dataFolder, ensureFolder, readSecret } from './store/folder.ts';
import type { InstallationKind } from './store/installation.ts';
import { formatMs, SECOND_MS } from './time.ts';

/** How long requests that are under way may take when the appliance stops. */
const GRACE_MS = 10 * SECOND_MS;
/** Delivery times that the database has by now; what is kept is far more than what may still be missing. */
const RECENT_DELIVERIES_MAX = 64;

export interface Appliance {
  readonly url: string;
  /** The folder into which exports are dropped. */
  readonly drop: string;
  stop(): Promise<void>;
}

export interface ApplianceOptions {
  readonly config: Config;
  readonly kind: InstallationKind;
  readonly log: Logger;
  /** Shows on a terminal how far a long file is. */
  readonly onProgress: (file: string, rows: number, isDone: boolean) => void;
}

/** @throws Refused when the folders cannot be used, another process uses them, or the address is taken */
export async function startAppliance(options: ApplianceOptions): Promise<Appliance> {
  const { config, kind, log } = options;
  const folder = dataFolder(config.dataFolder);
  ensureFolder(folder);
  const releaseLock = takeLock(folder.lock);
  if (releaseLock === null) {
    throw new Refused(
      'failed',
      `another process already runs on the data folder ${folder.root}. Stop it first, or name another folder with --data.`,
    );
  }
  try {
    openAccess(folder.root, { create: true, kind }).close();
    const secret = readSecret(folder);
    const recentDeliveries = new Map<number, number>();
    const ingest = startIngest(ingestSettings(config, deriveKey(secret, 'photo'), 'serve'), {
      onLog: (level, msg, fields) => log[level](fields, msg),
      onDelivered: (firstPosition, deliveredAtMs) => {
        recentDeliveries.set(firstPosition, deliveredAtMs);
        const [oldest] = recentDeliveries.keys();
        if (recentDeliveries.size > RECENT_DELIVERIES_MAX && oldest !== undefined)
          recentDeliveries.delete(oldest);
      },
      onProgress: options.onProgress,
    });
    await ingest.ready;
    void reportEnd(ingest, log);
    const detections = openReader(folder.detections);
    const access = createAccessReader(folder.access);
    const server = await startServer({
      config,
      stores: { detections, access },
      secret,
      recentDeliveries,
      log,
      now: Date.now,
    }).catch(async (error) => {
      await ingest.stop();
      throw error;
    });
    return {
      url: server.url,
      drop: config.ingest.drop,
      stop: async () => {
        await Promise.all([server.close(GRACE_MS), ingest.stop()]);
        detections.close();
        access.close();
        releaseLock();
        await nextTurn();
      },
    };
  } catch (error) {
    releaseLock();
    throw error;
  }
}

/** What the ingesting thread is told of the configuration. */
export function ingestSettings(
  config: Config,
  photoKey: Uint8Array,
  mode: IngestSettings['mode'],
): IngestSettings {
  const { ingest, exports } = config;
  return {
    data: config.dataFolder,
    drop: ingest.drop,
    quiet_ms: ingest.quiet_ms,
    truncated_seconds: ingest.truncated_seconds,
    rescan_seconds: ingest.rescan_seconds,
    require_trailer: ingest.require_trailer,
    bad_rows: ingest.bad_rows,
    archive_days: ingest.archive_days,
    earliest_time: formatMs(config.earliestTimeMs),
    enabled_exports: EXPORT_NAMES.filter((name) => exports[name].enabled),
    photo_key: photoKey,
    mode,
  };
}

/** Reads go on without the ingesting thread, so its end must not pass unseen. */
async function reportEnd(ingest: IngestClient, log: Logger): Promise<void> {
  const fault = await ingest.ended;
  if (fault !== null) {
    log.error(
      { err: fault },
      'ingest has stopped after a fault; reads go on. Mend the cause and start again',
    );
  }
}
