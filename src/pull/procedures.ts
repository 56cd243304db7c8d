/**
 * The procedures of the manual's client guide: the gap-free full copy, month by month back to `data_starts`, and
 * incremental loading.
 *
 * A full copy begins the change stream at the `as_of` of its first page, before it reads on, and later continues from
 * the cursor of that request. A cursor never expires, so the copy may take longer than the 31 days of a `since`. It
 * reads one stream at a time, so that a whole month fits into one request.
 */
import { counted } from '../counted.ts';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { DAY_MS, formatMs, MINUTE_MS, utcDay } from '../time.ts';
import { type Api, ChangesPage, type Detection, LIMIT, Me, PeriodPage } from './api.ts';
import type { Copy, Position, Selection, Step } from './copy.ts';

export const CHANGES = '/v1/detections/changes';
export const PERIOD = '/v1/detections';

/** `since` goes back 31 days; a day is reserved for waits before the stream begins. */
const SINCE_AGE_MS_MAX = 30 * DAY_MS;

type Stream = Pick<Step, 'subscription_id' | 'content_type'>;

/** What a run needs before it reads rows. */
export interface Start {
  readonly me: Me;
  /** The server's clock when it answered, epoch milliseconds. */
  readonly dateMs: number;
  /** What the requests name. */
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

/** What a copy is to have. */
export interface Choice {
  readonly selection: Selection;
  /** When the change stream begins, if the copy has no cursor; null: now. */
  readonly since: string | null;
}

/** Asks what the key reads now. */
export type Ask = () => Promise<Start>;

/**
 * The service refuses a request that names a subscription which the key no longer reads. A copy continues without it.
 *
 * @param onLost called when such subscriptions are found
 */
export function createAsk(
  api: Api,
  copy: Copy,
  { selection, since }: Choice,
  onLost: (lost: string) => void,
): Ask {
  let told = '';
  return async () => {
    const { body: me, dateMs } = await api.get('/v1/me', Me);
    // By the server's clock: it refuses a time in its future.
    const start = { me, dateMs, since: since ?? new Date(dateMs).toISOString(), selection };
    const named = selection.subscription_id?.split(',') ?? [];
    const ids = named.filter((id) => me.subscriptions.some((one) => `${one.id}` === id));
    // A new copy has nothing to continue: the service says what is wrong with its options.
    if (ids.length === named.length || copy.position().cursor === null) return start;
    const lost = named.filter((id) => !ids.includes(id)).join(', ');
    if (ids.length === 0)
      throw new Refused(
        'failed',
        `the key does not read ${lost}, which the copy was started with. Check --key-file.`,
      );
    if (lost !== told) onLost(lost);
    told = lost;
    return { ...start, selection: { ...selection, subscription_id: ids.join(',') } };
  };
}

/** Reads the periods that a full copy lacks. The key may change meanwhile. @returns how to continue */
export async function walkPeriods(begun: Work, ask: Ask): Promise<Work> {
  for (let work = begun; ; work = { ...work, start: await ask() }) {
    planWalk(work);
    const { cursor, streams, walk } = work.copy.position();
    if (cursor === null && streams) await beginFull(work);
    if (walk === null) return work;
    await finishWalk(work);
  }
}

/** Begins the change stream of a full copy. @throws Refused for streams that the service refuses */
async function beginFull({ api, copy, start, onPage }: Work): Promise<void> {
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
  const stored = copy.store(data, { ...copy.position(), cursor: next_cursor });
  onPage('change stream', data.length, stored);
}

/**
 * Plans the periods that a full copy lacks: of all streams at first, later of those that are new to the key or came back
 * (client guide: When the subscriptions of your key change). The cursor has passed what is in them.
 *
 * A stream that the key can no longer read is left out, since the service would refuse it, and forgotten: if it comes
 * back, all of its periods are read again.
 */
function planWalk({ copy, start }: Work): void {
  const position = copy.position();
  const { streams, walk } = position;
  const read = readStreams(start).map(streamName);
  const known = streams ?? read;
  const left = walk?.steps.filter((step) => read.includes(streamName(step))) ?? [];
  const steps = [...left, ...stepsOf(start).filter((step) => !known.includes(streamName(step)))];
  const cursor = left[0] === walk?.steps[0] ? (walk?.cursor ?? null) : null;
  const next: Position = {
    ...position,
    walk: steps.length > 0 ? { steps, cursor } : null,
    ...(streams ? { streams: read } : {}),
  };
  if (JSON.stringify(next) !== JSON.stringify(position)) copy.store([], next);
}

/** Reads the planned periods. */
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
    const stored = isNew ? copy.store(data, { ...copy.position(), cursor: next_cursor }) : 0;
    onPage('change stream', data.length, stored);
    // An answer with rows did not wait, but the next one may.
    isWaitedFor = hasWaited || (data.length > 0 && waitSeconds > 0);
  }
  return isWaitedFor;
}

/** The periods of a full copy, stream by stream, each from the current month back. */
export function stepsOf(start: Start): Step[] {
  return readStreams(start).flatMap(({ oldest, ...stream }) =>
    oldest === undefined
      ? []
      : monthsBack(utcDay(start.dateMs), oldest).map((month) => ({ ...stream, ...month })),
  );
}

/** The selected streams that the key reads. `oldest`: the day on which records begin; undefined if there are none. */
function readStreams({ me, selection }: Start) {
  return me.subscriptions
    .flatMap(({ id: subscription_id, content_types, data_starts }) =>
      CONTENT_TYPES.filter((type) => content_types.includes(type)).map((content_type) => {
        const oldest = data_starts[content_type]?.slice(0, 10);
        return { subscription_id, content_type, oldest };
      }),
    )
    .filter((stream) => isSelected(selection, stream));
}

/** Of a step or a detection. */
export function streamName({ subscription_id, content_type }: Stream | Detection): string {
  return `${subscription_id} ${content_type}`;
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
  { subscription_id, content_type }: Stream | Detection,
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
