/**
 * The procedures of the manual's client guide: the gap-free full copy, month by month back to `data_starts`, and
 * incremental loading.
 *
 * A full copy begins the change stream a day before the `as_of` of its first page, before it reads on, and later
 * continues from the cursor of that request. A cursor never expires, so the copy may take longer than the 31 days of a
 * `since`. It reads one stream at a time, so that a whole month fits into one request.
 */
import { isDeepStrictEqual } from 'node:util';
import { counted } from '../../counted.ts';
import { CONTENT_TYPES } from '../../detection/content-type.ts';
import { AHEAD_MS_MAX, DAY_MS, formatMs, MINUTE_MS, utcDay } from '../../time.ts';
import { type Api, ChangesPage, LIMIT, Me, PeriodPage } from './api.ts';
import type { Copy, Step, Stream } from './copy.ts';

export const CHANGES = '/v1/detections/changes';
export const PERIOD = '/v1/detections';

/** `since` goes back 31 days; a day is reserved for waits before the stream begins. */
const SINCE_AGE_MS_MAX = 30 * DAY_MS - AHEAD_MS_MAX;

export type Start = Awaited<ReturnType<typeof readStart>>;

export interface Work {
  readonly api: Api;
  readonly copy: Copy;
  /** When the change stream begins if the copy has no cursor, as the API writes times; null: now, by the server's clock. */
  readonly since: string | null;
  /** Asked again where the key may have changed. */
  start: Start;
  /** Called for each page: a name for progress, its rows, and how many of them were new to the copy. */
  readonly onPage: (what: string, rows: number, stored: number) => void;
}

/** Asks what the key reads now. `dateMs`: the server's clock when it answered, epoch milliseconds. */
export async function readStart(api: Api) {
  const { body: me, dateMs } = await api.get('/v1/me', Me);
  return { me, dateMs };
}

/** Where the change stream continues, or begins. */
export function placeIn({ copy, since, start }: Work): { cursor: string } | { since: string } {
  const { cursor } = copy.position();
  return cursor === null ? { since: since ?? new Date(start.dateMs).toISOString() } : { cursor };
}

/** Reads the periods that a full copy lacks. The key may change meanwhile. */
export async function walkPeriods(work: Work): Promise<void> {
  for (;;) {
    const planned = readStreams(work.start);
    let failure: unknown;
    try {
      await planWalk(work);
      if (work.copy.position().walk === null) return;
      await finishWalk(work);
    } catch (error) {
      failure = error;
    }
    work.start = await readStart(work.api);
    // The service refuses what the key no longer reads: the next plan leaves it out.
    if (failure !== undefined && isDeepStrictEqual(readStreams(work.start), planned)) throw failure;
  }
}

/** Begins a full copy with its change stream. @throws Refused for streams that the service refuses */
export async function beginFull({ api, copy, start, onPage }: Work): Promise<void> {
  const { dateMs } = start;
  const steps = stepsOf(start);
  // The periods contain everything delivered before `as_of` whose time has come. If no window finished in the last month,
  // they contain everything delivered until a minute before the server's clock.
  const times = [dateMs - MINUTE_MS];
  for (const type of CONTENT_TYPES) {
    const first = steps.find(({ content_type }) => content_type === type);
    if (first === undefined) continue;
    const { body } = await api.get(PERIOD, PeriodPage, { ...queryOf(first), limit: 1 });
    const asOfMs = Date.parse(body.as_of ?? '');
    if (asOfMs > dateMs - SINCE_AGE_MS_MAX) times.push(asOfMs);
  }
  const since = formatMs(Math.min(...times) - AHEAD_MS_MAX);
  const { data, next_cursor } = (await api.get(CHANGES, ChangesPage, { since, limit: 1 })).body;
  const walk = steps.length > 0 ? { steps, cursor: null } : null;
  const streams = readStreams(start).map(streamName);
  onPage('change stream', data.length, copy.store(data, { cursor: next_cursor, walk, streams }));
}

/**
 * Plans the periods of streams that are new to the key or came back (client guide: When the subscriptions of your key
 * change): the cursor has passed what is in them. It has passed detections, too, whose time is still ahead: they are read
 * first, since no period shows them.
 *
 * A stream that the key can no longer read is left out, since the service would refuse it, and forgotten: if it comes
 * back, all of its periods are read again. So are those of a stream with a planned period from before its records: it was
 * removed and added again.
 */
async function planWalk({ api, copy, start, onPage }: Work): Promise<void> {
  const position = copy.position();
  const { streams, walk } = position;
  const all = readStreams(start);
  const read = all.map(streamName);
  const isBack = ({ oldest = 'none', ...stream }: (typeof all)[number]) =>
    walk?.steps.some((step) => streamName(step) === streamName(stream) && step.from < oldest);
  const back = all.filter(isBack).map(streamName);
  const known = (streams ?? read).filter((name) => read.includes(name) && !back.includes(name));
  const since = formatMs(start.dateMs - MINUTE_MS - AHEAD_MS_MAX);
  for (const { oldest: _, ...stream } of all) {
    if (known.includes(streamName(stream))) continue;
    for await (const { body } of api.pages(CHANGES, ChangesPage, { ...stream, since, limit: LIMIT }))
      onPage('change stream', body.data.length, copy.store(body.data, position));
  }
  const left = walk?.steps.filter((step) => known.includes(streamName(step))) ?? [];
  const steps = [...left, ...stepsOf(start).filter((step) => !known.includes(streamName(step)))];
  const cursor = left[0] === walk?.steps[0] ? (walk?.cursor ?? null) : null;
  const next = { ...position, walk: steps.length > 0 ? { steps, cursor } : null, streams: streams && read };
  if (JSON.stringify(next) !== JSON.stringify(position)) copy.store([], next);
}

async function finishWalk({ api, copy, onPage }: Work): Promise<void> {
  const { steps = [], cursor = null } = copy.position().walk ?? {};
  for (const [index, step] of steps.entries()) {
    const query = { ...queryOf(step), cursor: index === 0 ? cursor : null };
    for await (const { body } of api.pages(PERIOD, PeriodPage, query)) {
      const { data, next_cursor, has_more } = body;
      const left = steps.slice(has_more ? index : index + 1);
      const walk = left.length > 0 ? { steps: left, cursor: has_more ? next_cursor : null } : null;
      const stored = copy.store(data, { ...copy.position(), walk });
      onPage(`${shownStep(step)}, ${counted(left.length, 'period')} left`, data.length, stored);
    }
  }
}

/**
 * Reads the change stream until it is caught up; rows and cursor are stored together, page by page.
 * @param waitSeconds how long the service may wait for the next change
 * @returns whether the service waits for changes, so that the caller need not
 */
export async function catchUp(work: Work, waitSeconds: number): Promise<boolean> {
  const { api, copy, onPage } = work;
  const query = { ...placeIn(work), limit: LIMIT };
  let isWaitedFor = false;
  for await (const { body, hasWaited } of api.pages(CHANGES, ChangesPage, query, waitSeconds)) {
    const { data, next_cursor } = body;
    // A caught-up copy asks often; it writes only if something is new.
    const isNew = data.length > 0 || next_cursor !== copy.position().cursor;
    const stored = isNew ? copy.store(data, { ...copy.position(), cursor: next_cursor }) : 0;
    onPage('change stream', data.length, stored);
    // An answer with rows did not wait, but the next one may.
    isWaitedFor = hasWaited || (data.length > 0 && waitSeconds > 0);
  }
  return isWaitedFor;
}

/** The periods of a full copy, stream by stream, each from the current month back. */
export const stepsOf = (start: Start): Step[] =>
  readStreams(start).flatMap(({ oldest, ...stream }) =>
    monthsBack(utcDay(start.dateMs), oldest).map((month) => ({ ...stream, ...month })),
  );

/** The streams that the key reads. `oldest`: the day on which records begin; undefined if there are none. */
export const readStreams = ({ me }: Start) =>
  me.subscriptions.flatMap(({ id: subscription_id, content_types, data_starts }) =>
    CONTENT_TYPES.filter((type) => content_types.includes(type)).map((content_type) => {
      return { subscription_id, content_type, oldest: data_starts[content_type]?.slice(0, 10) };
    }),
  );

export const streamName = ({ subscription_id, content_type }: Stream) => `${subscription_id} ${content_type}`;

/** Months as `YYYY-MM-DD` in UTC, newest first. @param newest a day @param oldest as of {@link readStreams} */
function monthsBack(newest: string, oldest: string | undefined): { from: string; to: string }[] {
  const months = [];
  for (let to = newest; oldest !== undefined && to >= oldest; ) {
    const first = `${to.slice(0, 8)}01`;
    months.push({ from: first < oldest ? oldest : first, to });
    to = utcDay(Date.parse(first) - DAY_MS);
  }
  return months;
}

export const queryOf = (step: Step) => ({ ...step, time_zone: 'UTC', limit: LIMIT });

export const shownStep = (step: Step) => `${streamName(step)}, ${step.from} to ${step.to}`;
