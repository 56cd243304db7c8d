/** What was read, delivered and asked for over 24 hours, 7 or 90 days (api.ts): the curves of the overview. */
import { listAccounts } from '../../auth/accounts.ts';
import { listKeys } from '../../auth/keys.ts';
import { listSubscriptions } from '../../auth/subscriptions.ts';
import { type ExportName, perExport } from '../../detection/content-type.ts';
import type { HourCounts } from '../../limits/request-counts.ts';
import { readUsage } from '../../limits/usage.ts';
import { followersOf, lagsAt, type Mark, readActiveKeys, streamsOfKey } from '../../operations/followers.ts';
import { positionBefore } from '../../query/delivery.ts';
import { defaulted, readParameters } from '../../query/parameters.ts';
import { choice } from '../../query/value-kinds.ts';
import type { Database } from '../../store/database.ts';
import { sequenceOf } from '../../store/stream-place.ts';
import { DAY_MS, formatMs, HOUR_MS, SECOND_MS, WINDOW_MS } from '../../time.ts';
import type { Read, Sources } from './sources.ts';

/** The steps of each span, by its days. */
const STEPS = {
  1: { length: 24, stepMs: HOUR_MS },
  7: { length: 28, stepMs: 6 * HOUR_MS },
  90: { length: 90, stepMs: DAY_MS },
};
const DAYS = { days: defaulted(choice(STEPS), 1) };

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

/** `late`: milliseconds; null: only backfills. */
type Step = { step: number; export: ExportName; created: number; updated: number; late: number | null };

/** `?days=7`: in steps, the oldest first. */
export function readTrends(sources: Sources, { query }: Read) {
  const { folder, nowMs } = sources;
  const { length, stepMs } = readParameters(query, DAYS).days;
  const fromMs = (Math.floor(nowMs / stepMs) - length + 1) * stepMs;
  const starts = Array.from({ length }, (_, at) => fromMs + at * stepMs);
  const steps = { stepMs, starts };
  const hours = Map.groupBy(readUsage(folder.usage)?.hours ?? [], ({ key_id }) => key_id);
  const ofMachine = hours.get(null) ?? [];
  return {
    from: formatMs(fromMs),
    step_seconds: stepMs / SECOND_MS,
    exports: exportSteps(sources.detections(), steps, fromMs),
    customers: customerRows(sources.detections(), sources.access(), [...starts, nowMs]),
    keys: keySteps(sources, steps, hours),
    /** All requests. */
    machine: {
      ...requestsOf(steps, ofMachine),
      /** How far the copy was behind, or on a standby this machine, at most; null: not known. */
      lag_seconds: inSteps(steps, ofMachine).map((own) => {
        const known = own.flatMap(({ behind_seconds = [] }) => behind_seconds);
        return known.length === 0 ? null : Math.max(...known);
      }),
    },
  };
}

/** `starts`: epoch milliseconds, multiples of `stepMs`. */
type Steps = Readonly<{ stepMs: number; starts: readonly number[] }>;

function exportSteps(db: Database, { stepMs, starts }: Steps, fromMs: number) {
  const applied = db.prepare<unknown[], Step>(APPLIED_FILES).all({ from: fromMs, step: stepMs });
  return perExport((name) => {
    const own = new Map(applied.filter((step) => step.export === name).map((step) => [step.step, step]));
    const steps = starts.map((start) => own.get(start / stepMs));
    return {
      created: steps.map((step) => step?.created ?? 0),
      updated: steps.map((step) => step?.updated ?? 0),
      /** From the end of a window to the end of its first reading, on average; null where nothing was read. */
      late_seconds: steps.map((step) => (step?.late == null ? null : Math.round(step.late / SECOND_MS))),
    };
  });
}

/** Those that are furthest behind, and of the others those with most requests. */
const KEYS_MAX = 6;

function keySteps(sources: Sources, steps: Steps, hours: ReadonlyMap<string | null, readonly HourCounts[]>) {
  const db = sources.detections();
  const activeKeys = readActiveKeys(sources);
  const followers = followersOf(db, activeKeys, sources.nowMs);
  const behind = new Map(followers.map(({ key_id, minutes_behind }) => [key_id, minutes_behind]));
  const used = listKeys(sources.access()).flatMap((key) => {
    const counts = requestsOf(steps, hours.get(key.id) ?? []);
    const requests = sum(counts.requests);
    return requests === 0 && !behind.has(key.id) ? [] : [{ key, counts, requests }];
  });
  const shown = used
    .sort((a, b) => (behind.get(b.key.id) ?? 0) - (behind.get(a.key.id) ?? 0) || b.requests - a.requests)
    .slice(0, KEYS_MAX);
  return shown.map(({ key, counts }) => {
    const marks = marksOf(steps, hours.get(key.id) ?? [], sources.nowMs);
    const streams = streamsOfKey(key, activeKeys.subscriptions);
    /** Age of the oldest change that it had not been given at the end of a step; null: it followed nothing yet. */
    const lag_seconds = behind.has(key.id) ? lagsAt(db, streams, marks) : [];
    return { id: key.id, name: key.name, ...counts, lag_seconds };
  });
}

/** Where a key was at the end of each step. @param hours its counts, oldest first */
const marksOf = ({ stepMs, starts }: Steps, hours: readonly HourCounts[], nowMs: number): Mark[] =>
  starts.map((start) => {
    const atMs = Math.min(start + stepMs, nowMs);
    const last = hours.findLast(({ hour, position }) => position !== undefined && hour * HOUR_MS < atMs);
    return { atMs, position: last?.position ?? null };
  });

function requestsOf(steps: Steps, hours: readonly HourCounts[]) {
  const counted = (of: 'requests' | 'refused') =>
    inSteps(steps, hours).map((own) => sum(own.map((counts) => counts[of])));
  return { requests: counted('requests'), refused: counted('refused') };
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0);

function inSteps({ stepMs, starts }: Steps, hours: readonly HourCounts[]): (readonly HourCounts[])[] {
  const byStep = Map.groupBy(hours, ({ hour }) => Math.floor((hour * HOUR_MS) / stepMs));
  return starts.map((start) => byStep.get(start / stepMs) ?? []);
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
  type Last = { readonly subscription_id: number; readonly place: number | null };
  const lastPlaces = detections.prepare<[number], Last>(LAST_PLACES);
  const steps = times.map((time) => {
    const places = lastPlaces.all(positionBefore(detections, time, NONE_RECENT) ?? Number.MAX_SAFE_INTEGER);
    return Map.groupBy(places, ({ subscription_id }) => subscription_id);
  });
  const subscriptions = Map.groupBy(listSubscriptions(access), ({ account_id }) => account_id);
  return listAccounts(access)
    .map(({ id, name }) => {
      const own = subscriptions.get(id) ?? [];
      const totals = steps.map((places) =>
        sum(own.flatMap((one) => places.get(one.id) ?? []).map(({ place }) => sequenceOf(place ?? 0))),
      );
      return { id, name, rows: totals.slice(1).map((total, at) => total - (totals[at] ?? 0)) };
    })
    .filter(({ rows }) => sum(rows) > 0)
    .sort((a, b) => sum(b.rows) - sum(a.rows))
    .slice(0, CUSTOMERS_MAX);
}
