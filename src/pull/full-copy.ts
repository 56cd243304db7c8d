/**
 * The gap-free full copy (contract: Client procedures): month by month back to `data_starts`, then the stream from
 * the `as_of` of the first page on.
 *
 * One stream is read at a time: that is one request's width in stream-days for a whole month, and pages of a
 * thousand rows. What changes meanwhile reaches the stream after that `as_of`.
 */
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { counted } from '../counted.ts';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { DAY_MS, formatMs, MINUTE_MS, utcDay } from '../time.ts';
import { type Me, readRangePage } from './answers.ts';
import type { Api } from './api.ts';
import type { Copy, OnPage } from './copy.ts';
import { monthsBack } from './months.ts';
import { isSelected, type Selection } from './selection.ts';

const LIMIT = 1000;
/** `since` goes back 31 days: an older walk starts again, and a newer one has a day left for its rest. */
const SINCE_AGE_MS_MAX = 30 * DAY_MS;

const Step = Type.Object({
  subscription_id: Type.Integer(),
  content_type: Type.Union([Type.Literal('text'), Type.Literal('image')]),
  from: Type.String(),
  to: Type.String(),
});

/** Everything that is needed to continue an interrupted walk. */
const Walk = Type.Object({
  /** Where the stream begins afterwards; null until every content type has told its `as_of`. */
  since: Type.Union([Type.String(), Type.Null()]),
  /** The periods that are left, the present one first. */
  steps: Type.Array(Step),
  /** Of the present period's next page. */
  cursor: Type.Union([Type.String(), Type.Null()]),
});

type Walk = { since: string | null; steps: Step[]; cursor: string | null };
type Step = { subscription_id: number; content_type: 'text' | 'image'; from: string; to: string };

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
  onPage: OnPage,
  onAnew: () => void,
): Promise<string> {
  const resumed = resumeWalk(copy);
  const isTooOld = resumed !== null && isOlder(resumed.since, start.dateMs);
  if (isTooOld) onAnew();
  let walk = resumed === null || isTooOld ? await beginWalk(api, copy, start) : stillRead(resumed, start.me);
  for (let step = walk.steps[0]; step !== undefined; step = walk.steps[0]) {
    const { body } = await api.get('/v1/detections', {
      ...step,
      time_zone: 'UTC',
      limit: LIMIT,
      cursor: walk.cursor ?? undefined,
    });
    const page = readRangePage(body);
    walk = page.has_more
      ? { ...walk, cursor: page.next_cursor }
      : { ...walk, steps: walk.steps.slice(1), cursor: null };
    const stored = copy.store(page.data, { walk: JSON.stringify(walk) });
    onPage({
      what: `${shownStep(step)}, ${counted(walk.steps.length, 'period')} left`,
      rows: page.data.length,
      stored,
    });
  }
  if (walk.since === null) throw new Error('a walk without a beginning of the stream');
  return walk.since;
}

function resumeWalk(copy: Copy): Walk | null {
  const noted = copy.walk();
  if (noted === null) return null;
  const walk: unknown = JSON.parse(noted);
  if (Value.Check(Walk, walk)) return walk;
  throw new Refused(
    'failed',
    'the copy does not contain its progress. Name another file with --into to start a new copy.',
  );
}

/** Without the streams that the key has lost meanwhile: their pages would be refused, and the walk would never end. */
function stillRead(walk: Walk, me: Me): Walk {
  const steps = walk.steps.filter(({ subscription_id, content_type }) =>
    me.subscriptions.some(
      ({ id, content_types }) => id === subscription_id && content_types.includes(content_type),
    ),
  );
  return { ...walk, steps, cursor: steps[0] === walk.steps[0] ? walk.cursor : null };
}

/** The periods of a complete walk, one stream after the other, the present month of each first. */
export function stepsOf({ me, dateMs, selection }: Start): Step[] {
  const today = utcDay(dateMs);
  return me.subscriptions.flatMap(({ id, data_starts }) =>
    CONTENT_TYPES.flatMap((content_type) => {
      const start = data_starts[content_type];
      if (start === undefined || start === null || !isSelected(selection, id, content_type)) return [];
      return monthsBack(today, start.slice(0, 10)).map((month) => ({
        subscription_id: id,
        content_type,
        ...month,
      }));
    }),
  );
}

export function shownStep({ subscription_id, content_type, from, to }: Step): string {
  return `${subscription_id} ${content_type}, ${from} to ${to}`;
}

/** Plans the walk, and asks each content type for its `as_of`. What is on these pages is read with the walk. */
async function beginWalk(api: Api, copy: Copy, start: Start): Promise<Walk> {
  const { dateMs } = start;
  const steps = stepsOf(start);
  let since = formatMs(dateMs - MINUTE_MS);
  for (const content_type of CONTENT_TYPES) {
    const first = steps.find((step) => step.content_type === content_type);
    if (first === undefined) continue;
    const page = await api.get('/v1/detections', { ...first, time_zone: 'UTC', limit: 1 });
    const { as_of } = readRangePage(page.body);
    since = earlier(since, beginningOf(as_of, page.dateMs));
  }
  const walk: Walk = { since, steps, cursor: null };
  copy.store([], { walk: JSON.stringify(walk) });
  return walk;
}

/**
 * Where the stream must begin for a walk whose first page was this one. What was delivered before `as_of` was
 * there when the page was read; where no window is finished yet, or none for a month, the same holds for the
 * server's own clock a minute before.
 */
function beginningOf(asOf: string | null, dateMs: number): string {
  const fromClock = formatMs(dateMs - MINUTE_MS);
  return asOf === null || isOlder(asOf, dateMs) ? fromClock : asOf;
}

/** Whether a time is too long ago for a stream to begin with it. */
function isOlder(since: string | null, dateMs: number): boolean {
  return since !== null && Date.parse(since) < dateMs - SINCE_AGE_MS_MAX;
}

function earlier(a: string, b: string): string {
  return a < b ? a : b;
}
