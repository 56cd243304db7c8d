/**
 * What can be asked of a running lab: its clock, its feed, its faults and its report. The lab does it in the main thread,
 * which sends the answers (lab/lab.ts); a scenario plays the same operations.
 */
import { Type } from '@sinclair/typebox';
import { integer, type Reading, read, wrong } from '../config/option-values.ts';
import { EXPORT_NAMES, NUMBER_MAX } from '../detection/content-type.ts';
import { isDetectionId } from '../detection/id.ts';
import { OAUTH_ERRORS, PROBLEMS } from '../error-codes.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, parseInstant, SECOND_MS, WINDOW_MS } from '../time.ts';
import {
  choice,
  hinted,
  type Member,
  type Members,
  required,
  toggle,
  type ValuesOf,
  value,
} from './member.ts';
import { act, type Description, type Operation, reading } from './operation.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
const YEARS_MAX_MS = 200 * 366 * DAY_MS;
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

/** Members of one form. The report shows them as they were written, so their values are texts. */
function texts(placeholder: string, isRight: (text: string) => boolean, expected: string) {
  const readText = (text: string): Reading<string> => (isRight(text) ? read(text) : wrong(expected));
  return (hint: string) => value(readText, { hint, placeholder });
}

function whole(minimum: number, maximum: number, hint: string, placeholder = 'number') {
  const schema = Type.Integer({ minimum, maximum });
  return value(integer(minimum, maximum), { hint, placeholder, schema });
}

function decimal(maximum: number, expected: string, hint: string) {
  const readNumber = (text: string): Reading<number> => {
    const isRight = /^\d{1,9}(\.\d{1,15})?$/.test(text) && Number(text) <= maximum;
    return isRight ? read(Number(text)) : wrong(expected);
  };
  return value(readNumber, { hint, placeholder: 'number', schema: Type.Number({ minimum: 0, maximum }) });
}

/** The status of each error code of the API: of its problems, and of OAuth's own errors. */
export const STATUS_OF_CODE: ReadonlyMap<string, number> = new Map([
  ...Object.entries(PROBLEMS).map(([code, { status }]) => [code, status] as const),
  ...Object.entries(OAUTH_ERRORS),
]);
const PROXY_STATUSES = [502, 504];
const STATUSES = [...new Set([...STATUS_OF_CODE.values(), ...PROXY_STATUSES])].sort();
export const ENDPOINT_IDS = [
  'listChanges',
  'listDetections',
  'getDetection',
  'getDetectionSchema',
  'getPhoto',
  'getMe',
  'createToken',
  'getHealth',
] as const;

const isSpan = (text: string) => (parseDuration(text) ?? -1) >= 0;
const isShift = (text: string) => parseDuration(text) !== null;
const isTime = (text: string) => parseLabTime(text) !== null;
const isWindow = (text: string) => (parseLabTime(text) ?? Number.NaN) % WINDOW_MS === 0;
const TIME_EXPECTED = 'a time between 2001 and 2099 such as 2026-03-29T00:00Z';
const span = texts('duration', isSpan, 'a duration such as 500ms, 90s, 10m, 26h or 3d');
const shift = texts('shift', isShift, 'a duration such as +26h, 90s or -1d');
const time = texts('time', isTime, TIME_EXPECTED);
const when = texts(
  'when',
  (text) => isShift(text) || isTime(text),
  `a duration such as +26h, 90s or -1d, or ${TIME_EXPECTED}`,
);
const window = texts('time', isWindow, 'the start of a ten-minute window such as 2026-03-29T00:10Z');
const detectionId = texts('id', isDetectionId, 'the id of a detection such as t.7001.123.456');

const EXPORT = choice(EXPORT_NAMES, { hint: 'the export', placeholder: 'name' });
const SUBSCRIPTION = whole(1, NUMBER_MAX, 'number of the subscription');
const ID = required(detectionId('id of the detection'));
const TIMES = whole(1, 1_000_000, 'how many answers (default: 1)');
const BYTES_MAX = 1_000_000_000;
const FEED = {
  rows: whole(0, 10_000, 'new detections, over all files together (default: 10)'),
  export: EXPORT,
  subscription: SUBSCRIPTION,
};
const STATUS: Member<number, false> = value(
  (text) => {
    const status = STATUSES.find((known) => `${known}` === text);
    return status === undefined ? wrong(`one of ${STATUSES.join(', ')}`) : read(status);
  },
  {
    hint: `answer with this status, and its real body and headers: ${STATUSES.join(', ')}; 502 and 504 are those of a proxy`,
    placeholder: 'number',
    schema: Type.Union(STATUSES.map((status) => Type.Literal(status))),
  },
);
const CODE = choice([...STATUS_OF_CODE.keys()], {
  hint: 'the error code, if a status has several',
  placeholder: 'name',
});

const FAULT = {
  endpoint: choice(ENDPOINT_IDS, { hint: 'only requests to this endpoint', placeholder: 'name' }),
  status: STATUS,
  code: CODE,
  retry_after: whole(1, 86_400, 'Retry-After of the answer, in seconds'),
  delay: span('delay the answer by this time of the real clock'),
  slow: whole(1, BYTES_MAX, 'send the body at this many bytes a second'),
  cut_after: whole(0, BYTES_MAX, 'close the connection after this many bytes of the body'),
  truncate: whole(0, BYTES_MAX, 'send only this many bytes of the body, with a matching Content-Length'),
  corrupt: toggle('change some bytes in the middle of the body'),
  close: toggle(
    'close the connection when the request arrives, without an answer, like a kept-alive connection that timed out',
  ),
  reset: toggle('reset the connection instead of answering, or at the place where the body is cut'),
  empty_page: toggle(
    'answer with a page without rows and has_more true, whose cursor continues where the request did',
  ),
  duplicate: toggle(
    'answer a request for changes with the rows of the previous page again. Waits for such a request',
  ),
  pages: whole(
    1,
    1000,
    'with duplicate: how many pages with rows to go back, for that page alone (default: 1)',
  ),
  times: whole(1, 1_000_000, 'how many requests it applies to (default: 1; with a probability, no limit)'),
  after: whole(0, 1_000_000, 'how many requests to let pass first'),
  probability: decimal(
    1,
    'a number from 0 to 1',
    'probability that it applies to a request. Chance follows the seed',
  ),
};
const faultId = texts('id', (text) => /^f\d{1,9}$/.test(text), 'the id of a fault, such as f1');

/** The members of each operation, by its name in a lab. */
export const LAB_MEMBERS = {
  clock: {
    when: when('how far, such as +26h, or where to, such as 2026-03-29T00:00Z (default: show the clock)'),
    advance: shift('how far; a minus sign moves it back'),
    to: time('where to'),
  },
  drop: { ...FEED, age: span('how long ago the window ended (default: 0, the window that ended last)') },
  late: { ...FEED, age: span('if no window is missing: how long ago the window ended (default: 2h)') },
  correct: {
    id: ID,
    score: required(decimal(100, 'a score: 0 to 100 for text, 0 to 99 for an image', 'the score')),
  },
  rescore: { id: ID },
  gap: {
    export: required(EXPORT),
    status: required(
      choice(['missing', 'failed', 'abandoned'], {
        hint: 'the new state of the window',
        placeholder: 'name',
      }),
    ),
    window: window('start of the window (default: the newest possible one)'),
  },
  'remove-subscription': { subscription: required(SUBSCRIPTION) },
  restore: {},
  allowance: {
    used: {
      ...whole(0, 1_000_000_000_000, 'rows used today (default: the whole allowance)', 'rows'),
      mayBeBare: true,
    },
  },
  duplicate: { times: TIMES },
  'empty-page': {
    times: TIMES,
    endpoint: choice(['listChanges', 'listDetections'], {
      hint: 'the endpoint',
      placeholder: 'name',
      usual: 'listChanges',
    }),
  },
  'fault add': FAULT,
  'fault list': {},
  'fault clear': { id: hinted(faultId('id of the fault'), 'id of the fault (default: all)') },
  report: {
    after: whole(0, Number.MAX_SAFE_INTEGER, 'only requests with greater numbers (default: 0)'),
    clear: toggle('then forget them'),
  },
} as const;

export type LabName = keyof typeof LAB_MEMBERS;
export type LabValues = { readonly [Name in LabName]: ValuesOf<(typeof LAB_MEMBERS)[Name]> };
export type FaultSpec = LabValues['fault add'];

/** @param examples without `lab` */
function ofLab<const Own extends Members>(
  name: LabName,
  members: Own,
  { examples, ...rest }: Omit<Description<Own, unknown>, 'members' | 'run' | 'text'>,
): Operation {
  const define = name === 'fault list' ? reading : act;
  return define<Own, unknown>(`lab ${name}`, {
    ...rest,
    members,
    examples: examples.map((line) => `lab ${line}`),
    run: async ({ lab }, values) => ({ value: await lab(name, values) }),
    text: (value) => JSON.stringify(value, null, 2),
  });
}

export const LAB = [
  ofLab('clock', LAB_MEMBERS.clock, {
    summary: 'show or move the clock. Everything that is due by then happens at once',
    operands: ['when'],
    examples: ['clock', 'clock +26h', 'clock 2026-03-29T00:00Z'],
    form: {
      label: 'Move the clock',
      will: 'Everything that is due by then happens at once.',
      fields: ['advance', 'to'],
    },
  }),
  ofLab('drop', LAB_MEMBERS.drop, {
    summary: 'drop export files with new detections, and wait until they are processed',
    examples: ['drop', 'drop --rows 3 --age 3d --subscription 7001'],
    form: { label: 'Drop detections', will: 'New detections reach the change stream, as from export files.' },
  }),
  ofLab('late', LAB_MEMBERS.late, {
    summary: 'drop the file of the oldest missing window; without one, of a window that was skipped',
    examples: ['late --rows 3'],
  }),
  ofLab('correct', LAB_MEMBERS.correct, {
    summary: 'rescore a detection with another score, which makes a new version',
    operands: ['id'],
    examples: ['correct t.7001.123.456 --score 12'],
  }),
  ofLab('rescore', LAB_MEMBERS.rescore, {
    summary: 'rescore a detection with the same score, which makes no new version',
    operands: ['id'],
    examples: ['rescore t.7001.123.456'],
  }),
  ofLab('gap', LAB_MEMBERS.gap, {
    summary: 'make a window of an export missing, failed or abandoned',
    operands: ['export'],
    examples: ['gap newswire --status missing', 'gap imagewire --status failed'],
  }),
  ofLab('remove-subscription', LAB_MEMBERS['remove-subscription'], {
    summary: 'remove a subscription with all its detections',
    operands: ['subscription'],
    examples: ['remove-subscription 7002'],
  }),
  ofLab('restore', LAB_MEMBERS.restore, {
    summary:
      'act as after a restore that lost the end of the log: versions rise by 1,000, positions continue a year ahead',
    examples: ['restore'],
  }),
  ofLab('allowance', LAB_MEMBERS.allowance, {
    summary: 'set how much of the daily row allowance of the account is used',
    examples: ['allowance --used', 'allowance --used 0'],
  }),
  ofLab('duplicate', LAB_MEMBERS.duplicate, {
    summary: 'deliver the rows of a page of changes again',
    examples: ['duplicate --times 2'],
  }),
  ofLab('empty-page', LAB_MEMBERS['empty-page'], {
    summary: 'answer with a page without rows and has_more true',
    examples: ['empty-page'],
  }),
  ofLab('fault add', LAB_MEMBERS['fault add'], {
    summary:
      'add a fault. A request meets one at most, the first that was added. X-Wirewatch-Lab in the answer names it',
    examples: [
      'fault add --status 429 --retry-after 7 --endpoint listChanges --times 3',
      'fault add --cut-after 200',
      'fault add --status 503 --probability 0.1',
    ],
    form: {
      label: 'Add a fault',
      will: 'Requests of clients meet it, as often as it says.',
      fields: ['endpoint', 'status', 'code', 'retry_after', 'delay', 'cut_after', 'empty_page', 'times'],
    },
  }),
  ofLab('fault list', LAB_MEMBERS['fault list'], {
    summary: 'list the faults, with how often each has fired',
    examples: ['fault list'],
  }),
  ofLab('fault clear', LAB_MEMBERS['fault clear'], {
    summary: 'remove a fault, or all of them; print what was removed',
    operands: ['id'],
    examples: ['fault clear', 'fault clear f1'],
    form: { label: 'Remove', title: 'Remove fault', will: 'No request meets it any more.', fields: [] },
  }),
  ofLab('report', LAB_MEMBERS.report, {
    summary: 'print what clients did, request by request, and what fired',
    examples: ['report', 'report --after 120', 'report --clear'],
  }),
];
