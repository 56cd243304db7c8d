/** The appliance as a whole: starts the locks, threads, readers and server in order, and stops them. */
import { rmSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openControlSocket } from './admin/control-socket.ts';
import { createOperations, type Operations } from './admin/thread-client.ts';
import type { AskLab, AskOperation } from './admin/thread-messages.ts';
import { createApplianceCopy } from './appliance-copy.ts';
import { type ApplianceIngestOptions, startApplianceIngest } from './appliance-ingest.ts';
import { createAccessReader } from './auth/access-reader.ts';
import { createDenials, readEnded } from './auth/denials.ts';
import { BoundedMap } from './bounded-map.ts';
import { now } from './clock.ts';
import { type Config, holdRules } from './config/load.ts';
import { createAlertCommand } from './health/alert-command.ts';
import { createConditions } from './health/alert-conditions.ts';
import { alertDocument } from './health/alert-texts.ts';
import { diskFolders } from './health/disk.ts';
import { createMonitor } from './health/monitor.ts';
import type { Interventions } from './http/exchange.ts';
import { startServer } from './http/server.ts';
import { createWaiting, type Waiting } from './http/waiting.ts';
import type { IngestClient } from './ingest/threads/ingest-client.ts';
import { createDailyRows, type DailyRows } from './limits/daily-rows.ts';
import { createKeyUses, createSeenKeys } from './limits/key-uses.ts';
import { createRequestCounts } from './limits/request-counts.ts';
import { createUsageKeeper, NO_USAGE, readUsage, type Usage } from './limits/usage.ts';
import { startScrubs } from './log/scrub-schedule.ts';
import { openApiDocument } from './openapi/document.ts';
import type { Live } from './operations/operation.ts';
import { prepareAccess, reportStaleSpare } from './prepare-access.ts';
import { completeRestore, pendingRestore } from './store/complete-restore.ts';
import type { Database } from './store/database.ts';
import { DatabaseDamage } from './store/database-errors.ts';
import { createDetectionsReader } from './store/detections-reader.ts';
import { type DataFolder, dataFolder, ensureFolder, noteDamage, removeAtStop } from './store/folder.ts';
import { type InstallationKind, refuseForeignDatabases } from './store/installation.ts';
import { takeServeLocks, takeStateAlone } from './store/locks.ts';
import { LogDamage } from './store/log-errors.ts';
import { noteAddress } from './store/noted-address.ts';
import { ensureRole, noteStandby, requireRole } from './store/role.ts';
import { readSecret } from './store/secret.ts';
import { SECOND_MS } from './time.ts';

export type Appliance = Awaited<ReturnType<typeof start>>;

/** Only the newest are needed: the next transaction writes those before it. */
const RECENT_DELIVERIES_MAX = 64;

export interface ApplianceOptions extends ApplianceIngestOptions {
  readonly kind: InstallationKind;
  /** For a lab: called once its parts exist. */
  readonly intervene?: (parts: LabParts) => LabJoined;
  /** How long requests in progress may take when the appliance stops; without it, 10 seconds. */
  readonly graceMs?: number;
}

export interface LabParts {
  readonly ingest: Pick<IngestClient, 'ask' | 'rested' | 'endLost'>;
  readonly detections: () => Database;
  readonly dailyRows: DailyRows;
  readonly waiting: Pick<Waiting, 'changed' | 'isIdle'>;
  /** Runs operations, once the appliance has started. */
  readonly operations: () => Operations;
}

export interface LabJoined extends Interventions {
  /** Does an operation of the lab. @throws Refused */
  readonly run: (asked: AskLab) => Promise<unknown>;
}

/** @throws Refused when the folders cannot be used, another process uses them, or the address is taken */
export async function startAppliance(options: ApplianceOptions): Promise<Appliance> {
  const undo = new AsyncDisposableStack();
  try {
    return await start(options, undo);
  } catch (error) {
    await undo.disposeAsync();
    // It may have failed before the thread was put on the stack.
    await options.ingestThread.terminate();
    throw error;
  }
}

/** @param undo gets what ends each step; all of it runs when the start fails, and when the appliance stops */
async function start(options: ApplianceOptions, undo: AsyncDisposableStack) {
  const { config, log } = options;
  const opened = await openFolder(options, undo);
  const { folder, recovered } = opened;
  const counters = await createCounters(options, folder);
  const conditions = createConditions(now, ({ name, detail }) => {
    if (name !== 'database damaged') return;
    // The next thread, or the next start, makes it anew.
    noteDamage(folder, detail);
    stores.reader.close();
    stores.reader.await('detections.db is damaged, and is being rebuilt from the log');
    ingest.interrupt(new DatabaseDamage(detail.replace(/^detections\.db: /, '')));
  });
  conditions.set('access.db replaced', recovered);
  const stores = { ...openStores(config, opened, undo), conditions };
  const copy = createApplianceCopy(config, { ...stores, stopIngest: () => void ingest.stop() }, log);
  undo.defer(copy.close);
  const ingest = startApplianceIngest(options, { ...stores, metrics: counters.metrics, copy }, undo);
  await ingest.begun;
  const health = createMonitor({
    detections: { path: folder.detections, reader: stores.detections },
    access: stores.access,
    conditions,
    rules: holdRules(config),
    folders: diskFolders(config),
    alertCommand: createAlertCommand(config.alerts.command, log),
    role: copy.role,
    now,
    log,
  });
  undo.defer(() => health.close());
  const lab = options.intervene?.({ ...stores, ...counters, ingest, operations: () => operations }) ?? null;
  const server = await startServer({
    ...{ ...stores, ...counters, health, config, log, now },
    onEndLost: ingest.endLost,
    openApi: (baseUrl) => JSON.stringify(openApiDocument(baseUrl)),
    ...(lab && { interventions: lab }),
  });
  undo.defer(() => server.close(0));
  noteAddress(folder, server.url, (reason) =>
    log.warn({ reason }, 'cannot note the address: wirewatch healthcheck cannot find it'),
  );
  undo.defer(() => removeAtStop(folder.address));
  const live = (): Live => ({
    url: server.url,
    console: admin && { url: admin.url },
    unreadable: stores.reader.unreadable(),
    alerts: health.alerts().map(alertDocument),
    role: copy.role(),
    copy: copy.state(),
    reading: ingest.reading(),
  });
  const operations = createOperations({
    settings: { config, kind: options.kind },
    ingest,
    denials: stores.denials,
    onDenied: () => health.suspectDisks(),
    lab: lab && ((asked) => lab.run(asked)),
    live,
    onSpareStale: (reason) => reportStaleSpare(log, reason),
    onFault({ message, isDamage }) {
      log.error({ reason: message }, 'an operation failed');
      if (isDamage) health.noteFault(new DatabaseDamage(message));
    },
  });
  undo.defer(operations.close);
  const parts = { ...stores, ...counters, monitor: health, server, operations, lab: lab?.shown ?? null };
  // Loaded only where it is on: it would delay every start.
  const admin =
    counters.metrics &&
    (await (await import('./admin/listener.ts')).startAdmin(counters.metrics, { ...options, ...parts }));
  undo.defer(() => admin?.close());
  const control = await openControlSocket(folder, operations, log);
  undo.defer(control.close);
  const counts = (): Usage => {
    const { dailyRows, keyUses, seenKeys, requests } = counters;
    requests.behind(copy.state());
    const [rows, uses, seen] = [dailyRows.all(), keyUses.all(), seenKeys.all(now())];
    return { format: 'wirewatch usage 1', rows, uses, seen, ...requests.history() };
  };
  const usage = createUsageKeeper(
    folder.usage,
    () => JSON.stringify(counts()),
    (err) => {
      if (err === null) log.info('row counts can be saved again');
      else log.warn({ err }, 'cannot save the row counts of the daily allowance: a restart would lose them');
    },
  );
  undo.defer(usage.close);
  copy.write();
  const scrubs = startScrubs({
    data: config.dataFolder,
    now,
    log: (level, msg, fields) => log[level](fields, msg),
    ...config.verify,
    isReady: () => stores.reader.unreadable() === null && !conditions.has('database damaged'),
    async onDamage(what, detail) {
      if (what === 'access') conditions.set('keys cannot be checked', detail, 'verify');
      else conditions.set(what === 'secret' ? 'secret missing' : `${what} damaged`, detail);
      if (what !== 'log' || detail === null) return;
      // The next thread makes it anew; without the copy, none could start.
      if (await copy.whenHealable(() => conditions.has('log damaged')))
        ingest.interrupt(new LogDamage(detail));
    },
  });
  return {
    url: server.url,
    operate: (asked: AskOperation) => operations.run(asked),
    /** Resolves when detections.db can be read: it may have to be rebuilt from the log first. */
    readable: ingest.ready,
    async stop(): Promise<void> {
      removeAtStop(folder.address);
      // These take time, so they end together; each may be closed again by the stack.
      await Promise.all([
        server.close(options.graceMs ?? 10 * SECOND_MS),
        ingest.stop(),
        admin?.close(),
        control.close(),
        operations.close(),
        copy.close(),
        scrubs.close(),
      ]);
      await undo.disposeAsync();
      await nextTurn();
    },
  };
}

/**
 * Takes the locks, and brings the folder into the state that a start expects.
 * @returns also why the spare copy took the place of access.db; null: it did not
 */
async function openFolder(options: ApplianceOptions, undo: AsyncDisposableStack) {
  const { config, log } = options;
  const folder = dataFolder(config.dataFolder);
  ensureFolder(folder);
  const releaseLocks = await takeServeLocks(folder, () =>
    log.info({ data: folder.root }, 'another command is using the data folder: waiting for its end'),
  );
  undo.defer(releaseLocks);
  // A crash leaves these behind.
  rmSync(folder.address, { force: true });
  if (pendingRestore(folder) !== null) {
    // A crash interrupted it: it is completed before anything is opened.
    using alone = new DisposableStack();
    alone.defer(takeStateAlone(folder));
    completeRestore(folder);
    log.warn({ data: folder.root }, 'completed an interrupted restore');
  }
  refuseForeignDatabases(folder);
  // Before anything else is created in the folder.
  requireRole(ensureRole(folder), folder, config.copy);
  noteStandby(folder, config.copy);
  const access = createAccessReader(folder.access);
  undo.defer(access.close);
  return { folder, access, recovered: prepareAccess(options, folder.root, access.check) };
}

/** `metrics` null: the administration port is off. */
async function createCounters({ config, kind, log }: ApplianceOptions, { usage }: DataFolder) {
  const onUnusable = (reason: string) =>
    log.warn({ reason }, 'usage cannot be used: the rows read today are counted from zero again');
  const stored = readUsage(usage, onUnusable) ?? NO_USAGE;
  const requests = createRequestCounts(now, stored);
  // A demonstration and a lab have it on, at any free port.
  const isAdminOn = config.admin.port !== 0 || kind !== 'appliance';
  const metrics = isAdminOn ? (await import('./admin/metrics.ts')).createMetrics(requests) : null;
  const dailyRows = createDailyRows(stored.rows);
  const seenKeys = createSeenKeys(stored.seen);
  return { dailyRows, keyUses: createKeyUses(stored.uses), seenKeys, requests, metrics };
}

type Opened = Awaited<ReturnType<typeof openFolder>>;

/** What the threads and the server share. */
function openStores(config: Config, { folder, access }: Opened, undo: AsyncDisposableStack) {
  const denials = createDenials();
  // What access.db could not take before the last end.
  for (const ended of readEnded(folder)) denials.deny(ended);
  const reader = createDetectionsReader(folder.detections);
  undo.defer(reader.close);
  return {
    folder,
    secret: readSecret(folder),
    access: denials.over(access, reader.requireNotEnded),
    denials,
    reader,
    detections: reader.db,
    recentDeliveries: new BoundedMap<number, number>(RECENT_DELIVERIES_MAX),
    waiting: createWaiting(config.server.max_connections),
  };
}
