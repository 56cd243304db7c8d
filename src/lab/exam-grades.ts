/**
 * Grades a client after the lab's exam: a pure function over the report and the record of the exam itself.
 *
 * The rules are those of the contract (Client procedures, Retry) and of the manual's client-guide. No grade depends on
 * the speed of the machine: a wait is measured from one request's arrival to the next, which a slow machine only
 * lengthens.
 */
import { SECOND_MS } from '../time.ts';
import type { RequestRecord } from './report.ts';

/** A rule for clients: what it asks, where the documentation says so, and how it is checked. */
type Rule = readonly [means: string, documentation: string, check: (evidence: Evidence) => Result];

/** Violations, none if the rule is kept; or an outcome with its reason. */
type Result =
  | readonly Violation[]
  | { readonly outcome: Exclude<Finding['outcome'], 'failed'>; readonly detail: string };

export const RULES = {
  finishes: [
    'reads on until it has caught up',
    'GET /v1/detections/changes, rule 4; client-guide: Follow the stream',
    ({ unfinished }) => (unfinished === null ? [] : [{ detail: unfinished, requests: [] }]),
  ],
  retries: ['survives errors that pass', 'Retry: 429, 500 and 503; client-guide: Handle errors', failedExits],
  waits_as_told: [
    'waits as long as Retry-After says',
    'Retry: Retry-After; client-guide: Handle errors',
    shortWaits,
  ],
  doubles_waits: [
    'waits twice as long each time',
    'Retry: the wait doubles; client-guide: Handle errors',
    steadyWaits,
  ],
  keeps_cursor: [
    'continues with the cursor of the last complete page, also after a restart',
    'GET /v1/detections/changes, rule 2; client-guide: What to store',
    wrongCursors,
  ],
  follows_has_more: [
    'calls again at once while has_more is true',
    'GET /v1/detections/changes, rule 4; client-guide: Follow the stream',
    unfollowed,
  ],
  rows_with_cursor: [
    'stores rows and cursor together',
    'What the service does: rows and cursor in one transaction; client-guide: What to store',
    lostAtKills,
  ],
  keeps_versions: [
    'takes no lower version',
    'What the service does: keeps the higher version; client-guide: What to store',
    lowerTaken,
  ],
  handles_401: [
    'does not repeat a call after 401',
    'Retry: never 401 unchanged; client-guide: Handle errors',
    repeated401,
  ],
  notices_gaps: [
    'asks for the gaps of the exports',
    'GET /v1/me, data_gaps; client-guide: Follow the stream',
    gapsAsked,
  ],
  right_copy: [
    'ends with the right copy',
    'Client procedures: incremental loading; client-guide: Test your client',
    wrongCopy,
  ],
} as const satisfies Record<string, Rule>;

export type RuleName = keyof typeof RULES;

export interface Finding {
  readonly rule: RuleName;
  readonly means: string;
  readonly documentation: string;
  /** `advice`: the exam cannot tell whether the client does this otherwise. */
  readonly outcome: 'passed' | 'failed' | 'not_tested' | 'advice';
  /** What the exam observed, or why it could not; empty if the client passed. */
  readonly detail: string;
  /** Numbers of the requests in the report. */
  readonly requests: readonly number[];
}

/** The client was killed, or ended by itself, after the request with this number. It was then started again. */
export interface Moment {
  readonly kind: 'killed' | 'ended';
  readonly after: number;
  /** Exit code of a client that ended by itself; null: unknown. */
  readonly code: number | null;
}

export interface Evidence {
  /** The client's own requests to the API, in the order of arrival. */
  readonly requests: readonly RequestRecord[];
  readonly moments: readonly Moment[];
  /** Ids of the faults that make an answer incomplete, even if the report says that it was sent. */
  readonly damaging: ReadonlySet<string>;
  /** Number of the last request before the exam answered with 401; null: not reached. */
  readonly unauthorizedAfter: number | null;
  /** Number of the last request before the gap; null: not reached. */
  readonly gapAfter: number | null;
  /** What the client did not finish in time; null: it finished everything. */
  readonly unfinished: string | null;
  readonly isRestarted: boolean;
  /** Version by id at the end, in the copy and in the service; null: the exam cannot read the copy. */
  readonly copy: { readonly versions: Versions; readonly expected: Versions } | null;
  /** Detections that were delivered right before a kill. */
  readonly atKills: ReadonlySet<string>;
  /** The copy's version of a detection after a lower one was delivered; null: not tried. */
  readonly lower: Lower | null;
}

export type Versions = ReadonlyMap<string, number>;

export interface Lower {
  readonly id: string;
  readonly delivered: number;
  readonly stored: number;
  /** Null: the copy does not have it. */
  readonly copied: number | null;
}

interface Violation {
  readonly detail: string;
  readonly requests: readonly number[];
}

/** A wait may be this much shorter than Retry-After: clocks and timers count whole milliseconds. */
const ROUNDING_MS = 50;
/** The last of three waits is four times the first, minus the random part that the client-guide recommends. */
const GROWTH_MIN = 1.5;
/** The first wait is a second, with its random part; a client that waits less than this does not wait. */
const FIRST_WAIT_MS_MIN = SECOND_MS / 5;
const AT_ONCE_MS = 30 * SECOND_MS;
const SHOWN_MAX = 5;

/** @returns one finding for each rule, in the order of {@link RULES} */
export function gradeClient(evidence: Evidence): Finding[] {
  return (Object.keys(RULES) as RuleName[]).map((rule) => {
    const [means, documentation, check]: Rule = RULES[rule];
    const result = check(evidence);
    const head = { rule, means, documentation };
    if ('outcome' in result) return { ...head, ...result, requests: [] };
    if (result.length === 0) return { ...head, outcome: 'passed', detail: '', requests: [] };
    const details = result.slice(0, SHOWN_MAX).map(({ detail }) => detail);
    if (result.length > SHOWN_MAX) details.push(`${result.length - SHOWN_MAX} more`);
    const requests = [...new Set(result.flatMap((one) => one.requests))];
    return { ...head, outcome: 'failed', detail: details.join('; '), requests };
  });
}

function notTested(detail: string) {
  return { outcome: 'not_tested', detail } as const;
}

const NOT_REACHED = notTested('the exam ended before');
const NO_COPY = notTested('the exam cannot read the copy: name a command that prints it with --copy');
const NO_RESTART = notTested('the client was not restarted: name its command with --client');

function failedExits({ moments, unauthorizedAfter }: Evidence): Violation[] {
  return moments
    .filter(
      ({ kind, code, after }) => kind === 'ended' && code !== 0 && (unauthorizedAfter ?? Infinity) >= after,
    )
    .map(({ code, after }) => ({
      detail: `it ended with exit code ${code} after request ${after}`,
      requests: [after],
    }));
}

/** Advice at most: the rows of a late file come on the stream, so the copy is right even if the client never asks. */
function gapsAsked({ requests, gapAfter }: Evidence): Result {
  if (gapAfter === null) return NOT_REACHED;
  if (requests.some(({ number, endpoint }) => endpoint === 'getMe' && number > gapAfter)) return [];
  const detail = 'it did not ask GET /v1/me after a gap: it cannot tell a quiet day from a missing file';
  return { outcome: 'advice', detail };
}

function shortWaits({ requests, moments }: Evidence): Violation[] {
  return pairs(requests).flatMap(([one, next]) => {
    if (one.status !== 429 && one.status !== 503) return [];
    if (one.retry_after === null || wasInterrupted(moments, one, next)) return [];
    const waitMs = waited(one, next);
    if (waitMs >= one.retry_after * SECOND_MS - ROUNDING_MS) return [];
    const detail = `request ${next.number} came ${seconds(waitMs)} after a ${one.status} with Retry-After ${one.retry_after}`;
    return [{ detail, requests: [one.number, next.number] }];
  });
}

/** Errors in a row without a Retry-After: the first wait is too short, or the waits do not grow. */
function steadyWaits({ requests, moments }: Evidence): Violation[] {
  const found: Violation[] = [];
  let waits: { number: number; ms: number }[] = [];
  const check = () => {
    const [first] = waits;
    const last = waits.at(-1);
    const isTooFast = first !== undefined && first.ms < FIRST_WAIT_MS_MIN;
    const isSteady = waits.length > 2 && (last?.ms ?? 0) < GROWTH_MIN * (first?.ms ?? 0);
    if (isTooFast || isSteady)
      found.push({
        detail: `after errors in a row it waited ${waits.map(({ ms }) => seconds(ms)).join(', ')}`,
        requests: waits.map(({ number }) => number),
      });
    waits = [];
  };
  for (const [one, next] of pairs(requests)) {
    const isFailure = one.status !== null && one.status >= 500 && one.retry_after === null;
    if (isFailure && !wasInterrupted(moments, one, next))
      waits.push({ number: next.number, ms: waited(one, next) });
    else check();
  }
  check();
  return found;
}

function wrongCursors(evidence: Evidence): Result {
  const found = chains(evidence).flatMap(([one, next]) => {
    const own = startOf(one);
    const start = startOf(next);
    const isGood = isGoodPage(one, evidence);
    const isRestart = wasInterrupted(evidence.moments, one, next);
    const wasKilled = wasInterrupted(evidence.moments, one, next, 'killed');
    const mayRepeat = !isGood || wasKilled || (one.rows === 0 && one.has_more === false);
    const mayGoOn = one.cursor_given !== null && (isGood || wasKilled);
    if (mayGoOn && start === one.cursor_given) return [];
    if (mayRepeat && start === own) return [];
    const when = isRestart ? ' after a restart' : '';
    const what =
      next.parameters.cursor === undefined
        ? `started again with since${when}`
        : !isGood && start === one.cursor_given
          ? `took the cursor of request ${one.number}, whose answer was incomplete`
          : `did not go on where request ${one.number} had ended${when}`;
    return [{ detail: `request ${next.number} ${what}`, requests: [one.number, next.number] }];
  });
  if (evidence.isRestarted || found.length > 0) return found;
  return { outcome: 'passed', detail: 'without a restart: name the command of the client with --client' };
}

function unfollowed(evidence: Evidence): Violation[] {
  const { moments, requests } = evidence;
  const found = chains(evidence).flatMap(([one, next]) => {
    if (one.has_more !== true || !isGoodPage(one, evidence)) return [];
    if (wasInterrupted(moments, one, next, 'killed')) return [];
    if (wasInterrupted(moments, one, next)) return [endedEarly(one)];
    if (waited(one, next) < AT_ONCE_MS) return [];
    const detail = `it waited ${seconds(waited(one, next))} after request ${one.number}, though has_more was true`;
    return [{ detail, requests: [one.number] }];
  });
  const last = requests.findLast(({ endpoint }) => endpoint === 'listChanges');
  if (last?.has_more === true && isGoodPage(last, evidence) && moments.at(-1)?.kind === 'ended')
    found.push(endedEarly(last));
  return found;
}

function endedEarly({ number }: RequestRecord): Violation {
  return { detail: `it ended after request ${number}, though has_more was true`, requests: [number] };
}

function lostAtKills({ copy, atKills, isRestarted }: Evidence): Result {
  if (!isRestarted) return NO_RESTART;
  if (copy === null) return NO_COPY;
  const lost = [...atKills].filter((id) => copy.expected.has(id) && !copy.versions.has(id));
  return lost.map((id) => ({
    detail: `${id} was delivered before a kill and is not in the copy`,
    requests: [],
  }));
}

function lowerTaken({ lower, copy }: Evidence): Result {
  if (copy === null) return NO_COPY;
  if (lower === null) return notTested('no lower version could be delivered before the exam ended');
  const { id, copied, stored, delivered } = lower;
  if (copied !== null && copied >= stored) return [];
  const has = copied === null ? 'does not have it' : `has version ${copied}`;
  return [
    {
      detail: `${id}: version ${stored} came first, then ${delivered} again, and the copy ${has}`,
      requests: [],
    },
  ];
}

/** A client may repeat the call once, with a new token. */
function repeated401({ requests, moments, unauthorizedAfter }: Evidence): Result {
  if (unauthorizedAfter === null) return NOT_REACHED;
  const found: Violation[] = [];
  let refused: RequestRecord | null = null;
  let mayRepeat = false;
  let refusals = 0;
  for (const request of requests) {
    if (refused !== null && wasInterrupted(moments, refused, request)) refused = null;
    if (refused !== null && request.endpoint === 'createToken') {
      mayRepeat = refusals === 1 && request.status === 200;
      continue;
    }
    if (refused !== null && !mayRepeat)
      found.push({
        detail: `request ${request.number} repeats what request ${refused.number} was refused with 401`,
        requests: [refused.number, request.number],
      });
    refusals = request.status === 401 ? (refused === null ? 1 : refusals + 1) : 0;
    refused = request.status === 401 && request.endpoint !== 'createToken' ? request : null;
    mayRepeat = false;
  }
  return found;
}

function wrongCopy({ copy, atKills }: Evidence): Result {
  if (copy === null) return NO_COPY;
  return [...copy.expected].flatMap(([id, version]) => {
    const copied = copy.versions.get(id);
    if (copied === version || (copied === undefined && atKills.has(id))) return [];
    const has = copied === undefined ? 'is missing' : `has version ${copied}`;
    return [{ detail: `${id} ${has}, expected version ${version}`, requests: [] }];
  });
}

/** Requests for changes, each with the next one of the same filters. */
function chains({ requests }: Evidence): (readonly [RequestRecord, RequestRecord])[] {
  const changes = requests.filter(({ endpoint, method }) => endpoint === 'listChanges' && method === 'GET');
  return [...Map.groupBy(changes, filtersOf).values()].flatMap((group) => pairs(group));
}

/** The filters of a request for changes as text: equal filters give equal texts. */
export function filtersOf({ parameters }: RequestRecord): string {
  const filters = Object.entries(parameters).filter(([name]) => !['cursor', 'since', 'limit'].includes(name));
  return JSON.stringify(filters.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function pairs<Value>(values: readonly Value[]): (readonly [Value, Value])[] {
  return values.slice(1).map((next, index) => [values[index] as Value, next] as const);
}

/** Every `since` counts as the same start: a client may calculate it from its clock each time. */
function startOf({ parameters }: RequestRecord): string {
  return parameters.cursor ?? 'since';
}

export function isGoodPage(request: RequestRecord, { damaging }: Pick<Evidence, 'damaging'>): boolean {
  const { status, complete, fault, cursor_given } = request;
  return (
    status === 200 && complete === true && cursor_given !== null && !(fault !== null && damaging.has(fault))
  );
}

/** Whether the client was killed, or ended by itself, between two of its requests. @param by only in this way */
function wasInterrupted(
  moments: readonly Moment[],
  one: RequestRecord,
  next: RequestRecord,
  by?: Moment['kind'],
): boolean {
  return moments.some(
    ({ kind, after }) => kind === (by ?? kind) && after >= one.number && after < next.number,
  );
}

function waited(one: RequestRecord, next: RequestRecord): number {
  return Date.parse(next.real_at) - Date.parse(one.real_at);
}

function seconds(ms: number): string {
  return `${(ms / SECOND_MS).toFixed(1)} s`;
}
