/**
 * How a client did in the lab's exam: a pure function over the report and what the exam itself did.
 *
 * The rules are those that a client keeps (contract: Client procedures, Retry; manual: client-guide). Nothing here
 * depends on how fast the machine is: waits are measured from the arrival of one request to that of the next, so what
 * a slow machine adds only makes them longer.
 */
import { SECOND_MS } from '../time.ts';
import type { RequestRecord } from './report.ts';

export const RULES = {
  finishes: [
    'reads on until it has caught up',
    'GET /v1/detections/changes, rule 4; client-guide: Follow the stream',
  ],
  retries: ['survives errors that pass', 'Retry: 429, 500 and 503; client-guide: Handle errors'],
  waits_as_told: ['waits as long as Retry-After says', 'Retry: Retry-After; client-guide: Handle errors'],
  doubles_waits: ['waits twice as long each time', 'Retry: the wait doubles; client-guide: Handle errors'],
  keeps_cursor: [
    'goes on with the cursor of the last complete page, over restarts',
    'GET /v1/detections/changes, rule 2; client-guide: What to store',
  ],
  follows_has_more: [
    'calls again at once while has_more is true',
    'GET /v1/detections/changes, rule 4; client-guide: Follow the stream',
  ],
  rows_with_cursor: [
    'stores rows and cursor together',
    'What the service does: rows and cursor in one transaction; client-guide: What to store',
  ],
  keeps_versions: [
    'takes no lower version',
    'What the service does: keeps the higher version; client-guide: What to store',
  ],
  handles_401: [
    'does not repeat a call after 401',
    'Retry: never 401 unchanged; client-guide: Handle errors',
  ],
  notices_gaps: [
    'asks for the gaps of the exports',
    'GET /v1/me, data_gaps; client-guide: Follow the stream',
  ],
  right_copy: [
    'ends with the right copy',
    'Client procedures: incremental loading; client-guide: Test your client',
  ],
} as const satisfies Record<string, readonly [rule: string, documentation: string]>;

export type RuleName = keyof typeof RULES;

export interface Finding {
  readonly rule: RuleName;
  /** What a client is to do, and where the documentation says so. */
  readonly means: string;
  readonly documentation: string;
  /** `advice`: it may be done otherwise; the exam cannot see it. */
  readonly outcome: 'passed' | 'failed' | 'not_tested' | 'advice';
  /** What was seen, or why nothing could be; empty where it passed. */
  readonly detail: string;
  /** Numbers of the requests in the report. */
  readonly requests: readonly number[];
}

/** The client was killed, or ended by itself, behind the request with this number; it was then started again. */
export interface Moment {
  readonly kind: 'killed' | 'ended';
  readonly after: number;
  /** Exit code of one that ended by itself; null: unknown. */
  readonly code: number | null;
}

export interface Evidence {
  /** The client's own requests to the API, in the order of arrival. */
  readonly requests: readonly RequestRecord[];
  readonly moments: readonly Moment[];
  /** Ids of the faults whose answers are incomplete, though the report may say that they were sent. */
  readonly damaging: ReadonlySet<string>;
  /** Number of the last request before the 401s that the exam gave; null: not reached. */
  readonly unauthorizedAfter: number | null;
  /** Likewise, before the gap. */
  readonly gapAfter: number | null;
  /** What it did not finish within the patience of the exam; null: everything was played. */
  readonly unfinished: string | null;
  /** Whether a client can be restarted. */
  readonly isRestarted: boolean;
  /** Version by id at the end, in the copy and as it should be; null: it cannot be asked for. */
  readonly copy: { readonly versions: Versions; readonly expected: Versions } | null;
  /** Detections that came right before a kill. */
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

interface Seen {
  readonly detail: string;
  readonly requests: readonly number[];
}

/** A wait within a Retry-After may be that much shorter: clocks and timers are of whole milliseconds. */
const ROUNDING_MS = 50;
/** The last of three waits is four times the first; half of that is left to chance, as clients are advised to do. */
const GROWTH_MIN = 1.5;
/** The first wait is a second; less than this is none. */
const FIRST_WAIT_MS_MIN = SECOND_MS / 5;
const AT_ONCE_MS = 30 * SECOND_MS;
const SHOWN_MAX = 5;

/** @returns one finding a rule, in the order of {@link RULES} */
export function gradeClient(evidence: Evidence): Finding[] {
  const copy =
    evidence.copy === null ? 'no copy to look at: name a command that prints it with --copy' : null;
  const restart = evidence.isRestarted
    ? null
    : 'the client was not restarted: name its command with --client';
  const { unfinished } = evidence;
  const checks: Readonly<Record<RuleName, () => Seen[] | string>> = {
    finishes: () => (unfinished === null ? [] : [{ detail: unfinished, requests: [] }]),
    retries: () => exits(evidence),
    waits_as_told: () => shortWaits(evidence),
    doubles_waits: () => steadyWaits(evidence),
    keeps_cursor: () => wrongCursors(evidence),
    follows_has_more: () => unfollowed(evidence),
    rows_with_cursor: () => restart ?? copy ?? lostAtKills(evidence),
    keeps_versions: () => copy ?? lowerTaken(evidence),
    handles_401: () => repeated401(evidence),
    notices_gaps: () => (evidence.gapAfter === null ? NOT_REACHED : []),
    right_copy: () => copy ?? wrongCopy(evidence),
  };
  return (Object.keys(RULES) as RuleName[]).map((rule) => {
    const [means, documentation] = RULES[rule];
    const seen = checks[rule]();
    const head = { rule, means, documentation };
    if (typeof seen === 'string') return { ...head, outcome: 'not_tested', detail: seen, requests: [] };
    if (seen.length === 0) return { ...head, ...passedOrAdvice(rule, evidence), requests: [] };
    const details = seen.slice(0, SHOWN_MAX).map(({ detail }) => detail);
    if (seen.length > SHOWN_MAX) details.push(`${seen.length - SHOWN_MAX} more`);
    const requests = [...new Set(seen.flatMap((one) => one.requests))];
    return { ...head, outcome: 'failed', detail: details.join('; '), requests };
  });
}

const NOT_REACHED = 'the exam ended before';

function passedOrAdvice(rule: RuleName, { requests, gapAfter, isRestarted }: Evidence) {
  // Advice only: a late file comes on the stream, so the copy of a client that never asks for gaps is right, too.
  const asked = requests.some(({ number, endpoint }) => endpoint === 'getMe' && number > (gapAfter ?? 0));
  if (rule === 'notices_gaps' && !asked)
    return {
      outcome: 'advice',
      detail: 'it did not ask GET /v1/me after a gap: it cannot tell a quiet day from a missing file',
    } as const;
  if (rule === 'keeps_cursor' && !isRestarted)
    return {
      outcome: 'passed',
      detail: 'without a restart: name the command of the client with --client',
    } as const;
  return { outcome: 'passed', detail: '' } as const;
}

function exits({ moments, unauthorizedAfter }: Evidence): Seen[] {
  return moments
    .filter(
      ({ kind, code, after }) => kind === 'ended' && code !== 0 && (unauthorizedAfter ?? Infinity) >= after,
    )
    .map(({ code, after }) => ({
      detail: `it ended with exit code ${code} after request ${after}`,
      requests: [after],
    }));
}

function shortWaits({ requests, moments }: Evidence): Seen[] {
  return pairs(requests).flatMap(([one, next]) => {
    if (one.status !== 429 && one.status !== 503) return [];
    if (one.retry_after === null || wasInterrupted(moments, one, next)) return [];
    const waitMs = waited(one, next);
    if (waitMs >= one.retry_after * SECOND_MS - ROUNDING_MS) return [];
    const detail = `request ${next.number} came ${seconds(waitMs)} after a ${one.status} with Retry-After ${one.retry_after}`;
    return [{ detail, requests: [one.number, next.number] }];
  });
}

/** Runs of failures without a Retry-After: the waits between them grow, and none is missing. */
function steadyWaits({ requests, moments }: Evidence): Seen[] {
  const found: Seen[] = [];
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

function wrongCursors(evidence: Evidence): Seen[] {
  return chains(evidence).flatMap(([one, next]) => {
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
        ? `began anew with since${when}`
        : !isGood && start === one.cursor_given
          ? `took the cursor of request ${one.number}, whose answer was incomplete`
          : `did not go on where request ${one.number} had ended${when}`;
    return [{ detail: `request ${next.number} ${what}`, requests: [one.number, next.number] }];
  });
}

function unfollowed(evidence: Evidence): Seen[] {
  const { moments, requests } = evidence;
  const found = chains(evidence).flatMap(([one, next]) => {
    if (one.has_more !== true || !isGoodPage(one, evidence)) return [];
    const between = moments.filter(({ after }) => after >= one.number && after < next.number);
    if (between.some(({ kind }) => kind === 'killed')) return [];
    const hasEnded = between.some(({ kind }) => kind === 'ended');
    if (!hasEnded && waited(one, next) < AT_ONCE_MS) return [];
    const what = hasEnded ? 'ended' : `waited ${seconds(waited(one, next))}`;
    return [
      { detail: `it ${what} after request ${one.number}, though has_more was true`, requests: [one.number] },
    ];
  });
  const last = requests.findLast(({ endpoint }) => endpoint === 'listChanges');
  const isLeft = last?.has_more === true && isGoodPage(last, evidence) && moments.at(-1)?.kind === 'ended';
  return isLeft
    ? [
        ...found,
        {
          detail: `it ended after request ${last.number}, though has_more was true`,
          requests: [last.number],
        },
      ]
    : found;
}

function lostAtKills({ copy, atKills }: Evidence): Seen[] {
  const lost = [...atKills].filter((id) => copy?.expected.has(id) === true && !copy.versions.has(id));
  return lost.map((id) => ({
    detail: `${id} was delivered before a kill and is not in the copy`,
    requests: [],
  }));
}

function lowerTaken({ lower }: Evidence): Seen[] | string {
  if (lower === null) return 'no lower version could be delivered before the exam ended';
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

/** One more call is right with a new token, once. */
function repeated401({ requests, moments, unauthorizedAfter }: Evidence): Seen[] | string {
  if (unauthorizedAfter === null) return NOT_REACHED;
  const found: Seen[] = [];
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

function wrongCopy({ copy, atKills }: Evidence): Seen[] | string {
  if (copy === null) return NOT_REACHED;
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

/** What a request for changes asks for besides its place in the stream; equal texts for equal filters. */
export function filtersOf({ parameters }: RequestRecord): string {
  const filters = Object.entries(parameters).filter(([name]) => !['cursor', 'since', 'limit'].includes(name));
  return JSON.stringify(filters.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function pairs<Value>(values: readonly Value[]): (readonly [Value, Value])[] {
  return values.slice(1).map((next, index) => [values[index] as Value, next] as const);
}

/** Any since is the same start: a client may take it from its clock each time. */
function startOf({ parameters }: RequestRecord): string {
  return parameters.cursor ?? 'since';
}

export function isGoodPage(request: RequestRecord, { damaging }: Pick<Evidence, 'damaging'>): boolean {
  const { status, complete, fault, cursor_given } = request;
  return (
    status === 200 && complete === true && cursor_given !== null && !(fault !== null && damaging.has(fault))
  );
}

/** Whether it was killed between two of its requests, or started anew after it had ended. @param by only so */
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
