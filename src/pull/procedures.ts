/**
 * The procedures of the contract (Client procedures): the gap-free full copy, month by month back to `data_starts`, and
 * incremental loading from the `as_of` of its first page on, or from any time.
 *
 * A full copy reads one stream at a time: that is one request's width in stream-days for a whole month, and pages of a
 * thousand rows. What changes meanwhile reaches the change stream after that `as_of`.
 */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { counted } from '../counted.ts';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { DAY_MS, formatMs, MINUTE_MS, utcDay } from '../time.ts';
import { type Api, ChangesPage, LIMIT, type Me, parseJson, RangePage } from './api.ts';
import type { Copy, OnPage } from './copy.ts';
import { isSelected, parametersOf, type Selection } from './selection.ts';

/** `since` goes back 31 days: an older walk starts again, and a newer one has a day left for its rest. */
const SINCE_AGE_MS_MAX = 30 * DAY_MS;

/** A period of one stream; both days are included. */
const Step = Type.Object({
  subscription_id: Type.Integer(),
  content_type: Type.Union(CONTENT_TYPES.map((type) => Type.Literal(type))),
  from: Type.String(),
  to: Type.String(),
});
export type Step = Static<typeof Step>;

/** Everything that is needed to continue an interrupted walk. */
const Walk = Type.Object({
  /** Where the stream begins afterwards. */
  since: Type.String(),
  /** The periods that are left, the present one first. */
  steps: Type.Array(Step),
  /** Of the present period's next page. */
  cursor: Type.Union([Type.String(), Type.Null()]),
});
type Walk = Static<typeof Walk>;

/** What a run knows before it reads rows. */
export interface Start {
  readonly me: Me;
  /** The server's clock when it said so, epoch milliseconds. */
  readonly dateMs: number;
  readonly selection: Selection;
}

/**
 * Begins a walk, or continues an interrupted one.
 *
 * @param onAnew called if the interrupted walk is too old to be continued, and starts again
 * @returns the time from which the change stream is to be followed
 */
export async function copyAll(
  api: Api,
  copy: Copy,
  start: Start,
  { onPage, onAnew }: { onPage: OnPage; onAnew: () => void },
): Promise<string> {
  const resumed = resumeWalk(copy, start.me);
  const isTooOld = resumed !== null && isOlder(resumed.since, start.dateMs);
  if (isTooOld) onAnew();
  let walk = resumed === null || isTooOld ? await beginWalk(api, copy, start) : resumed;
  for (let step = walk.steps[0]; step !== undefined; step = walk.steps[0]) {
    const query = { ...queryOf(step), cursor: walk.cursor };
    const { data, next_cursor, has_more } = (await api.get('/v1/detections', RangePage, query)).body;
    walk = {
      ...walk,
      steps: has_more ? walk.steps : walk.steps.slice(1),
      cursor: has_more ? next_cursor : null,
    };
    const stored = copy.store(data, { walk: JSON.stringify(walk) });
    const what = `${shownStep(step)}, ${counted(walk.steps.length, 'period')} left`;
    onPage({ what, rows: data.length, stored });
  }
  return walk.since;
}

/** Without the streams that the key has lost meanwhile: their pages would be refused, and the walk would never end. */
function resumeWalk(copy: Copy, { subscriptions }: Me): Walk | null {
  const noted = copy.notes().walk;
  if (noted === null) return null;
  const walk = parseJson(noted);
  if (!Value.Check(Walk, walk)) {
    const told = 'the copy does not contain its progress.';
    throw new Refused('failed', `${told} Name another file with --into to start a new copy.`);
  }
  const steps = walk.steps.filter(({ subscription_id, content_type }) =>
    subscriptions.some(
      ({ id, content_types }) => id === subscription_id && content_types.includes(content_type),
    ),
  );
  return { ...walk, steps, cursor: steps[0] === walk.steps[0] ? walk.cursor : null };
}

/** Plans the walk, and asks each content type for its `as_of`. What is on these pages is read with the walk. */
async function beginWalk(api: Api, copy: Copy, start: Start): Promise<Walk> {
  const steps = stepsOf(start);
  const beginnings = [formatMs(start.dateMs - MINUTE_MS)];
  for (const type of CONTENT_TYPES) {
    const first = steps.find(({ content_type }) => content_type === type);
    if (first === undefined) continue;
    const { body, dateMs } = await api.get('/v1/detections', RangePage, { ...queryOf(first), limit: 1 });
    // What was delivered before `as_of` was there when the page was read; where no window is finished yet, or none for
    // a month, the same holds for the server's own clock a minute before.
    const isUsable = body.as_of !== null && !isOlder(body.as_of, dateMs);
    beginnings.push(isUsable ? `${body.as_of}` : formatMs(dateMs - MINUTE_MS));
  }
  const walk: Walk = { since: beginnings.sort()[0] ?? '', steps, cursor: null };
  copy.store([], { walk: JSON.stringify(walk) });
  return walk;
}

/** Whether a time is too long ago for a stream to begin with it. */
function isOlder(since: string, dateMs: number): boolean {
  return Date.parse(since) < dateMs - SINCE_AGE_MS_MAX;
}

/** The periods of a complete walk, one stream after the other, the present month of each first. */
export function stepsOf({ me, dateMs, selection }: Start): Step[] {
  return me.subscriptions.flatMap(({ id, data_starts }) =>
    CONTENT_TYPES.flatMap((content_type) => {
      const start = data_starts[content_type];
      if (start === undefined || start === null || !isSelected(selection, id, content_type)) return [];
      const months = monthsBack(utcDay(dateMs), start.slice(0, 10));
      return months.map((month) => ({ subscription_id: id, content_type, ...month }));
    }),
  );
}

/** Months in UTC as `YYYY-MM-DD`, newest first, from the day of `newest` back to that on which records begin. */
function monthsBack(newest: string, oldest: string): { from: string; to: string }[] {
  const months = [];
  for (let to = newest; to >= oldest; ) {
    const first = `${to.slice(0, 8)}01`;
    months.push({ from: first < oldest ? oldest : first, to });
    to = utcDay(Date.parse(first) - DAY_MS);
  }
  return months;
}

export function queryOf(step: Step) {
  return { ...step, time_zone: 'UTC', limit: LIMIT };
}

export function shownStep({ subscription_id, content_type, from, to }: Step): string {
  return `${subscription_id} ${content_type}, ${from} to ${to}`;
}

/**
 * Reads the change stream until it is caught up; rows and cursor are stored together, page by page.
 *
 * @param since where to start when the copy has no cursor yet
 * @param waitSeconds how long the service may wait for a change where there is none
 * @returns whether the service waited: if so, nothing is gained by waiting here
 */
export async function catchUp(
  api: Api,
  copy: Copy,
  { selection, since, waitSeconds }: { selection: Selection; since: string; waitSeconds: number },
  onPage: OnPage,
): Promise<boolean> {
  for (;;) {
    const { cursor } = copy.notes();
    const start = cursor === null ? { since } : { cursor };
    const query = { ...start, ...parametersOf(selection), limit: LIMIT };
    const { body, hasWaited } = await api.get('/v1/detections/changes', ChangesPage, query, waitSeconds);
    const { data, next_cursor, has_more } = body;
    const isNew = data.length > 0 || next_cursor !== cursor;
    const stored = isNew ? copy.store(data, { cursor: next_cursor, walk: null }) : 0;
    onPage({ what: 'change stream', rows: data.length, stored });
    // One that brought something did not wait: the next one may.
    if (!has_more && (waitSeconds === 0 || data.length === 0)) return hasWaited;
  }
}
