/**
 * Grades a client after the lab's exam: a pure function over the report and the record of the exam itself.
 *
 * The rules are those of the manual's client guide. No grade depends on the speed of the machine: a wait is measured
 * from one request's arrival to the next, which a slow machine only lengthens.
 */
import { SECOND_MS } from '../../time.ts';
import type { RequestRecord } from './report.ts';

/** A rule for clients: what it asks, the sections of the manual that say so, and how it is checked. */
type Rule = readonly [means: string, documentation: string, check: (evidence: Evidence) => Result];

/** Violations, none if the rule is kept; or an outcome with its reason. */
type Result =
  | readonly Violation[]
  | { readonly outcome: Exclude<Finding['outcome'], 'failed'>; readonly detail: string };

export const RULES = {
  finishes: [
    'reads on until it has caught up',
    'change-stream: Reading it; client-guide: Follow the stream',
    ({ unfinished }) => (unfinished === null ? [] : [violation(unfinished)]),
  ],
  retries: ['survives errors that pass', 'client-guide: Handle errors', failedExits],
  waits_as_told: ['waits as long as Retry-After says', 'client-guide: Handle errors', shortWaits],
  doubles_waits: ['waits twice as long each time', 'client-guide: Handle errors', steadyWaits],
  keeps_cursor: [
    'continues with the cursor of the last complete page, also after a restart',
    'change-stream: Reading it; client-guide: What to store',
    wrongCursors,
  ],
  follows_has_more: [
    'calls again at once while has_more is true',
    'change-stream: Reading it; client-guide: Follow the stream',
    unfollowed,
  ],
  rows_with_cursor: [
    'stores rows and cursor together',
    'change-stream: Reading it; client-guide: What to store',
    lostAtKills,
  ],
  keeps_versions: [
    'takes no lower version',
    'change-stream: Reading it; client-guide: What to store',
    lowerTaken,
  ],
  handles_401: ['does not repeat a call after 401', 'client-guide: Handle errors', repeated401],
  notices_gaps: [
    'asks for the gaps of the exports',
    'change-stream: Related endpoints; client-guide: Follow the stream',
    gapsAsked,
  ],
  right_copy: [
    'ends with the right copy',
    'client-guide: Follow the stream; client-guide: Test your client',
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

/** What the exam observes. */
export class Evidence {
  /** The client's own requests to the API, in the order of arrival. */
  requests: readonly RequestRecord[] = [];
  moments: readonly Moment[] = [];
  /** Ids of the faults that make an answer incomplete, even if the report says that it was sent. */
  damaging: ReadonlySet<string> = new Set();
  /** Number of the last request before the exam answered with 401; null: not reached. */
  unauthorizedAfter: number | null = null;
  /** Number of the last request before the gap; null: not reached. */
  gapAfter: number | null = null;
  /** What the client did not finish in time; null: it finished everything. */
  unfinished: string | null = null;
  isRestarted = false;
  /** Whether a command prints the copy. */
  hasCopy = false;
  /** Version by id at the end, in the copy and in the service; null: not read. */
  copy: { readonly versions: Versions; readonly expected: Versions } | null = null;
  /** Detections that were delivered right before a kill. */
  atKills: ReadonlySet<string> = new Set();
  /** The copy's version of a detection after a lower one was delivered; null: not tried. */
  lower: Lower | null = null;
}

export type Versions = ReadonlyMap<string, number>;

interface Lower {
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

/** Two requests in a row. */
interface Pair {
  readonly one: RequestRecord;
  readonly next: RequestRecord;
  /** From the arrival of one to that of the next. */
  readonly ms: number;
  /** In between the client was killed, or ended by itself. */
  readonly isKilled: boolean;
  readonly isRestarted: boolean;
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
    const details = result.slice(0, SHOWN_MAX).map(({ detail }) => detail);
    if (result.length > SHOWN_MAX) details.push(`${result.length - SHOWN_MAX} more`);
    const requests = [...new Set(result.flatMap((one) => one.requests))];
    const outcome = result.length === 0 ? 'passed' : 'failed';
    return { ...head, outcome, detail: details.join('; '), requests };
  });
}

function notTested(detail: string) {
  return { outcome: 'not_tested', detail } as const;
}

function violation(detail: string, ...requests: number[]): Violation {
  return { detail, requests };
}

const NOT_REACHED = notTested('the exam ended before');
const NO_RESTART = notTested('the client was not restarted: name its command with --client');

function noCopy({ hasCopy }: Evidence): Result {
  return hasCopy
    ? NOT_REACHED
    : notTested('the exam cannot read the copy: name a command that prints it with --copy');
}

function failedExits({ moments, unauthorizedAfter }: Evidence): Violation[] {
  return moments
    .filter(({ kind, code }) => kind === 'ended' && code !== 0)
    .filter(({ after }) => (unauthorizedAfter ?? Infinity) >= after)
    .map(({ code, after }) => violation(`it ended with exit code ${code} after request ${after}`, after));
}

/** Advice at most: the rows of a late file come on the stream, so the copy is right even if the client never asks. */
function gapsAsked({ requests, gapAfter }: Evidence): Result {
  if (gapAfter === null) return NOT_REACHED;
  if (requests.some(({ number, endpoint }) => endpoint === 'getMe' && number > gapAfter)) return [];
  const detail = 'it did not ask GET /v1/me after a gap: it cannot tell a quiet day from a missing file';
  return { outcome: 'advice', detail };
}

function shortWaits(evidence: Evidence): Violation[] {
  return pairs(evidence.requests, evidence).flatMap(({ one, next, ms, isRestarted }) => {
    const { status, retry_after, number } = one;
    if ((status !== 429 && status !== 503) || retry_after === null || isRestarted) return [];
    if (ms >= retry_after * SECOND_MS - ROUNDING_MS) return [];
    const what = `came ${seconds(ms)} after a ${status} with Retry-After ${retry_after}`;
    return violation(`request ${next.number} ${what}`, number, next.number);
  });
}

/** Errors in a row without a Retry-After: the first wait is too short, or the waits do not grow. */
function steadyWaits(evidence: Evidence): Violation[] {
  const rows: Pair[][] = [[]];
  for (const pair of pairs(evidence.requests, evidence)) {
    const { one, isRestarted } = pair;
    if ((one.status ?? 0) >= 500 && one.retry_after === null && !isRestarted) rows.at(-1)?.push(pair);
    else rows.push([]);
  }
  return rows.flatMap((row) => {
    const waits = row.map(({ ms }) => ms);
    const [first = Infinity] = waits;
    const isSteady = waits.length > 2 && (waits.at(-1) ?? 0) < GROWTH_MIN * first;
    if (first >= FIRST_WAIT_MS_MIN && !isSteady) return [];
    const detail = `after errors in a row it waited ${waits.map(seconds).join(', ')}`;
    return violation(detail, ...row.map(({ next }) => next.number));
  });
}

function wrongCursors(evidence: Evidence): Result {
  const found = chains(evidence).flatMap(({ one, next, isKilled, isRestarted }) => {
    const start = startOf(next);
    const isGood = isGoodPage(one, evidence);
    const mayRepeat = !isGood || isKilled || (one.rows === 0 && one.has_more === false);
    const goesOn = one.cursor_given !== null && start === one.cursor_given;
    if ((goesOn && (isGood || isKilled)) || (mayRepeat && start === startOf(one))) return [];
    const when = isRestarted ? ' after a restart' : '';
    const what =
      next.parameters.cursor === undefined
        ? `started again with since${when}`
        : !isGood && goesOn
          ? `took the cursor of request ${one.number}, whose answer was incomplete`
          : `did not go on where request ${one.number} had ended${when}`;
    return violation(`request ${next.number} ${what}`, one.number, next.number);
  });
  if (evidence.isRestarted || found.length > 0) return found;
  return { outcome: 'passed', detail: 'without a restart: name the command of the client with --client' };
}

function unfollowed(evidence: Evidence): Violation[] {
  const { moments, requests } = evidence;
  const isFollowed = (page: RequestRecord) => page.has_more !== true || !isGoodPage(page, evidence);
  const found = chains(evidence).flatMap(({ one, ms, isKilled, isRestarted }) => {
    if (isFollowed(one) || isKilled) return [];
    if (isRestarted) return endedEarly(one);
    if (ms < AT_ONCE_MS) return [];
    const detail = `it waited ${seconds(ms)} after request ${one.number}, though has_more was true`;
    return violation(detail, one.number);
  });
  const last = requests.findLast(({ endpoint }) => endpoint === 'listChanges');
  if (last !== undefined && !isFollowed(last) && moments.at(-1)?.kind === 'ended')
    found.push(endedEarly(last));
  return found;
}

function endedEarly({ number }: RequestRecord): Violation {
  return violation(`it ended after request ${number}, though has_more was true`, number);
}

function lostAtKills(evidence: Evidence): Result {
  const { copy, atKills, isRestarted } = evidence;
  if (!isRestarted) return NO_RESTART;
  if (copy === null) return noCopy(evidence);
  const lost = [...atKills].filter((id) => copy.expected.has(id) && !copy.versions.has(id));
  return lost.map((id) => violation(`${id} was delivered before a kill and is not in the copy`));
}

function lowerTaken(evidence: Evidence): Result {
  const { lower, copy } = evidence;
  if (copy === null) return noCopy(evidence);
  if (lower === null) return notTested('no lower version could be delivered before the exam ended');
  const { id, copied, stored, delivered } = lower;
  if (copied !== null && copied >= stored) return [];
  const has = copied === null ? 'does not have it' : `has version ${copied}`;
  const came = `version ${stored} came first, then ${delivered} again`;
  return [violation(`${id}: ${came}, and the copy ${has}`)];
}

/** A client may repeat the call once, with a new token. */
function repeated401({ requests, moments, unauthorizedAfter }: Evidence): Result {
  if (unauthorizedAfter === null) return NOT_REACHED;
  const found: Violation[] = [];
  let refused: RequestRecord | null = null;
  let mayRepeat = false;
  let refusals = 0;
  for (const request of requests) {
    const { number, endpoint, status } = request;
    if (refused !== null && wasInterrupted(moments, refused, request)) refused = null;
    if (refused !== null && endpoint === 'createToken') {
      mayRepeat = refusals === 1 && status === 200;
      continue;
    }
    if (refused !== null && !mayRepeat) {
      const what = `repeats what request ${refused.number} was refused with 401`;
      found.push(violation(`request ${number} ${what}`, refused.number, number));
    }
    refusals = status === 401 ? (refused === null ? 1 : refusals + 1) : 0;
    refused = status === 401 && endpoint !== 'createToken' ? request : null;
    mayRepeat = false;
  }
  return found;
}

function wrongCopy(evidence: Evidence): Result {
  const { copy, atKills } = evidence;
  if (copy === null) return noCopy(evidence);
  return [...copy.expected].flatMap(([id, version]) => {
    const copied = copy.versions.get(id);
    if (copied === version || (copied === undefined && atKills.has(id))) return [];
    const has = copied === undefined ? 'is missing' : `has version ${copied}`;
    return violation(`${id} ${has}, expected version ${version}`);
  });
}

/** Requests for changes, each with the next one of the same filters. */
function chains(evidence: Evidence): Pair[] {
  const changes = evidence.requests.filter(
    ({ endpoint, method }) => endpoint === 'listChanges' && method === 'GET',
  );
  return [...Map.groupBy(changes, filtersOf).values()].flatMap((group) => pairs(group, evidence));
}

/** The filters of a request for changes as text: equal filters give equal texts. */
export function filtersOf({ parameters }: RequestRecord): string {
  const filters = Object.entries(parameters).filter(([name]) => !['cursor', 'since', 'limit'].includes(name));
  return JSON.stringify(filters.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function pairs(requests: readonly RequestRecord[], { moments }: Evidence): Pair[] {
  const kills = moments.filter(({ kind }) => kind === 'killed');
  return requests.slice(1).map((next, index) => {
    const one = requests[index] ?? next;
    const ms = Date.parse(next.real_at) - Date.parse(one.real_at);
    const isRestarted = wasInterrupted(moments, one, next);
    return { one, next, ms, isKilled: wasInterrupted(kills, one, next), isRestarted };
  });
}

/** Every `since` counts as the same start: a client may calculate it from its clock each time. */
function startOf({ parameters }: RequestRecord): string {
  return parameters.cursor ?? 'since';
}

export function isGoodPage(request: RequestRecord, { damaging }: Pick<Evidence, 'damaging'>): boolean {
  const { status, complete, fault, cursor_given } = request;
  const isDamaged = fault !== null && damaging.has(fault);
  return status === 200 && complete === true && cursor_given !== null && !isDamaged;
}

function wasInterrupted(moments: readonly Moment[], one: RequestRecord, next: RequestRecord): boolean {
  return moments.some(({ after }) => after >= one.number && after < next.number);
}

function seconds(ms: number): string {
  return `${(ms / SECOND_MS).toFixed(1)} s`;
}
