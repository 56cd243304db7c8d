/**
 * What can be asked of a lab, each action once: from this table are made the HTTP endpoints with their checks, the OpenAPI
 * document, the options of the commands and the steps of a scenario.
 */
import { FormatRegistry, type Static, type TObject, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { isTable, shown } from '../config/raw-value.ts';
import { expectation } from '../config/schema.ts';
import { EXPORT_NAMES, NUMBER_MAX } from '../detection/content-type.ts';
import { isDetectionId } from '../detection/id.ts';
import { OAUTH_ERRORS, PROBLEMS } from '../error-codes.ts';
import { nearest } from '../nearest.ts';
import { OPERATIONS } from '../openapi/operations.ts';
import { listed, Refused } from '../refused.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, parseInstant, SECOND_MS, WINDOW_MS } from '../time.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
const YEARS_MAX_MS = 200 * 366 * DAY_MS;
/** The clock is believed between these. */
const CLOCK_MIN_MS = Date.UTC(2001);
const CLOCK_MAX_MS = Date.UTC(2099);

FormatRegistry.Set('lab-duration', (text) => parseDuration(text) !== null);
FormatRegistry.Set('lab-span', (text) => (parseDuration(text) ?? -1) >= 0);
FormatRegistry.Set('lab-time', (text) => parseLabTime(text) !== null);
FormatRegistry.Set('lab-window', (text) => (parseLabTime(text) ?? Number.NaN) % WINDOW_MS === 0);
FormatRegistry.Set('lab-detection-id', isDetectionId);

/** Reads `250ms`, `30s`, `10m`, `26h` or `3d`, with an optional sign; milliseconds, or null. */
export function parseDuration(text: string): number | null {
  const [, sign, count, unit = ''] = /^([+-]?)(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Math.round(Number(count) * (UNITS[unit] ?? Number.NaN));
  if (!(ms <= YEARS_MAX_MS)) return null;
  return sign === '-' ? -ms : ms;
}

/** Reads a time for the clock, with or without its seconds; epoch milliseconds, or null. */
export function parseLabTime(text: string): number | null {
  const ms = parseInstant(text.replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d)(Z|[+-]\d\d:\d\d)$/i, '$1:00$2'));
  return ms !== null && ms >= CLOCK_MIN_MS && ms <= CLOCK_MAX_MS ? ms : null;
}

const duration = (description: string) =>
  Type.String({ format: 'lab-duration', expected: 'a duration such as +26h, 90s or -1d', description });
const span = (description: string) =>
  Type.String({ format: 'lab-span', expected: 'a duration such as 500ms, 90s, 10m, 26h or 3d', description });
const time = (description: string) =>
  Type.String({
    format: 'lab-time',
    expected: 'a time between 2001 and 2099 such as 2026-03-29T00:00Z',
    description,
  });
const whole = (minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, description });
const flag = (description: string) => Type.Boolean({ description });
const choice = <const One extends string | number>(values: readonly One[], description: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description },
  ) as TSchema & { static: One };
const optional = Type.Optional;
const closed = { additionalProperties: false };

const SUBSCRIPTION = whole(1, NUMBER_MAX, 'Number of the subscription.');
const EXPORT = choice(EXPORT_NAMES, 'The export.');
const ID = Type.String({
  format: 'lab-detection-id',
  expected: 'the id of a detection such as t.7001.123.456',
  description: 'Id of the detection.',
});
const ROWS = whole(0, 10_000, 'New detections, over all files together. Default: 10.');
const TIMES = whole(1, 1_000_000, 'How many answers. Default: 1.');

/** The status of each error code of the contract: of its problems, and of OAuth's own errors. */
export const STATUS_OF_CODE: ReadonlyMap<string, number> = new Map([
  ...Object.entries(PROBLEMS).map(([code, { status }]) => [code, status] as const),
  ...Object.entries(OAUTH_ERRORS),
]);
const PROXY_STATUSES = [502, 504];
const STATUSES = [...new Set([...STATUS_OF_CODE.values(), ...PROXY_STATUSES])].sort();
const ENDPOINTS = OPERATIONS.filter(({ method }) => method !== 'head').map(({ id }) => id);

const FAULT = {
  endpoint: optional(choice(ENDPOINTS, 'Only requests to this endpoint (operationId). Default: all.')),
  status: optional(
    choice(
      STATUSES,
      'Answer with this status: its true body and headers, or for 502 and 504 those of a proxy.',
    ),
  ),
  code: optional(
    choice(
      [...STATUS_OF_CODE.keys()],
      'The error code, where a status has several: daily_allowance in place of rate_limited.',
    ),
  ),
  retry_after: optional(whole(1, 86_400, 'Retry-After of the answer, in seconds.')),
  delay: optional(span('Answer that much later, by the real clock.')),
  slow: optional(whole(1, 1_000_000_000, 'Send the body at so many bytes a second.')),
  cut_after: optional(whole(0, 1_000_000_000, 'Close the connection after so many bytes of the body.')),
  truncate: optional(
    whole(0, 1_000_000_000, 'Send only so many bytes of the body, with a Content-Length that fits.'),
  ),
  corrupt: optional(flag('Change some bytes in the middle of the body.')),
  close: optional(
    flag(
      'Close the connection when the request arrives, without an answer, as a kept-alive one that timed out.',
    ),
  ),
  reset: optional(flag('Reset the connection in place of an answer, or where it is cut.')),
  empty_page: optional(
    flag('Answer with a page without rows and has_more true, whose cursor continues where the request did.'),
  ),
  duplicate: optional(
    flag(
      'Answer a request for changes with the rows of the page before once more. Waits for such a request.',
    ),
  ),
  pages: optional(
    whole(1, 1000, 'With duplicate: the page with rows that was so many before, alone. Default: 1.'),
  ),
  times: optional(
    whole(1, 1_000_000, 'How many requests it applies to. Default: 1; with a probability, no limit.'),
  ),
  after: optional(whole(0, 1_000_000, 'How many requests it lets pass first.')),
  probability: optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      expected: 'a number from 0 to 1',
      description: 'Share of the requests that it applies to, by chance from the seed.',
    }),
  ),
};

const FEED = { rows: optional(ROWS), export: optional(EXPORT), subscription: optional(SUBSCRIPTION) };

export const ACTIONS = {
  clock: action('Move the clock: all that is due by then happens at once.', null, {
    advance: optional(duration('How far; a minus sign moves it back.')),
    to: optional(time('Where to.')),
  }),
  drop: action('Drop export files with new detections, and wait until they are read.', null, {
    ...FEED,
    age: optional(span('How long ago the window ended. Default: 0, the window that ended last.')),
  }),
  late: action('Drop the file of a window that is missing, or else of one that was left out.', null, {
    ...FEED,
    age: optional(span('If no window is missing: how long ago the window ended. Default: 2h.')),
  }),
  correct: action('Score a detection anew, with another score: a new version.', 'id', {
    id: ID,
    score: Type.Number({
      minimum: 0,
      maximum: 100,
      expected: 'a score: 0 to 100 for text, 0 to 99 for an image',
      description: 'The score.',
    }),
  }),
  rescore: action('Score a detection anew, with the same score: no new version.', 'id', { id: ID }),
  gap: action('Let a window of an export be missing, failed or abandoned.', 'export', {
    export: EXPORT,
    status: choice(['missing', 'failed', 'abandoned'], 'What becomes of the window.'),
    window: optional(
      Type.String({
        format: 'lab-window',
        expected: 'the start of a ten-minute window such as 2026-03-29T00:10Z',
        description: 'Start of the window. Default: the newest one that it can happen to.',
      }),
    ),
  }),
  'remove-subscription': action('Remove a subscription with all its detections.', 'subscription', {
    subscription: SUBSCRIPTION,
  }),
  restore: action(
    'Do what follows when the end of the log was lost: versions rise by 1,000, positions go on a year ahead.',
    null,
    {},
  ),
  allowance: action('Set how much of the daily row allowance of the account is used.', null, {
    used: optional(whole(0, 1_000_000_000_000, 'Rows used today. Default: the whole allowance.')),
  }),
  duplicate: action('Deliver the rows of a page of changes twice.', null, { times: optional(TIMES) }),
  'empty-page': action('Answer with a page without rows that says has_more.', null, {
    times: optional(TIMES),
    endpoint: optional(choice(['listChanges', 'listDetections'], 'The endpoint. Default: listChanges.')),
  }),
  faults: action(
    'Add a fault. A request meets one at most, the first that was added; X-Wirewatch-Lab in its answer says which.',
    null,
    FAULT,
  ),
} as const;

/** The schema of one member of an action's body. */
export type Member = TSchema;
export type ActionName = keyof typeof ACTIONS;
export type ActionBody<Name extends ActionName> = Static<(typeof ACTIONS)[Name]['body']>;
export type FaultSpec = ActionBody<'faults'>;

export function isActionName(name: string): name is ActionName {
  return Object.hasOwn(ACTIONS, name);
}

/** @throws Refused `invalid_request` with every problem: the member, what was expected, what was found */
export function readBody<Name extends ActionName>(name: Name, value: unknown): ActionBody<Name> {
  const schema: TObject = ACTIONS[name].body;
  const problems = problemsOf(schema, value);
  if (problems.length > 0) throw new Refused('invalid_request', listed(problems, 'members are wrong'));
  return value as ActionBody<Name>;
}

function problemsOf({ properties, required = [] }: TObject, value: unknown): string[] {
  if (!isTable(value)) return [`expected an object, found ${shown(value)}`];
  const given = new Map<string, unknown>(Object.entries(value));
  return [...new Set([...given.keys(), ...required])].flatMap((name) => {
    const member = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (member === undefined) {
      const names = Object.keys(properties);
      const near = nearest(name, names, 3);
      const known = near === null ? `expected ${names.join(', ') || 'nothing'}` : `did you mean ${near}?`;
      return `${name}: unknown; ${known}`;
    }
    if (!given.has(name)) return `${name}: required; expected ${expectation(member)}`;
    if (Value.Check(member, given.get(name))) return [];
    return `${name}: expected ${expectation(member)}, found ${shown(given.get(name))}`;
  });
}

/** @param argument the member that the command takes without an option's name */
function action<Members extends Record<string, TSchema>>(
  summary: string,
  argument: string | null,
  members: Members,
) {
  return { summary, argument, body: Type.Object(members, closed) };
}
