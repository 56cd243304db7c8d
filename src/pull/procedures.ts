/**
 * The procedures of the contract (Client procedures): the gap-free full copy, month by month back to `data_starts`, and
 * incremental loading.
 *
 * A full copy begins the change stream at the `as_of` of its first page, before it reads on, and later continues from
 * the cursor of that request. A cursor never expires, so the copy may take longer than the 31 days of a `since`. It
 * reads one stream at a time, so that a whole month fits into one request.
 */
import { counted } from '../counted.ts';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { DAY_MS, formatMs, MINUTE_MS, utcDay } from '../time.ts';
import { type Api, ChangesPage, type Detection, LIMIT, type Me, PeriodPage } from './api.ts';
import type { Copy, Selection, Step } from './copy.ts';

export const CHANGES = '/v1/detections/changes';
export const PERIOD = '/v1/detections';

/** `since` goes back 31 days; a day is reserved for waits before the stream begins. */
const SINCE_AGE_MS_MAX = 30 * DAY_MS;

/** What a run needs before it reads rows. */
export interface Start {
  readonly me: Me;
  /** The server's clock when it answered, epoch milliseconds. */
  readonly dateMs: number;
  readonly selection: Selection;
  /** Start of the change stream if the copy has no cursor. */
  readonly since: string;
}

export interface Work {
  readonly api: Api;
  readonly copy: Copy;
  readonly start: Start;
  /** Called for each page: a name for progress, its rows, and how many of them were new to the copy. */
  readonly onPage: (what: string, rows: number, stored: number) => void;
}

/** Plans a full copy, and begins the change stream. @throws Refused for streams that the service refuses */
export async function beginWalk({ api, copy, start, onPage }: Work): Promise<void> {
  const { selection, dateMs } = start;
  const steps = stepsOf(start);
  // The periods contain everything delivered before `as_of`. If no window finished in the last month, they contain
  // everything delivered until a minute before the server's clock.
  const times = [dateMs - MINUTE_MS];
  for (const type of CONTENT_TYPES) {
    const first = steps.find(({ content_type }) => content_type === type);
    if (first === undefined) continue;
    const { body } = await api.get(PERIOD, PeriodPage, { ...queryOf(first), limit: 1 });
    const asOfMs = Date.parse(body.as_of ?? '');
    if (asOfMs > dateMs - SINCE_AGE_MS_MAX) times.push(asOfMs);
  }
  const since = formatMs(Math.min(...times));
  const { data, next_cursor } = (await api.get(CHANGES, ChangesPage, { ...selection, since, limit: 1 })).body;
  const stored = copy.store(data, { cursor: next_cursor, walk: { steps, cursor: null }, selection });
  onPage('change stream', data.length, stored);
}

/** Reads the rest of a full copy, without streams that the key can no longer read: the service would refuse them. */
export async function finishWalk({ api, copy, start, onPage }: Work): Promise<void> {
  const { walk } = copy.position();
  if (walk === null) return;
  const isRead = ({ subscription_id, content_type }: Step) =>
    start.me.subscriptions.some(
      (one) => one.id === subscription_id && one.content_types.includes(content_type),
    );
  const steps = walk.steps.filter(isRead);
  for (const [index, step] of steps.entries()) {
    const query = { ...queryOf(step), cursor: step === walk.steps[0] ? walk.cursor : null };
    for await (const { body } of api.pages(PERIOD, PeriodPage, query)) {
      const { data, next_cursor, has_more } = body;
      const left = steps.slice(has_more ? index : index + 1);
      const next = { steps: left, cursor: has_more ? next_cursor : null };
      const stored = copy.store(data, { ...copy.position(), walk: next });
      onPage(`${shownStep(step)}, ${counted(left.length, 'period')} left`, data.length, stored);
    }
  }
  copy.store([], { ...copy.position(), walk: null });
}

/**
 * Reads the change stream until it is caught up; rows and cursor are stored together, page by page.
 *
 * @param waitSeconds how long the service may wait for the next change
 * @returns whether the service waits for changes, so that the caller need not
 */
export async function catchUp({ api, copy, start, onPage }: Work, waitSeconds: number): Promise<boolean> {
  const { selection, since } = start;
  const { cursor } = copy.position();
  const query = { ...selection, ...(cursor === null ? { since } : { cursor }), limit: LIMIT };
  let isWaitedFor = false;
  for await (const { body, hasWaited } of api.pages(CHANGES, ChangesPage, query, waitSeconds)) {
    const { data, next_cursor } = body;
    // A caught-up copy asks often; it writes only if something is new.
    const isNew = data.length > 0 || next_cursor !== copy.position().cursor;
    const stored = isNew ? copy.store(data, { cursor: next_cursor, walk: null, selection }) : 0;
    onPage('change stream', data.length, stored);
    // An answer with rows did not wait, but the next one may.
    isWaitedFor = hasWaited || (data.length > 0 && waitSeconds > 0);
  }
  return isWaitedFor;
}

/** The periods of a full copy, stream by stream, each from the current month back. */
export function stepsOf({ me, dateMs, selection }: Start): Step[] {
  return me.subscriptions.flatMap(({ id: subscription_id, data_starts }) =>
    CONTENT_TYPES.flatMap((content_type) => {
      const stream = { subscription_id, content_type };
      const oldest = data_starts[content_type]?.slice(0, 10);
      if (oldest === undefined || !isSelected(selection, stream)) return [];
      return monthsBack(utcDay(dateMs), oldest).map((month) => ({ ...stream, ...month }));
    }),
  );
}

/** Months as `YYYY-MM-DD` in UTC, newest first. @param newest a day @param oldest the day on which records begin */
function monthsBack(newest: string, oldest: string): { from: string; to: string }[] {
  const months = [];
  for (let to = newest; to >= oldest; ) {
    const first = `${to.slice(0, 8)}01`;
    months.push({ from: first < oldest ? oldest : first, to });
    to = utcDay(Date.parse(first) - DAY_MS);
  }
  return months;
}

export function isSelected(
  selection: Selection,
  { subscription_id, content_type }: Pick<Step, 'subscription_id' | 'content_type'> | Detection,
): boolean {
  const ids = selection.subscription_id?.split(',');
  const type = selection.content_type;
  return (ids?.includes(`${subscription_id}`) ?? true) && (type === null || type === content_type);
}

export function queryOf(step: Step) {
  return { ...step, time_zone: 'UTC', limit: LIMIT };
}

export function shownStep({ subscription_id, content_type, from, to }: Step): string {
  return `${subscription_id} ${content_type}, ${from} to ${to}`;
}
