/**
 * The gauges of /metrics, read once for each answer: views of the status document, which the operations thread reads.
 * Alerts, health and what accounts have used today come from memory, which is newer.
 */
import { readdir } from 'node:fs/promises';
import { type Account, listAccounts } from '../auth/accounts.ts';
import { type KeyState, listKeyStates } from '../auth/keys.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { ALERT_NAMES, isPageWorthy } from '../health/alert-texts.ts';
import type { Monitor } from '../health/monitor.ts';
import { accountUsageId, type DailyRows } from '../limits/daily-rows.ts';
import type { KeyUses } from '../limits/key-uses.ts';
import type { Status } from '../operations/status.ts';
import { openDatabase } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { type Now, parseInstant, SECOND_MS } from '../time.ts';

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

/** Without labels, a number, or null where there is no value; with labels, each value before its labels. */
type Reading = number | null | readonly (readonly [value: number, ...labels: string[]])[];
/** By name, with the names of the labels in braces. */
type Gauges<From> = Readonly<Record<string, readonly [help: string, read: (sources: From) => Reading]>>;

const MICROSECONDS = 1e6;

const LIVE: Gauges<GaugeSources> = {
  wirewatch_healthy: [
    'Whether GET /v1/health answers 200.',
    ({ monitor }) => Number(monitor.health().status === 'ok'),
  ],
  wirewatch_ingest_paused: [
    'Whether ingest is paused on purpose.',
    (source) => source.monitor.health().alerts.paused,
  ],
  'wirewatch_alerts_open{alert,page_worthy}': [
    'Open alerts, by name; page_worthy is true for those that need someone now.',
    openAlerts,
  ],
  'wirewatch_newest_done_timestamp_seconds{export}': [
    'End of the newest finished window of an export; as_of is made from it.',
    newestDone,
  ],
  wirewatch_connections: ['Open connections to the API.', ({ connections }) => connections()],
  wirewatch_certificate_expires_timestamp_seconds: [
    'When the TLS certificate in use expires.',
    ({ certificateExpiresMs }) => inSeconds(certificateExpiresMs()),
  ],
};

const OF_ACCOUNTS: Gauges<GaugeSources & Accounts> = {
  'wirewatch_account_rows_today{account}': ['Rows that an account has read on this UTC day.', rowsToday],
  'wirewatch_account_last_request_timestamp_seconds{account}': [
    'When a key of an account was last used.',
    lastRequests,
  ],
};

const OF_STATUS: Gauges<Status> = {
  'wirewatch_windows{export,status}': ['Export windows of the last 90 days, by status.', windows],
  'wirewatch_follower_lag_seconds{account,key_id}': [
    'Age of the oldest change that a key which follows the stream has not been given.',
    ({ followers }) =>
      followers.map((follower) => [follower.seconds_behind, follower.account, follower.key_id]),
  ],
  'wirewatch_database_bytes{database}': [
    'Size of a database file.',
    ({ database }) => [
      [database.bytes, 'detections'],
      [database.access_bytes, 'access'],
    ],
  ],
  'wirewatch_disk_free_bytes{folder}': [
    'Free space for the appliance on the disk of a folder.',
    ({ disks }) => disks.map(({ of: disk, free_bytes }) => [free_bytes, disk]),
  ],
  wirewatch_verified_timestamp_seconds: [
    'When detections.db was last compared with its log.',
    ({ scrub }) => secondsOf(scrub?.at),
  ],
  wirewatch_copy_entries_behind: [
    'Entries of the log that the copy lacks.',
    ({ copy }) => (typeof copy?.entries_behind === 'number' ? [[copy.entries_behind]] : []),
  ],
  wirewatch_copy_contact_timestamp_seconds: [
    'When the place of the copy last answered.',
    ({ copy }) => secondsOf(copy?.contact_at),
  ],
};

/**
 * The process itself, under the names of prom-client. Its own collector also observes every garbage collection, which
 * made a light request 5 % slower.
 */
const OF_PROCESS: Gauges<{ readonly files: number | null }> = {
  process_cpu_seconds_total: [
    'Processor time of all threads.',
    () => (process.cpuUsage().user + process.cpuUsage().system) / MICROSECONDS,
  ],
  process_resident_memory_bytes: ['Memory of the process.', () => process.memoryUsage.rss()],
  process_open_fds: ['Open files and sockets.', ({ files }) => files],
};

export const GAUGES = Object.entries({ ...LIVE, ...OF_ACCOUNTS, ...OF_STATUS, ...OF_PROCESS }).map(
  ([key, [help]]) => {
    const [name = '', ...labels] = key.split(/[{,}]/).filter(Boolean);
    return { key, name, labels, help };
  },
);

export async function readGauges(sources: GaugeSources): Promise<Map<string, Reading>> {
  const status = await sources.status();
  const files = await readdir('/proc/self/fd').catch(() => null);
  const read = <From>(gauges: Gauges<From>, sources: From) =>
    Object.entries(gauges).map(([key, [, reading]]) => [key, reading(sources)] as const);
  return new Map([
    ...read(LIVE, sources),
    ...read(OF_ACCOUNTS, { ...sources, ...readAccounts(sources) }),
    ...(status === null ? [] : read(OF_STATUS, status)),
    ...read(OF_PROCESS, { files: files?.length ?? null }),
  ]);
}

function openAlerts({ monitor }: GaugeSources): Reading {
  const open = Map.groupBy(monitor.alerts(), ({ name }) => name);
  return ALERT_NAMES.map((name) => {
    const alerts = open.get(name) ?? [];
    return [alerts.length, name, `${[{ name }, ...alerts].some(isPageWorthy)}`];
  });
}

/** An export without a finished window, or that is switched off, has no value. */
function newestDone({ monitor }: GaugeSources): Reading {
  const { exports } = monitor.health();
  return EXPORT_NAMES.flatMap((name) => {
    const value = secondsOf(exports[name].newest_done);
    return value === null ? [] : [[value, name] as const];
  });
}

function windows({ exports, database }: Status): Reading {
  if (database.unreadable !== null) return null;
  return EXPORT_NAMES.flatMap((name) => {
    const { windows_done: done, not_read } = exports[name];
    const { failed, missing, abandoned } = not_read;
    const counts = Object.entries({ done, failed, missing, abandoned });
    return counts.map(([status, value]) => [value, name, status] as const);
  });
}

interface Accounts {
  readonly accounts: readonly Account[];
  /** All that were ever created, but those of removed accounts. */
  readonly keys: readonly KeyState[];
}

/** None while access.db cannot be read; an alert says why. */
function readAccounts({ folder }: GaugeSources): Accounts {
  try {
    using db = openDatabase(folder.access, 'inspect');
    return { accounts: listAccounts(db), keys: listKeyStates(db) };
  } catch {
    return { accounts: [], keys: [] };
  }
}

function rowsToday({ accounts, dailyRows, now }: GaugeSources & Accounts): Reading {
  return accounts.map((account) => [dailyRows.used('account', accountUsageId(account), now()), account.id]);
}

function lastRequests({ keys, keyUses }: GaugeSources & Accounts): Reading {
  const usedAt = new Map(keyUses.all().map(({ key_id, last_used_at }) => [key_id, last_used_at]));
  return [...Map.groupBy(keys, ({ account_id }) => account_id)].flatMap(([account, own]) => {
    const times = own.flatMap(({ id }) => usedAt.get(id) ?? []);
    return times.length === 0 ? [] : [[Math.max(...times) / SECOND_MS, account] as const];
  });
}

function secondsOf(time: string | null | undefined): number | null {
  return inSeconds(parseInstant(time ?? ''));
}

function inSeconds(ms: number | null): number | null {
  return ms === null ? null : ms / SECOND_MS;
}
