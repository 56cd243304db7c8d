/**
 * The metrics: counters of events, and gauges that are read once for each answer. Most are views of the status document,
 * which the operations thread reads; alerts, health and what accounts have used today come from memory, which is newer.
 * The manual's topic `monitoring` lists them, which a test compares.
 *
 * https://prometheus.io/docs/practices/naming/
 */
import { readdir } from 'node:fs/promises';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { listAccounts } from '../auth/accounts.ts';
import { listKeyStates } from '../auth/keys.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { ALERT_NAMES, isPageWorthy } from '../health/alert-texts.ts';
import type { Monitor } from '../health/monitor.ts';
import { LIMITS, type RequestMetrics } from '../http/request-metrics.ts';
import { FILE_OUTCOMES, type ProcessedFile, ROW_OUTCOMES } from '../ingest/files/file-record.ts';
import { accountUsageId, type DailyRows } from '../limits/daily-rows.ts';
import type { KeyUses } from '../limits/key-uses.ts';
import type { RequestCounts } from '../limits/request-counts.ts';
import type { Status } from '../operations/status.ts';
import { type Database, inspected } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { type Now, parseInstant, SECOND_MS } from '../time.ts';
import { COMMIT, VERSION } from '../version.ts';

/** A light request takes 0.1 ms, the largest page a few ms; seconds mean that something is wrong. */
const DURATION_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export type Metrics = ReturnType<typeof createMetrics>;

/** @param counts receives what the console shows over time */
export function createMetrics(counts: Pick<RequestCounts, 'answered' | 'refuse'>) {
  const registry = new Registry();
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const durations = new Histogram({
    name: 'wirewatch_http_request_duration_seconds',
    help: 'Duration of API requests in seconds, until the response was handed to the operating system.',
    labelNames: ['endpoint', 'status'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [registry],
  });
  const served = counter('wirewatch_rows_served_total', 'Detections returned to clients.', 'endpoint');
  const rejected = 'Requests and connections rejected by a limit.';
  const refused = counter('wirewatch_refused_total', rejected, 'limit');
  const files = counter('wirewatch_files_total', 'Files processed, by outcome.', 'export', 'outcome');
  const read = 'Rows of files processed, by outcome.';
  const rowsRead = counter('wirewatch_rows_ingested_total', read, 'export', 'outcome');
  for (const limit of LIMITS) refused.inc({ limit }, 0);
  for (const name of EXPORT_NAMES) {
    for (const outcome of FILE_OUTCOMES) if (outcome !== 'applying') files.inc({ export: name, outcome }, 0);
    for (const outcome of ROW_OUTCOMES) rowsRead.inc({ export: name, outcome }, 0);
  }
  return {
    contentType: registry.contentType,
    text: async (sources: GaugeSources) => (await registry.metrics()) + (await gaugesText(sources)),
    answered(answer) {
      const { endpoint, status, seconds, rows } = answer;
      durations.observe({ endpoint, status: `${Math.floor(status / 100)}xx` }, seconds);
      if (rows > 0) served.inc({ endpoint }, rows);
      counts.answered(answer);
    },
    refused: (limit) => refused.inc({ limit }),
    keyRefused: counts.refuse,
    processed({ export: of, outcome: ended, rows }: ProcessedFile) {
      const name = of ?? 'none';
      files.inc({ export: name, outcome: ended });
      for (const outcome of ROW_OUTCOMES)
        if (rows[outcome] > 0) rowsRead.inc({ export: name, outcome }, rows[outcome]);
    },
  } satisfies RequestMetrics & Record<string, unknown>;
}

async function gaugesText(sources: GaugeSources): Promise<string> {
  const registry = new Registry();
  const known = { ...sources, ...(await readOnce(sources)) };
  for (const [key, [help, read]] of Object.entries(GAUGES)) {
    const [name = '', ...labelNames] = key.split(/[{,}]/).filter(Boolean);
    const options = { name, help, labelNames, registers: [registry] };
    const metric = name.endsWith('_total') ? new Counter(options) : new Gauge(options);
    const value = read(known);
    // One without labels begins as 0.
    if (value === null && labelNames.length === 0) metric.remove();
    for (const [count, ...labels] of typeof value === 'number' ? [[value] as const] : (value ?? []))
      metric.labels(...labels).inc(count);
  }
  return registry.metrics();
}

export interface GaugeSources {
  readonly monitor: Pick<Monitor, 'health' | 'alerts'>;
  /** Null if it cannot be read now: the gauges made from it have no value. */
  readonly status: () => Promise<Status | null>;
  readonly folder: Pick<DataFolder, 'access'>;
  readonly dailyRows: Pick<DailyRows, 'used'>;
  readonly keyUses: Pick<KeyUses, 'all'>;
  /** When the certificate in use expires, epoch milliseconds; null without TLS. */
  readonly certificateExpiresMs: () => number | null;
  readonly connections: () => number;
  readonly now: Now;
}

type Sources = Omit<GaugeSources, 'status'> & Awaited<ReturnType<typeof readOnce>>;
/** Without labels, a number, or null where there is no value; with labels, each value before its labels. */
type Reading = number | null | readonly (readonly [value: number, ...labels: string[]])[];
type Reader = readonly [help: string, read: (sources: Sources) => Reading];

const MICROSECONDS = 1e6;

/** @param read the value; there is none while the status cannot be read */
const ofStatus =
  (read: (status: Status) => Reading): Reader[1] =>
  ({ status }) =>
    status && read(status);

/**
 * By name, with the names of the labels in braces. Those of the process have the names of prom-client, whose own collector
 * also observes every garbage collection, which made a light request 5 % slower.
 */
const GAUGES: Readonly<Record<string, Reader>> = {
  'wirewatch_build_info{version,commit}': ['Build information. Always 1.', () => [[1, VERSION, COMMIT]]],
  wirewatch_healthy: ['Whether GET /v1/health answers 200.', ({ health }) => Number(health.status === 'ok')],
  wirewatch_ingest_paused: ['Whether ingest is paused on purpose.', ({ health }) => health.alerts.paused],
  'wirewatch_alerts_open{alert,page_worthy}': [
    'Open alerts, by name; page_worthy is true for those that need someone now.',
    ({ monitor }) => {
      const open = Map.groupBy(monitor.alerts(), ({ name }) => name);
      return ALERT_NAMES.map((name) => {
        const alerts = open.get(name) ?? [];
        return [alerts.length, name, `${[{ name }, ...alerts].some(isPageWorthy)}`];
      });
    },
  ],
  'wirewatch_newest_done_timestamp_seconds{export}': [
    'End of the newest finished window of an export; as_of is made from it.',
    // An export without a finished window, or that is switched off, has no value.
    ({ health }) =>
      EXPORT_NAMES.flatMap((name) => {
        const value = secondsOf(health.exports[name].newest_done);
        return value === null ? [] : [[value, name] as const];
      }),
  ],
  wirewatch_connections: ['Open connections to the API.', ({ connections }) => connections()],
  wirewatch_certificate_expires_timestamp_seconds: [
    'When the TLS certificate in use expires.',
    ({ certificateExpiresMs }) => inSeconds(certificateExpiresMs()),
  ],
  'wirewatch_account_rows_today{account}': [
    'Rows that an account has read on this UTC day.',
    ({ accounts, dailyRows, now }) =>
      accounts.map((own) => [dailyRows.used('account', accountUsageId(own), now()), own.id]),
  ],
  'wirewatch_account_last_request_timestamp_seconds{account}': [
    'When a key of an account was last used.',
    ({ keys, keyUses }) => {
      const usedAt = new Map(keyUses.all().map(({ key_id, last_used_at }) => [key_id, last_used_at]));
      return [...Map.groupBy(keys, ({ account_id }) => account_id)].flatMap(([account, own]) => {
        const times = own.flatMap(({ id }) => usedAt.get(id) ?? []);
        return times.length === 0 ? [] : [[Math.max(...times) / SECOND_MS, account] as const];
      });
    },
  ],
  'wirewatch_windows{export,status}': [
    'Export windows of the last 90 days, by status.',
    ofStatus(({ exports, database }) => {
      if (database.unreadable !== null) return null;
      return EXPORT_NAMES.flatMap((name) => {
        const { windows_done: done, not_read } = exports[name];
        const { failed, missing, abandoned } = not_read;
        const counts = Object.entries({ done, failed, missing, abandoned });
        return counts.map(([status, value]) => [value, name, status] as const);
      });
    }),
  ],
  'wirewatch_follower_lag_seconds{account,key_id}': [
    'Age of the oldest change that a key which follows the stream has not been given.',
    ofStatus(({ followers }) => followers.map((one) => [one.seconds_behind, one.account, one.key_id])),
  ],
  'wirewatch_database_bytes{database}': [
    'Size of a database file.',
    ofStatus(({ database }) => [
      [database.bytes, 'detections'],
      [database.access_bytes, 'access'],
    ]),
  ],
  'wirewatch_disk_free_bytes{folder}': [
    'Free space for the appliance on the disk of a folder.',
    ofStatus(({ disks }) => disks.map(({ of: disk, free_bytes }) => [free_bytes, disk])),
  ],
  wirewatch_verified_timestamp_seconds: [
    'When detections.db was last compared with its log.',
    ofStatus(({ scrub }) => (scrub?.not_compared === null ? secondsOf(scrub.at) : null)),
  ],
  wirewatch_copy_entries_behind: [
    'Entries of the log that the copy lacks.',
    ofStatus(({ copy }) => copy?.entries_behind ?? null),
  ],
  wirewatch_copy_contact_timestamp_seconds: [
    'When the place of the copy last answered.',
    ofStatus(({ copy }) => secondsOf(copy?.contact_at)),
  ],
  process_cpu_seconds_total: [
    'Processor time of all threads.',
    () => (process.cpuUsage().user + process.cpuUsage().system) / MICROSECONDS,
  ],
  process_resident_memory_bytes: ['Memory of the process.', () => process.memoryUsage.rss()],
  process_open_fds: ['Open files and sockets.', ({ files }) => files],
};

async function readOnce({ status: readStatus, folder, monitor }: GaugeSources) {
  const files = await readdir('/proc/self/fd').catch(() => null);
  const status = await readStatus();
  const read = (db: Database) => ({ accounts: listAccounts(db), keys: listKeyStates(db) });
  // Keys: all that were ever created, but those of removed accounts. None while access.db cannot be read; an alert says why.
  const known = inspected<ReturnType<typeof read>>(folder.access, { accounts: [], keys: [] }, read);
  return { status, health: monitor.health(), files: files?.length ?? null, ...known };
}

const secondsOf = (time: string | null | undefined) => inSeconds(parseInstant(time ?? ''));

const inSeconds = (ms: number | null) => (ms === null ? null : ms / SECOND_MS);
