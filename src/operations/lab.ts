/**
 * What can be asked of a running lab: its clock, its feed, its faults and its report. The lab does it in the main thread,
 * which sends the answers (tools/lab/lab.ts); a scenario plays the same operations.
 */
import { Type } from '@sinclair/typebox';
import { type Reading, read, wrong } from '../config/option-values.ts';
import { EXPORT_NAMES, NUMBER_MAX } from '../detection/content-type.ts';
import { isDetectionId } from '../detection/id.ts';
import { readPause } from '../ingest/operator-pause.ts';
import { OAUTH_ERRORS, PROBLEMS } from '../problem-titles.ts';
import { failed } from '../refused.ts';
import { parseDuration, parseInstant, WINDOW_MS } from '../time.ts';
import { anyText, choice, type Members, required, toggle, type ValuesOf, value, whole } from './member.ts';
import { act, type Description, reading } from './operation.ts';

const CLOCK_MIN_MS = Date.UTC(2001);
const CLOCK_MAX_MS = Date.UTC(2099);

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

function readScore(text: string): Reading<number> {
  const isRight = /^\d{1,9}(\.\d{1,15})?$/.test(text) && Number(text) <= 100;
  return isRight ? read(Number(text)) : wrong('a score: 0 to 100 for text, 0 to 99 for an image');
}

/** The status of each error code of the API: of its problems, and of OAuth's own errors. */
export const STATUS_OF_CODE: ReadonlyMap<string, number> = new Map([
  ...Object.entries(PROBLEMS).map(([code, { status }]) => [code, status] as const),
  ...Object.entries(OAUTH_ERRORS),
]);
const PROXY_STATUSES = [502, 504];
const STATUSES = [...new Set([...STATUS_OF_CODE.values(), ...PROXY_STATUSES])].sort();
/** The operationIds of the API. */
export const ENDPOINT_IDS = [
  'listChanges',
  'listDetections',
  'getDetection',
  'getDetectionSchema',
  'getPhoto',
  'getMe',
  'createToken',
  'getAuthorizationServer',
  'getOpenApi',
  'getHealth',
] as const;

const isSpan = (text: string) => (parseDuration(text) ?? -1) >= 0;
const isShift = (text: string) => parseDuration(text) !== null;
const isTime = (text: string) => parseLabTime(text) !== null;
const isWindow = (text: string) => (parseLabTime(text) ?? Number.NaN) % WINDOW_MS === 0;
const TIME_EXPECTED = 'a time between 2001 and 2099 such as 2026-03-29T00:00Z';
const span = texts('duration', isSpan, 'a duration such as 500ms, 90s, 59m58s, 26h or 3d');
const shift = texts('shift', isShift, 'a duration such as +26h, 90s or -1d');
export const time = texts('time', isTime, TIME_EXPECTED);
const isWhen = (text: string) => isShift(text) || isTime(text);
const when = texts('when', isWhen, `a duration such as +26h, 90s or -1d, or ${TIME_EXPECTED}`);
const window = texts('time', isWindow, 'the start of a ten-minute window such as 2026-03-29T00:10Z');
const detectionId = texts('id', isDetectionId, 'the id of a detection such as t.7001.123.456');

const EXPORT = choice(EXPORT_NAMES, { hint: 'the export', placeholder: 'name' });
const BYTES_MAX = 1_000_000_000;
const FEED = {
  rows: whole(0, 10_000, 'new detections, over all files together (default: 10)'),
  export: EXPORT,
  subscription: whole(1, NUMBER_MAX, 'number of the subscription'),
};
const FAULT = {
  endpoint: choice(ENDPOINT_IDS, { hint: 'only requests to this endpoint', placeholder: 'name' }),
  status: choice(STATUSES, {
    hint: 'answer with this status, 502 and 504 as a proxy does, the others with their real body and headers',
    placeholder: 'number',
  }),
  code: choice([...STATUS_OF_CODE.keys()], {
    hint: 'the error code, if a status has several',
    placeholder: 'name',
  }),
  retry_after: whole(0, 86_400, 'Retry-After of the answer, in seconds'),
  retry_after_date: toggle('send Retry-After as a date, as some proxies do'),
  delay: span('delay the answer by this time of the real clock'),
  slow: whole(1, BYTES_MAX, 'send the body at this many bytes a second'),
  cut_after: whole(
    0,
    BYTES_MAX,
    'close the connection after this many bytes of the body. Waits for a longer body',
  ),
  truncate: whole(
    0,
    BYTES_MAX,
    'send only this many bytes of the body, with a matching Content-Length. Waits for a longer body',
  ),
  reset: toggle('reset the connection instead of answering, or at the place where the body is cut'),
  empty_page: toggle(
    'answer with a page without rows and has_more true, whose cursor continues where the request did. Waits for a request with a cursor',
  ),
  duplicate: toggle(
    'answer a request for changes with the rows of the previous page again. Waits for such a request',
  ),
  page_rows: whole(1, 1000, 'end a page after this many rows, with has_more true. Waits for a longer page'),
  pages: whole(
    1,
    1000,
    'with duplicate: how many pages with rows to go back, for that page alone (default: 1)',
  ),
  times: whole(1, 1_000_000, 'how many requests it applies to (default: 1)'),
  after: whole(0, 1_000_000, 'how many requests to let pass first'),
};
const faultId = texts('id', (text) => /^f\d{1,9}$/.test(text), 'the id of a fault, such as f1');

/** Its examples are without `lab`. */
type LabDescription = Omit<Description<Members, unknown>, 'members' | 'job' | 'run' | 'text'> & {
  readonly members: Members;
};

/** By their names in a lab. */
const DESCRIPTIONS = {
  clock: {
    summary: 'show or move the clock. Everything that is due by then happens at once',
    members: {
      when: when('how far, such as +26h, or where to, such as 2026-03-29T00:00Z (default: show the clock)'),
      advance: shift('how far; a minus sign moves it back'),
      to: time('where to'),
    },
    operands: ['when'],
    examples: ['clock', 'clock +26h', 'clock 59m58s', 'clock 2026-03-29T00:00Z'],
    form: {
      label: 'Move the clock',
      will: 'Everything that is due by then happens at once.',
      fields: ['advance', 'to'],
    },
  },
  drop: {
    summary: 'drop export files with new detections, and wait until they are processed',
    members: { ...FEED, age: span('how long ago the window ended (default: 0, the window that ended last)') },
    examples: ['drop', 'drop --rows 3 --age 3d --subscription 7001'],
    form: { label: 'Drop detections', will: 'New detections reach the change stream, as from export files.' },
  },
  late: {
    summary: 'drop the file of the oldest missing window; without one, of a window that was skipped',
    members: { ...FEED, age: span('if no window is missing: how long ago the window ended (default: 2h)') },
    examples: ['late --rows 3'],
  },
  correct: {
    summary: 'rescore a detection: another score makes a new version, the same score none',
    members: {
      id: required(detectionId('id of the detection')),
      score: required(
        value(readScore, {
          hint: 'the score',
          placeholder: 'number',
          schema: Type.Number({ minimum: 0, maximum: 100 }),
        }),
      ),
    },
    examples: ['correct t.7001.123.456 --score 12'],
  },
  gap: {
    summary: 'make a window of an export missing, failed or abandoned',
    members: {
      export: required(EXPORT),
      status: required(
        choice(['missing', 'failed', 'abandoned'], {
          hint: 'the new state of the window',
          placeholder: 'name',
        }),
      ),
      window: window('start of the window (default: the newest possible one)'),
    },
    operands: ['export'],
    examples: ['gap newswire --status missing', 'gap imagewire --status failed'],
  },
  restore: {
    summary:
      'act as after a restore that lost the end of the log: versions rise by 1,000, positions continue a year ahead',
    members: {},
    examples: ['restore'],
  },
  allowance: {
    summary: 'set how much of the daily row allowance of an account is used',
    members: {
      account: anyText('id of the account (default: that of the sample agency)', 'id'),
      used: {
        ...whole(0, 1_000_000_000_000, 'rows used today (default: the whole allowance)', 'rows'),
        mayBeBare: true,
      },
    },
    examples: ['allowance --used', 'allowance --used 0'],
  },
  'fault add': {
    summary:
      'add a fault. A request meets one at most, the first that was added. X-Wirewatch-Lab in the answer names it',
    members: FAULT,
    examples: [
      'fault add --status 429 --retry-after 7 --endpoint listChanges --times 3',
      'fault add --cut-after 200',
      'fault add --duplicate --endpoint listChanges',
    ],
    form: {
      label: 'Add a fault',
      will: 'Requests of clients meet it, as often as it says.',
      fields: ['endpoint', 'status', 'code', 'retry_after', 'delay', 'cut_after', 'empty_page', 'times'],
    },
  },
  'fault list': {
    summary: 'list the faults, with how often each has fired',
    members: {},
    examples: ['fault list'],
  },
  'fault clear': {
    summary: 'remove a fault, or all of them; print what was removed',
    members: { id: faultId('id of the fault (default: all)') },
    examples: ['fault clear', 'fault clear f1'],
    form: { label: 'Remove', title: 'Remove fault', will: 'No request meets it any more.', fields: [] },
  },
  report: {
    summary: 'print what clients did, request by request, and which faults they met',
    members: {
      after: whole(0, Number.MAX_SAFE_INTEGER, 'only requests with greater numbers (default: 0)'),
      clear: toggle('then forget them'),
    },
    examples: ['report', 'report --after 120', 'report --clear'],
  },
} satisfies Readonly<Record<string, LabDescription>>;

export type LabName = keyof typeof DESCRIPTIONS;
export type MembersOf<Name extends LabName> = (typeof DESCRIPTIONS)[Name]['members'];
export type LabValues = { readonly [Name in LabName]: ValuesOf<MembersOf<Name>> };
export type FaultSpec = LabValues['fault add'];

export const isLabName = (name: string): name is LabName => Object.hasOwn(DESCRIPTIONS, name);

export const membersOf = <Name extends LabName>(name: Name): MembersOf<Name> => DESCRIPTIONS[name].members;

/** They wait until files are read. */
const READING: readonly string[] = ['drop', 'late', 'correct'] satisfies LabName[];

export const LAB = Object.entries<LabDescription>(DESCRIPTIONS).map(([name, description]) =>
  (name === 'fault list' ? reading : act)<Members, unknown>(`lab ${name}`, {
    ...description,
    examples: description.examples.map((line) => `lab ${line}`),
    async run({ running, access }, values) {
      if (READING.includes(name) && readPause(access()) !== null)
        throw failed('ingest is paused, and would not read the file. To resume it: wirewatch ingest resume');
      return { value: await running?.lab(name, values) };
    },
    text: (value) => JSON.stringify(value, null, 2),
  }),
);
