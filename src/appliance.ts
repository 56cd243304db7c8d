/** The appliance as a whole: the lock, the ingest thread, the readers and the server, started and stopped in order. */
import { rmSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { isAdminOn, loadMetrics, openAdmin } from './admin/open-admin.ts';
import { type AccessReader, createAccessReader } from './auth/access-reader.ts';
import { type Schedule, startSchedule } from './backup/schedule.ts';
import { now } from './clock.ts';
import { type Config, enabledExports } from './config/load.ts';
import { createAlertCommand } from './health/alert-command.ts';
import { type Conditions, createConditions } from './health/alert-conditions.ts';
import { type Monitor, startMonitor } from './health/monitor.ts';
import { createPauseReader } from './health/pause-reader.ts';
import { type ScrubSchedule, startScrubs } from './history/scrub-schedule.ts';
import type { Interventions } from './http/interventions.ts';
import { startServer } from './http/server.ts';
import { createWaiting, type Waiting } from './http/waiting.ts';
import { ReadingNotes } from './ingest/reading-note.ts';
import type { IngestClient, ReportedEvent } from './ingest/threads/ingest-client.ts';
import { INGEST_CONDITIONS, type IngestSettings } from './ingest/threads/ingest-messages.ts';
import { type Supervision, superviseIngest } from './ingest/threads/supervisor.ts';
import { createDailyRows, type DailyRows } from './limits/daily-rows.ts';
import { createKeyUses } from './limits/key-uses.ts';
import { createRequestCounts } from './limits/request-counts.ts';
import { readUsageAtStart } from './limits/usage.ts';
import {
  createUsageKeeper,
  createUsageWriter,
  type UsageKeeper,
  type UsageKeeperOptions,
} from './limits/usage-keeper.ts';
import type { Logger } from './log.ts';
import { paced } from './pace.ts';
import { prepareAccess } from './prepare-access.ts';
import { noteDamage } from './store/damage.ts';
import type { Database } from './store/database.ts';
import { isDamage, isWriteLost } from './store/database-errors.ts';
import { deriveKey } from './store/derived-key.ts';
import { createDetectionsReader, type DetectionsReader } from './store/detections-reader.ts';
import { type DataFolder, dataFolder, ensureFolder } from './store/folder.ts';
import { completeRestore, pendingRestore } from './store/incoming.ts';
import type { InstallationKind } from './store/installation.ts';
import { makeStateLock, takeServeLocks, takeStateAlone } from './store/locks.ts';
import { noteAddress } from './store/noted-address.ts';
import { keepReserve } from './store/reserve.ts';
import { readSecret } from './store/secret.ts';
import { refuseNewer } from './store/writer.ts';
import { formatMs, SECOND_MS } from './time.ts';
import { VERSION } from './version.ts';

/** How long requests that are under way may take when the appliance stops, if not told otherwise. */
const GRACE_MS = 10 * SECOND_MS;
/** Within which a fault of the ingesting thread is put down to keys that could not be checked. */
const KEYS_FAILED_LATELY_MS = paced(3 * SECOND_MS);
/** Delivery times that the database has by now; what is kept is far more than what may still be missing. */
const RECENT_DELIVERIES_MAX = 64;

export interface Appliance {
  readonly url: string;
  /** Null where it is off. */
  readonly consoleUrl: string | null;
  /** The folder into which exports are dropped. */
  readonly drop: string;
  /** Settles when detections.db can be read: it may have to be made from the log first. */
  readonly readable: Promise<void>;
  /** Looks for a renewed certificate at once; null without TLS. */
  readonly renewCertificate: (() => void) | null;
  stop(): Promise<void>;
}

export interface ApplianceOptions {
  readonly config: Config;
  readonly kind: InstallationKind;
  readonly log: Logger;
  /** Of bootIngestThread; ended when the start fails. */
  readonly ingestThread: Worker;
  /** Of a lab: given its parts, once they are there; @returns what its server asks at each request. */
  readonly intervene?: (parts: LabParts) => Interventions;
  /** How long requests that are under way may take when it stops. */
  readonly graceMs?: number;
  /** Shows on a terminal how far a long file is. */
  readonly onProgress: (file: string, rows: number, isDone: boolean) => void;
}

export interface LabParts {
  readonly ingest: Pick<IngestClient, 'rested' | 'endLost'>;
  readonly detections: () => Database;
  readonly recentDeliveries: ReadonlyMap<number, number>;
  readonly dailyRows: DailyRows;
  readonly waiting: Pick<Waiting, 'changed'>;
  readonly secret: Buffer;
}

/** What a start has begun: undone when it fails, the last first. */
type Begun = (() => unknown)[];

/** @throws Refused when the folders cannot be used, another process uses them, or the address is taken */
export async function startAppliance(options: ApplianceOptions): Promise<Appliance> {
  const begun: Begun = [];
  try {
    return await start(options, begun);
  } catch (error) {
    for (const undo of begun.reverse()) await undo();
    // It did nothing yet where it is not among what was begun.
    await options.ingestThread.terminate();
    throw error;
  }
}

async function start(options: ApplianceOptions, begun: Begun): Promise<Appliance> {
  const { config, log } = options;
  const folder = dataFolder(config.dataFolder);
  ensureFolder(folder);
  const releaseLocks = await takeServeLocks(folder, () =>
    log.info({ data: folder.root }, 'another command is using the data folder: asking it to hand over'),
  );
  begun.push(releaseLocks);
  // What a crash has left; they are written anew.
  for (const note of [folder.address, folder.consoleAddress]) rmSync(note, { force: true });
  completeCutOffRestore(folder, log);
  refuseNewer(folder);
  prepareAccess(options, folder.root);
  const dailyRows = countRows(folder.usage, log);
  const keyUses = createKeyUses();
  const secret = readSecret(folder);
  const recentDeliveries = new Map<number, number>();
  const waiting = createWaiting();
  const counts = createRequestCounts(now);
  const metrics = isAdminOn(config, options.kind) ? await loadMetrics(counts) : null;
  const conditions = createConditions(now, (name) => {
    // What is damaged is neither served nor written any more.
    if (name !== 'database damaged') return;
    const damage = conditions.open().find((condition) => condition.name === name);
    noteDamage(folder, damage?.detail ?? '');
    void ingest.stop();
  });
  const access = createAccessReader(folder.access);
  begun.push(access.close);
  const reader = createDetectionsReader(folder.detections);
  begun.push(reader.close);
  const reading = new ReadingNotes(folder);
  begun.push(() => reading.close());
  const recovering = Promise.withResolvers<void>();
  const settings = ingestSettings(config, deriveKey(secret, 'photo'), 'serve');
  const onEvent = (event: ReportedEvent) => {
    switch (event.kind) {
      case 'log':
        return log[event.level](event.fields, event.msg);
      case 'delivered':
        noteDelivery(recentDeliveries, event.first_position, event.delivered_at);
        return waiting.changed();
      case 'condition':
        return conditions.set(event.name, event.detail);
      case 'recovering':
        reader.await(`detections.db is being rebuilt from the log: ${event.reason}`);
        log.warn(
          { reason: event.reason },
          'rebuilding detections.db from the log: detections are unavailable until that is done',
        );
        return recovering.resolve();
      case 'processed':
        return metrics?.processed(event.file);
      case 'progress':
        reading.note(event.file, event.rows, event.isDone);
        return options.onProgress(event.file, event.rows, event.isDone);
    }
  };
  const supervision = whileKeysFail(access, conditions, log);
  const ingest = superviseIngest(settings, onEvent, supervision, options.ingestThread);
  // Before the locks are free: it must not go on writing once another process can take them.
  begun.push(ingest.stop);
  // Where it takes long until there is something to read, the port is open meanwhile.
  await Promise.race([ingest.ready.then(reader.open), recovering.promise]);
  ingest.ready.then(reader.open).catch(() => {});
  void reportEnd(ingest, conditions, log);
  const detections = reader.db;
  const health = watchHealth(config, folder, { detections, access, conditions, log });
  begun.push(health.close);
  const lab = options.intervene?.({ ingest, detections, recentDeliveries, dailyRows, waiting, secret });
  const server = await startServer({
    config,
    stores: { detections, access },
    health,
    conditions,
    secret,
    recentDeliveries,
    onEndLost: ingest.endLost,
    waiting,
    dailyRows,
    keyUses,
    traffic: metrics,
    log,
    now,
    ...(lab && { interventions: lab }),
  });
  begun.push(() => server.close(0));
  noteAddress(folder.address, server.url, (reason) =>
    log.warn({ reason }, 'cannot note the address: wirewatch status and healthcheck cannot find it'),
  );
  begun.push(() => rmSync(folder.address, { force: true }));
  const opened = { folder, secret, conditions, monitor: health, detections, server, dailyRows, keyUses };
  const admin = metrics && (await openAdmin(metrics, { ...options, ...opened, lab: lab?.shown ?? null }));
  begun.push(() => admin?.close());
  const usage = keepUsage(folder.usage, { rows: dailyRows, uses: keyUses, requests: metrics && counts }, log);
  begun.push(usage.close);
  const backups = scheduleBackups(config, conditions, log);
  const scrubs = scheduleScrubs(config, reader, conditions, log);
  return {
    url: server.url,
    consoleUrl: admin?.url ?? null,
    drop: config.ingest.drop,
    readable: ingest.ready,
    renewCertificate: server.renewCertificate,
    stop: async () => {
      rmSync(folder.address, { force: true });
      const ends = [
        server.close(options.graceMs ?? GRACE_MS),
        ingest.stop(),
        admin?.close(),
        backups.close(),
        scrubs.close(),
      ];
      await Promise.all(ends);
      health.close();
      reading.close();
      await usage.close();
      reader.close();
      access.close();
      releaseLocks();
      await nextTurn();
    },
  };
}

/** Only the newest are needed: the next transaction writes those before it. */
function noteDelivery(recent: Map<number, number>, firstPosition: number, deliveredAtMs: number): void {
  recent.set(firstPosition, deliveredAtMs);
  const [oldest] = recent.keys();
  if (recent.size > RECENT_DELIVERIES_MAX && oldest !== undefined) recent.delete(oldest);
}

/** What a crash in the middle of a restore has left, before anything is opened. */
function completeCutOffRestore(folder: DataFolder, log: Logger): void {
  makeStateLock(folder);
  if (pendingRestore(folder) === null) return;
  const releaseState = takeStateAlone(folder);
  try {
    completeRestore(folder);
  } finally {
    releaseState();
  }
  log.warn({ data: folder.root }, 'completed an interrupted restore');
}

function scheduleBackups(config: Config, conditions: Conditions, log: Logger): Schedule {
  return startSchedule({
    data: config.dataFolder,
    drop: config.ingest.drop,
    ...config.backup,
    now,
    log: (level, msg, fields) => log[level](fields, msg),
    onAlert: (name, detail) => conditions.set(name, detail),
  });
}

function scheduleScrubs(
  config: Config,
  reader: DetectionsReader,
  conditions: Conditions,
  log: Logger,
): ScrubSchedule {
  return startScrubs({
    data: config.dataFolder,
    ...config.verify,
    now,
    isReady: () => reader.isOpen() && !conditions.has('database damaged'),
    log: (level, msg, fields) => log[level](fields, msg),
    onDamage: (what, detail) => conditions.set(`${what} damaged`, detail),
  });
}

function countRows(path: string, log: Logger): DailyRows {
  const stored = readUsageAtStart(path, (reason) =>
    log.warn({ reason }, 'usage.db cannot be used: the rows read today are counted from zero again'),
  );
  return createDailyRows(stored);
}

function keepUsage(
  path: string,
  counted: Pick<UsageKeeperOptions, 'rows' | 'uses' | 'requests'>,
  log: Logger,
): UsageKeeper {
  return createUsageKeeper({
    ...counted,
    writer: createUsageWriter({ path }),
    onFailure: (error) => {
      if (error === null) log.info('row counts can be saved again');
      else
        log.warn(
          { err: error },
          'cannot save the row counts of the daily allowance: a restart would lose them',
        );
    },
  });
}

/** What the ingesting thread is told of the configuration. */
export function ingestSettings(
  config: Config,
  photoKey: Uint8Array,
  mode: IngestSettings['mode'],
): IngestSettings {
  const { ingest } = config;
  return {
    data: config.dataFolder,
    drop: ingest.drop,
    quiet_ms: ingest.quiet_ms,
    truncated_seconds: ingest.truncated_seconds,
    rescan_seconds: ingest.rescan_seconds,
    require_trailer: ingest.require_trailer,
    bad_rows: ingest.bad_rows,
    failed_windows: ingest.failed_windows,
    archive_days: ingest.archive_days,
    earliest_time: formatMs(config.earliestTimeMs),
    enabled_exports: [...enabledExports(config)],
    photo_key: photoKey,
    program: VERSION,
    mode,
  };
}

function watchHealth(
  config: Config,
  folder: DataFolder,
  {
    detections,
    access,
    conditions,
    log,
  }: { detections: () => Database; access: AccessReader; conditions: Conditions; log: Logger },
): Monitor {
  return startMonitor({
    detections: { path: folder.detections, reader: detections },
    pause: createPauseReader(folder.access),
    checkKeys: access.check,
    conditions,
    enabled: enabledExports(config),
    folders: [folder.root, config.ingest.drop],
    onDisksSeen: () => keepReserve(folder),
    alertFile: folder.alerts,
    alertCommand: createAlertCommand(config.alerts.command, log),
    now,
    log,
  });
}

/** While keys cannot be checked, that is what has ended the ingesting thread: it reads access.db, too. */
function whileKeysFail(access: AccessReader, conditions: Conditions, log: Logger): Supervision {
  return {
    isPassing(fault) {
      if (isWriteLost(fault)) return false;
      try {
        access.check();
      } catch {
        return true;
      }
      // It may have been fixed before the thread noticed the problem.
      return access.hasFailedWithin(KEYS_FAILED_LATELY_MS);
    },
    onInterrupted(fault) {
      for (const name of INGEST_CONDITIONS) conditions.set(name, null);
      conditions.set('ingest stopped', `access.db: ${fault.message}`);
      log.error({ err: fault }, 'access.db cannot be read: ingest waits and resumes automatically');
    },
    onResumed() {
      conditions.set('ingest stopped', null);
      log.info('ingest resumed');
    },
  };
}

/** Reads go on without the ingesting thread, so its end must not pass unseen. */
async function reportEnd(ingest: IngestClient, conditions: Conditions, log: Logger): Promise<void> {
  const fault = await ingest.ended;
  for (const name of INGEST_CONDITIONS) conditions.set(name, null);
  if (fault !== null) {
    if (isDamage(fault)) conditions.set('database damaged', `detections.db: ${fault.message}`);
    conditions.set('ingest stopped', fault.message);
    log.error(
      { err: fault },
      'ingest stopped because of an error; clients can still read. Fix the cause and restart',
    );
  }
}
