/**
 * The operations of a lab, each described once: from this table come the HTTP endpoints with their checks, the OpenAPI
 * document, the commands with their help, and the steps of a scenario.
 */
import { FormatRegistry, type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { isTable, shown } from '../config/raw-value.ts';
import { expectation } from '../config/schema.ts';
import { EXPORT_NAMES, NUMBER_MAX } from '../detection/content-type.ts';
import { isDetectionId } from '../detection/id.ts';
import { OAUTH_ERRORS, PROBLEMS } from '../error-codes.ts';
import { ENDPOINTS } from '../http/endpoints/all.ts';
import { nearest } from '../nearest.ts';
import { listed, Refused } from '../refused.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, parseInstant, SECOND_MS, WINDOW_MS } from '../time.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
const YEARS_MAX_MS = 200 * 366 * DAY_MS;
/** The range of the clock. */
const CLOCK_MIN_MS = Date.UTC(2001);
const CLOCK_MAX_MS = Date.UTC(2099);

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

/** Texts of one form. @param placeholder of the command's option @param expected for messages */
function textsOf(placeholder: string, isRight: (text: string) => boolean, expected: string) {
  const format = `lab-${expected}`;
  FormatRegistry.Set(format, isRight);
  return (description: string) => Type.String({ format, placeholder, expected, description });
}

/** How the help shows the value of an option, after its name. */
const NUMBER = ' <number>';
const isSpan = (text: string) => (parseDuration(text) ?? -1) >= 0;
const isShift = (text: string) => parseDuration(text) !== null;
const isTime = (text: string) => parseLabTime(text) !== null;
const isWindow = (text: string) => (parseLabTime(text) ?? Number.NaN) % WINDOW_MS === 0;
const span = textsOf(' <duration>', isSpan, 'a duration such as 500ms, 90s, 10m, 26h or 3d');
const shift = textsOf(' <shift>', isShift, 'a duration such as +26h, 90s or -1d');
const time = textsOf(' <time>', isTime, 'a time between 2001 and 2099 such as 2026-03-29T00:00Z');
const window = textsOf(' <time>', isWindow, 'the start of a ten-minute window such as 2026-03-29T00:10Z');
const detectionId = textsOf(' <id>', isDetectionId, 'the id of a detection such as t.7001.123.456');
const whole = (minimum: number, maximum: number, description: string, placeholder = NUMBER) =>
  Type.Integer({ minimum, maximum, description, placeholder });
const amount = (description: string) => whole(0, 1_000_000_000, description);
const number = (maximum: number, expected: string, description: string) =>
  Type.Number({ minimum: 0, maximum, expected, description, placeholder: NUMBER });
const flag = (description: string) => Type.Boolean({ description, placeholder: '' });
const choice = <const One extends string | number>(values: readonly One[], description: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description, placeholder: typeof values[0] === 'number' ? NUMBER : ' <name>' },
  ) as TSchema & { static: One };

/** The status of each error code of the contract: of its problems, and of OAuth's own errors. */
export const STATUS_OF_CODE: ReadonlyMap<string, number> = new Map([
  ...Object.entries(PROBLEMS).map(([code, { status }]) => [code, status] as const),
  ...Object.entries(OAUTH_ERRORS),
]);
const PROXY_STATUSES = [502, 504];
const STATUSES = [...new Set([...STATUS_OF_CODE.values(), ...PROXY_STATUSES])].sort();
const ENDPOINT_IDS = ENDPOINTS.map(({ id }) => id);
const PAGE_ENDPOINTS = ['listChanges', 'listDetections'] as const;

const SUBSCRIPTION = whole(1, NUMBER_MAX, 'Number of the subscription.');
const EXPORT = choice(EXPORT_NAMES, 'The export.');
const ID = detectionId('Id of the detection.');
const TIMES = whole(1, 1_000_000, 'How many answers. Default: 1.');
const FEED = {
  rows: whole(0, 10_000, 'New detections, over all files together. Default: 10.'),
  export: EXPORT,
  subscription: SUBSCRIPTION,
};

const AFTER = { description: 'Only requests with greater numbers.', expected: 'the number of a request' };

const FAULT = {
  endpoint: choice(ENDPOINT_IDS, 'Only requests to this endpoint (operationId). Default: all.'),
  status: choice(
    STATUSES,
    'Answer with this status, and its real body and headers. 502 and 504 are those of a proxy.',
  ),
  code: choice(
    [...STATUS_OF_CODE.keys()],
    'The error code, if a status has several: daily_allowance instead of rate_limited.',
  ),
  retry_after: whole(1, 86_400, 'Retry-After of the answer, in seconds.'),
  delay: span('Delay the answer by this time of the real clock.'),
  slow: whole(1, 1_000_000_000, 'Send the body at this many bytes a second.'),
  cut_after: amount('Close the connection after this many bytes of the body.'),
  truncate: amount('Send only this many bytes of the body, with a matching Content-Length.'),
  corrupt: flag('Change some bytes in the middle of the body.'),
  close: flag(
    'Close the connection when the request arrives, without an answer, like a kept-alive connection that timed out.',
  ),
  reset: flag('Reset the connection instead of answering, or at the place where the body is cut.'),
  empty_page: flag(
    'Answer with a page without rows and has_more true, whose cursor continues where the request did.',
  ),
  duplicate: flag(
    'Answer a request for changes with the rows of the previous page again. Waits for such a request.',
  ),
  pages: whole(
    1,
    1000,
    'With duplicate: how many pages with rows to go back, for that page alone. Default: 1.',
  ),
  times: whole(1, 1_000_000, 'How many requests it applies to. Default: 1; with a probability, no limit.'),
  after: whole(0, 1_000_000, 'How many requests to let pass first.'),
  probability: number(
    1,
    'a number from 0 to 1',
    'Probability that it applies to a request. Chance follows the seed.',
  ),
};

export const ACTIONS = {
  clock: action('Move the clock. Everything that is due by then happens at once.', {
    members: { advance: shift('How far; a minus sign moves it back.'), to: time('Where to.') },
    examples: ['clock', 'clock +26h', 'clock 2026-03-29T00:00Z'],
  }),
  drop: action('Drop export files with new detections, and wait until they are processed.', {
    members: { ...FEED, age: span('How long ago the window ended. Default: 0, the window that ended last.') },
    examples: ['drop', 'drop --rows 3 --age 3d --subscription 7001'],
  }),
  late: action('Drop the file of the oldest missing window; without one, of a window that was skipped.', {
    members: {
      ...FEED,
      age: span('If no window is missing: how long ago the window ended. Default: 2h.'),
    },
    examples: ['late --rows 3'],
  }),
  correct: action('Rescore a detection with another score, which makes a new version.', {
    required: ['id', 'score'],
    members: { id: ID, score: number(100, 'a score: 0 to 100 for text, 0 to 99 for an image', 'The score.') },
    examples: ['correct t.7001.123.456 --score 12'],
  }),
  rescore: action('Rescore a detection with the same score, which makes no new version.', {
    required: ['id'],
    members: { id: ID },
    examples: ['rescore t.7001.123.456'],
  }),
  gap: action('Make a window of an export missing, failed or abandoned.', {
    required: ['export', 'status'],
    members: {
      export: EXPORT,
      status: choice(['missing', 'failed', 'abandoned'], 'The new state of the window.'),
      window: window('Start of the window. Default: the newest possible one.'),
    },
    examples: ['gap newswire --status missing', 'gap imagewire --status failed'],
  }),
  'remove-subscription': action('Remove a subscription with all its detections.', {
    required: ['subscription'],
    members: { subscription: SUBSCRIPTION },
    examples: ['remove-subscription 7002'],
  }),
  restore: action(
    'Act as after a restore that lost the end of the log: versions rise by 1,000, positions continue a year ahead.',
    { members: {}, examples: ['restore'] },
  ),
  allowance: action('Set how much of the daily row allowance of the account is used.', {
    members: {
      used: whole(0, 1_000_000_000_000, 'Rows used today. Default: the whole allowance.', ' [rows]'),
    },
    examples: ['allowance --used', 'allowance --used 0'],
  }),
  duplicate: action('Deliver the rows of a page of changes again.', {
    members: { times: TIMES },
    examples: ['duplicate --times 2'],
  }),
  'empty-page': action('Answer with a page without rows and has_more true.', {
    members: { times: TIMES, endpoint: choice(PAGE_ENDPOINTS, 'The endpoint. Default: listChanges.') },
    examples: ['empty-page'],
  }),
  faults: action(
    'Add a fault. A request meets one at most, the first that was added. X-Wirewatch-Lab in the answer names it.',
    {
      members: FAULT,
      examples: [
        'fault add --status 429 --retry-after 7 --endpoint listChanges --times 3',
        'fault add --cut-after 200',
        'fault add --status 503 --probability 0.1',
      ],
    },
  ),
} as const;

/** The operations that do nothing to clients, by the method and the path below `/_lab/`. */
export const READINGS = {
  'GET clock': action('Show the clock.'),
  'GET faults': action('List the faults, with how often each has fired.', { examples: ['fault list'] }),
  'DELETE faults': action('Remove all faults.'),
  'DELETE faults/{id}': action('Remove a fault.', { required: ['id'], members: { id: Type.String() } }),
  'GET report': action('Print what clients did, request by request, and what fired.', {
    members: { after: Type.Integer({ ...AFTER, minimum: 0 }) },
    examples: ['report', 'report --after 120', 'report --clear'],
  }),
  'DELETE report': action('Forget the requests and actions so far.'),
  'GET openapi.json': action('This document.'),
} as const;

/** All operations, by method and path. */
export const CONTROLS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ...Object.entries(ACTIONS).map(([name, one]) => [`POST ${name}`, one] as const),
  ...Object.entries(READINGS),
]);

export type Member = TSchema;
type Members = Readonly<Record<string, Member>>;

/** @param required the command takes the first of them as its argument @param examples without `wirewatch lab` */
function action<Own extends Members, Required extends keyof Own & string = never>(
  summary: string,
  {
    members,
    required = [],
    examples = [],
  }: { members?: Own; required?: Required[]; examples?: string[] } = {},
) {
  return { summary, members: members ?? ({} as Own), required, examples };
}

/** An operation with the members of its body. */
export interface Action {
  readonly summary: string;
  readonly members: Members;
  readonly required: readonly string[];
  readonly examples: readonly string[];
}
export type ActionName = keyof typeof ACTIONS;
type BodyOf<Own extends Members, Required extends keyof Own> = {
  readonly [Name in Required]: Static<Own[Name]>;
} & { readonly [Name in Exclude<keyof Own, Required>]?: Static<Own[Name]> };
export type ActionBody<Name extends ActionName> = BodyOf<
  (typeof ACTIONS)[Name]['members'],
  (typeof ACTIONS)[Name]['required'][number] & keyof (typeof ACTIONS)[Name]['members']
>;
export type FaultSpec = ActionBody<'faults'>;

export function isActionName(name: string): name is ActionName {
  return Object.hasOwn(ACTIONS, name);
}

/** @throws Refused `invalid_request` with every problem: the member, what was expected, what was found */
export function readBody<Name extends ActionName>(name: Name, value: unknown): ActionBody<Name> {
  requireMembers(ACTIONS[name], value);
  return value as ActionBody<Name>;
}

/** @throws Refused `invalid_request` as {@link readBody} */
export function requireMembers(operation: Action, value: unknown): void {
  const problems = problemsOf(operation, value);
  if (problems.length > 0) throw new Refused('invalid_request', listed(problems, 'members are wrong'));
}

function problemsOf({ members, required }: Action, value: unknown): string[] {
  if (!isTable(value)) return [`expected an object, found ${shown(value)}`];
  const given = new Map<string, unknown>(Object.entries(value));
  return [...new Set([...given.keys(), ...required])].flatMap((name) => {
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    if (member === undefined) {
      const names = Object.keys(members);
      const near = nearest(name, names, 3);
      const known = near === null ? `expected ${names.join(', ') || 'nothing'}` : `did you mean ${near}?`;
      return `${name}: unknown; ${known}`;
    }
    if (!given.has(name)) return `${name}: required; expected ${expectation(member)}`;
    if (Value.Check(member, given.get(name))) return [];
    return `${name}: expected ${expectation(member)}, found ${shown(given.get(name))}`;
  });
}
