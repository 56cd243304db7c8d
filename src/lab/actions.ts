/**
 * The operations of a lab, each described once: from this table come the HTTP endpoints with their checks, the OpenAPI
 * document, the commands with their help, and the steps of a scenario.
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

/** Texts of one form. @param name the placeholder of the command's option @param expected for messages */
function textsOf(name: string, isRight: (text: string) => boolean, expected: string) {
  FormatRegistry.Set(`lab-${name}`, isRight);
  return (description: string) =>
    Type.String({ format: `lab-${name}`, placeholder: name, expected, description });
}

const isSpan = (text: string) => (parseDuration(text) ?? -1) >= 0;
const isWindow = (text: string) => (parseLabTime(text) ?? Number.NaN) % WINDOW_MS === 0;
const span = textsOf('duration', isSpan, 'a duration such as 500ms, 90s, 10m, 26h or 3d');
const shift = textsOf('shift', (text) => parseDuration(text) !== null, 'a duration such as +26h, 90s or -1d');
const time = textsOf(
  'time',
  (text) => parseLabTime(text) !== null,
  'a time between 2001 and 2099 such as 2026-03-29T00:00Z',
);
const window = textsOf('window', isWindow, 'the start of a ten-minute window such as 2026-03-29T00:10Z');
const detectionId = textsOf('id', isDetectionId, 'the id of a detection such as t.7001.123.456');
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
const ID = detectionId('Id of the detection.');
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
      'Answer with this status, and its real body and headers. 502 and 504 are those of a proxy.',
    ),
  ),
  code: optional(
    choice(
      [...STATUS_OF_CODE.keys()],
      'The error code, if a status has several: daily_allowance instead of rate_limited.',
    ),
  ),
  retry_after: optional(whole(1, 86_400, 'Retry-After of the answer, in seconds.')),
  delay: optional(span('Delay the answer by this time of the real clock.')),
  slow: optional(whole(1, 1_000_000_000, 'Send the body at this many bytes a second.')),
  cut_after: optional(whole(0, 1_000_000_000, 'Close the connection after this many bytes of the body.')),
  truncate: optional(
    whole(0, 1_000_000_000, 'Send only this many bytes of the body, with a matching Content-Length.'),
  ),
  corrupt: optional(flag('Change some bytes in the middle of the body.')),
  close: optional(
    flag(
      'Close the connection when the request arrives, without an answer, like a kept-alive connection that timed out.',
    ),
  ),
  reset: optional(flag('Reset the connection instead of answering, or at the place where the body is cut.')),
  empty_page: optional(
    flag('Answer with a page without rows and has_more true, whose cursor continues where the request did.'),
  ),
  duplicate: optional(
    flag('Answer a request for changes with the rows of the previous page again. Waits for such a request.'),
  ),
  pages: optional(
    whole(1, 1000, 'With duplicate: how many pages with rows to go back, for that page alone. Default: 1.'),
  ),
  times: optional(
    whole(1, 1_000_000, 'How many requests it applies to. Default: 1; with a probability, no limit.'),
  ),
  after: optional(whole(0, 1_000_000, 'How many requests to let pass first.')),
  probability: optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      expected: 'a number from 0 to 1',
      description: 'Probability that it applies to a request. Chance follows the seed.',
    }),
  ),
};

const FEED = { rows: optional(ROWS), export: optional(EXPORT), subscription: optional(SUBSCRIPTION) };

export const ACTIONS = {
  clock: action('Move the clock. Everything that is due by then happens at once.', {
    members: {
      advance: optional(shift('How far; a minus sign moves it back.')),
      to: optional(time('Where to.')),
    },
    examples: ['clock', 'clock +26h', 'clock 2026-03-29T00:00Z'],
  }),
  drop: action('Drop export files with new detections, and wait until they are processed.', {
    members: {
      ...FEED,
      age: optional(span('How long ago the window ended. Default: 0, the window that ended last.')),
    },
    examples: ['drop', 'drop --rows 3 --age 3d --subscription 7001'],
  }),
  late: action('Drop the file of the oldest missing window; without one, of a window that was skipped.', {
    members: {
      ...FEED,
      age: optional(span('If no window is missing: how long ago the window ended. Default: 2h.')),
    },
    examples: ['late --rows 3'],
  }),
  correct: action('Rescore a detection with another score, which makes a new version.', {
    argument: 'id',
    members: {
      id: ID,
      score: Type.Number({
        minimum: 0,
        maximum: 100,
        expected: 'a score: 0 to 100 for text, 0 to 99 for an image',
        description: 'The score.',
      }),
    },
    examples: ['correct t.7001.123.456 --score 12'],
  }),
  rescore: action('Rescore a detection with the same score, which makes no new version.', {
    argument: 'id',
    members: { id: ID },
    examples: ['rescore t.7001.123.456'],
  }),
  gap: action('Make a window of an export missing, failed or abandoned.', {
    argument: 'export',
    members: {
      export: EXPORT,
      status: choice(['missing', 'failed', 'abandoned'], 'The new state of the window.'),
      window: optional(window('Start of the window. Default: the newest possible one.')),
    },
    examples: ['gap newswire --status missing', 'gap imagewire --status failed'],
  }),
  'remove-subscription': action('Remove a subscription with all its detections.', {
    argument: 'subscription',
    members: { subscription: SUBSCRIPTION },
    examples: ['remove-subscription 7002'],
  }),
  restore: action(
    'Act as after a restore that lost the end of the log: versions rise by 1,000, positions continue a year ahead.',
    { members: {}, examples: ['restore'] },
  ),
  allowance: action('Set how much of the daily row allowance of the account is used.', {
    members: {
      used: optional(whole(0, 1_000_000_000_000, 'Rows used today. Default: the whole allowance.')),
    },
    examples: ['allowance --used', 'allowance --used 0'],
  }),
  duplicate: action('Deliver the rows of a page of changes again.', {
    members: { times: optional(TIMES) },
    examples: ['duplicate --times 2'],
  }),
  'empty-page': action('Answer with a page without rows and has_more true.', {
    members: {
      times: optional(TIMES),
      endpoint: optional(choice(['listChanges', 'listDetections'], 'The endpoint. Default: listChanges.')),
    },
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
  'GET clock': 'Show the clock.',
  'GET faults': 'List the faults, with how often each has fired.',
  'DELETE faults': 'Remove all faults.',
  'DELETE faults/{id}': 'Remove a fault.',
  'GET report': 'Print what clients did, request by request, and what fired.',
  'DELETE report': 'Forget the requests and actions so far.',
  'GET openapi.json': 'This document.',
} as const;

/** The schema of one member of an action. */
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
  const members = new Map<string, unknown>(Object.entries(value));
  return [...new Set([...members.keys(), ...required])].flatMap((name) => {
    const member = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (member === undefined) {
      const names = Object.keys(properties);
      const near = nearest(name, names, 3);
      const known = near === null ? `expected ${names.join(', ') || 'nothing'}` : `did you mean ${near}?`;
      return `${name}: unknown; ${known}`;
    }
    if (!members.has(name)) return `${name}: required; expected ${expectation(member)}`;
    if (Value.Check(member, members.get(name))) return [];
    return `${name}: expected ${expectation(member)}, found ${shown(members.get(name))}`;
  });
}

interface ActionParts<Members extends Record<string, TSchema>> {
  readonly members: Members;
  /** The member that the command takes as its argument. */
  readonly argument?: keyof Members & string;
  /** Command lines, without `wirewatch lab`. */
  readonly examples: readonly string[];
}

function action<Members extends Record<string, TSchema>>(
  summary: string,
  { members, argument, examples }: ActionParts<Members>,
) {
  return { summary, argument: argument ?? null, body: Type.Object(members, closed), examples };
}
