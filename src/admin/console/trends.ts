/** What was read, delivered and asked for over 24 hours, 7 or 90 days (api.ts): the curves of the overview. */
import { type Account, listAccounts } from '../../auth/accounts.ts';
import { listKeys } from '../../auth/keys.ts';
import { listSubscriptions } from '../../auth/subscriptions.ts';
import { EXPORT_NAMES, type ExportName, perExport } from '../../detection/content-type.ts';
import type { HourCounts } from '../../limits/request-counts.ts';
import { readUsage } from '../../limits/usage.ts';
import { followersOf, lagsAt, type Mark, readActiveKeys, streamsOfKey } from '../../operations/followers.ts';
import { positionBefore } from '../../query/delivery.ts';
import { defaulted, readParameters } from '../../query/parameters.ts';
import { integer } from '../../query/value-kinds.ts';
import type { Database } from '../../store/database.ts';
import { sequenceOf } from '../../store/stream-place.ts';
import { DAY_MS, formatMs, HOUR_MS, SECOND_MS, WINDOW_MS } from '../../time.ts';
import type { Read, Sources } from './sources.ts';

const STEPS_MS: ReadonlyMap<number, number> = new Map([
  [1, HOUR_MS],
  [7, 6 * HOUR_MS],
  [90, DAY_MS],
]);
const DAYS = { days: defaulted(integer(1, 90), 1) };

export const APPLIED_FILES = `
  SELECT finished_at / CAST(:step AS INTEGER) AS step, export,
    sum(coalesce(report ->> '$.created', 0)) AS created,
    sum(coalesce(report ->> '$.updated', 0)) AS updated,
    avg(iif(EXISTS (
      SELECT 1 FROM ingest_file AS earlier INDEXED BY ingest_file_by_window
      WHERE earlier.export = ingest_file.export AND earlier.window_start = ingest_file.window_start
        AND earlier.outcome = 'applied' AND earlier.number < ingest_file.number
    ), NULL, max(0, finished_at - window_start - ${WINDOW_MS}))) AS late
  FROM ingest_file INDEXED BY ingest_file_by_outcome
  WHERE outcome = 'applied' AND finished_at >= :from AND export IS NOT NULL
  GROUP BY step, export`;

interface Step {
  readonly step: number;
  readonly export: ExportName;
  readonly created: number;
  readonly updated: number;
  /** Milliseconds; null: only backfills. */
  readonly late: number | null;
}

/** The steps of a span, the newest last. `?days=7`: other numbers of days than 1, 7 and 90 have steps of a day. */
function stepsOf({ nowMs }: Sources, { query }: Read) {
  const { days } = readParameters(query, DAYS);
  const stepMs = STEPS_MS.get(days) ?? DAY_MS;
  const length = (days * DAY_MS) / stepMs;
  const first = Math.floor(nowMs / stepMs) - length + 1;
  const head = { from: formatMs(first * stepMs), step_seconds: stepMs / SECOND_MS };
  return { stepMs, first, head, starts: Array.from({ length }, (_, at) => (first + at) * stepMs) };
}
type Steps = ReturnType<typeof stepsOf>;

export function readTrends(sources: Sources, asked: Read) {
  const steps = stepsOf(sources, asked);
  const { stepMs, first, starts } = steps;
  const span = { from: first * stepMs, step: stepMs };
  const applied = sources.detections().prepare<unknown[], Step>(APPLIED_FILES).all(span);
  const ofExport = (name: ExportName) => {
    const own = new Map(applied.filter((step) => step.export === name).map((step) => [step.step, step]));
    const values = <Value>(value: (step: Step | undefined) => Value) =>
      starts.map((_, at) => value(own.get(first + at)));
    return {
      /** New detections in each step. */
      created: values((step) => step?.created ?? 0),
      updated: values((step) => step?.updated ?? 0),
      /** From the end of a window to the end of its first reading, on average; null where nothing was read. */
      late_seconds: values((step) => (step?.late == null ? null : Math.round(step.late / SECOND_MS))),
    };
  };
  const hours = readUsage(sources.folder.usage)?.hours.filter(({ key_id }) => key_id === null) ?? [];
  return {
    ...steps.head,
    exports: perExport(ofExport),
    customers: customerRows(sources.detections(), sources.access(), [...starts, sources.nowMs]),
    enabled: EXPORT_NAMES.filter((name) => sources.config.exports[name].enabled),
    /** All requests. */
    machine: {
      ...requestsOf(steps, hours),
      /** How far the copy was behind, or on a standby this machine, at most; null: not known. */
      behind_seconds: inSteps(steps, hours).map((own) => {
        const known = own.flatMap(({ behind_seconds = null }) => behind_seconds ?? []);
        return known.length === 0 ? null : Math.max(...known);
      }),
    },
  };
}

/** Those that are furthest behind, and of the others those with most requests. */
const KEYS_MAX = 6;

/** `GET trends/keys`: requests, refusals and lag of keys. */
export function readKeyTrends(sources: Sources, asked: Read) {
  const steps = stepsOf(sources, asked);
  const db = sources.detections();
  const access = sources.access();
  const keys = new Map(listKeys(access).map((key) => [key.id, key]));
  const activeKeys = readActiveKeys(sources);
  const { subscriptions } = activeKeys;
  const followers = followersOf(db, activeKeys, sources.nowMs);
  const behind = new Map(followers.map(({ key_id, minutes_behind }) => [key_id, minutes_behind]));
  const hours = Map.groupBy(readUsage(sources.folder.usage)?.hours ?? [], ({ key_id }) => key_id);
  const used = [...hours].flatMap(([id, own]) => {
    const key = keys.get(id ?? '');
    if (key === undefined) return [];
    const counts = requestsOf(steps, own);
    const requests = counts.requests.reduce((sum, count) => sum + count, 0);
    const isFollower = behind.has(key.id);
    return requests === 0 && !isFollower ? [] : [{ key, own, counts, requests, isFollower }];
  });
  const shown = used
    .sort((a, b) => (behind.get(b.key.id) ?? 0) - (behind.get(a.key.id) ?? 0) || b.requests - a.requests)
    .slice(0, KEYS_MAX);
  return {
    ...steps.head,
    keys: shown.map(({ key, own, counts, isFollower }) => ({
      id: key.id,
      name: key.name,
      ...counts,
      /** Age of the oldest change that it had not been given at the end of a step; null: it followed nothing yet. */
      lag_seconds: isFollower
        ? lagsAt(db, streamsOfKey(key, subscriptions), marksOf(steps, own, sources.nowMs))
        : null,
    })),
  };
}

/** Where a key was at the end of each step. @param hours its counts, oldest first */
function marksOf({ stepMs, starts }: Steps, hours: readonly HourCounts[], nowMs: number): Mark[] {
  return starts.map((start) => {
    const atMs = Math.min(start + stepMs, nowMs);
    const last = hours.findLast(({ hour, position }) => position !== undefined && hour * HOUR_MS < atMs);
    return { atMs, position: last?.position ?? null };
  });
}

function requestsOf(steps: Steps, hours: readonly HourCounts[]) {
  return {
    requests: sums(steps, hours, ({ requests }) => requests),
    refused: sums(steps, hours, ({ refused }) => refused),
  };
}

function sums(steps: Steps, hours: readonly HourCounts[], of: (counts: HourCounts) => number): number[] {
  return inSteps(steps, hours).map((own) => own.reduce((sum, counts) => sum + of(counts), 0));
}

function inSteps({ stepMs, first, starts }: Steps, hours: readonly HourCounts[]): (readonly HourCounts[])[] {
  const byStep = Map.groupBy(hours, ({ hour }) => Math.floor((hour * HOUR_MS) / stepMs));
  return starts.map((_, at) => byStep.get(first + at) ?? []);
}

/** The last row of each stream at a position. */
export const LAST_PLACES = `
  SELECT subscription_id, (
    SELECT place FROM stream_row WHERE place >> 34 = ordinal + 0 AND position <= ? ORDER BY position DESC LIMIT 1
  ) AS place FROM stream WHERE removed = 0`;

/** What has no delivery time yet counts with the next reading. */
const NONE_RECENT = new Map<number, number>();
/** Curves that are shown; the others are in the view of the customers. */
const CUSTOMERS_MAX = 6;

/**
 * From the change stream itself: at a position, the sequence number of a stream is how many rows it had.
 * @param times epoch milliseconds, ascending
 * @returns for the accounts with most of them, how many new and changed detections were delivered between each two times
 */
export function customerRows(detections: Database, access: Database, times: readonly number[]) {
  const lastPlaces = detections.prepare<[number], { subscription_id: number; place: number | null }>(
    LAST_PLACES,
  );
  const known = new Map<number, ReadonlyMap<number, number>>();
  const rowsAt = (position: number) => {
    const rows = new Map<number, number>();
    for (const { subscription_id: id, place } of lastPlaces.all(position))
      rows.set(id, (rows.get(id) ?? 0) + (place === null ? 0 : sequenceOf(place)));
    known.set(position, rows);
    return rows;
  };
  const positionAt = (time: number) =>
    positionBefore(detections, time, NONE_RECENT) ?? Number.MAX_SAFE_INTEGER;
  const steps = times.map(positionAt).map((at) => known.get(at) ?? rowsAt(at));
  const subscriptions = Map.groupBy(listSubscriptions(access), ({ account_id }) => account_id);
  const entryOf = ({ id, name }: Account) => {
    const totals = steps.map((rows) =>
      (subscriptions.get(id) ?? []).reduce((sum, subscription) => sum + (rows.get(subscription.id) ?? 0), 0),
    );
    return { id, name, rows: totals.slice(1).map((total, at) => total - (totals[at] ?? 0)) };
  };
  const sumOf = ({ rows }: ReturnType<typeof entryOf>) => rows.reduce((sum, count) => sum + count, 0);
  return listAccounts(access)
    .map(entryOf)
    .filter((entry) => sumOf(entry) > 0)
    .toSorted((a, b) => sumOf(b) - sumOf(a))
    .slice(0, CUSTOMERS_MAX);
}
