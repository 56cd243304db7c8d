/**
 * What the requests of a client say about the rules of the manual's client guide. No check depends on the speed of the
 * machine: a wait is measured from one request to the next, which a slow machine only lengthens, and a pause that is
 * too long is far longer than any machine needs.
 */
import { SECOND_MS } from '../../time.ts';
import { chains, type Evidence, filtersOf, isDamaged, isGoodPage, type Pair, pairs } from './evidence.ts';
import type { RequestRecord } from './report.ts';

export type Violation = Readonly<{ detail: string; requests: readonly number[] }>;

/** Violations, none if the rule is kept; or why there was no occasion to break it, or only advice. */
export type Result =
  | readonly Violation[]
  | { readonly outcome: 'passed' | 'not_tested' | 'advice'; readonly detail: string };

/** A rule for clients: what it asks, the sections of the manual that say so, and how it is checked. */
export type Rule = readonly [means: string, documentation: string, check: (evidence: Evidence) => Result];

export const STORE = 'client-guide: What to store';
export const FOLLOW = 'client-guide: Follow the stream';
const ERRORS = 'client-guide: Handle errors';

/** The rules that requests alone tell of. */
export const OF_REQUESTS = {
  retries: ['survives errors that pass', ERRORS, failedExits],
  waits_as_told: ['waits as long as Retry-After says', ERRORS, shortWaits],
  doubles_waits: ['waits twice as long each time', ERRORS, steadyWaits],
  outlasts_allowance: ['waits for the daily allowance of the next day', ERRORS, allowanceExits],
  keeps_cursor: ['continues with the cursor of the last complete page, also after a restart', STORE, jumps],
  follows_has_more: ['calls again at once while has_more is true', FOLLOW, unfollowed],
  finishes_periods: [
    'reads a period to its last page, also after a restart',
    'client-guide: Make a full copy',
    unfinishedPeriods,
  ],
  handles_400: [
    'does not repeat a call after 400',
    'client-guide: Handle errors; client-guide: When the subscriptions of your key change',
    repeated400,
  ],
  handles_401: ['does not repeat a call after 401', ERRORS, repeated401],
  notices_gaps: [
    'asks for the gaps of the exports',
    'change-stream: Related endpoints; client-guide: Follow the stream',
    gapsAsked,
  ],
} as const satisfies Record<string, Rule>;

export const notTested = (detail: string) => ({ outcome: 'not_tested', detail }) as const;

export const violation = (detail: string, ...requests: number[]) => ({ detail, requests });

/** @param occasion whether the client could have broken the rule; @param what did not happen otherwise */
const tested = (found: readonly Violation[], occasion: boolean, what: string): Result =>
  found.length > 0 || occasion ? found : notTested(what);

export const NOT_REACHED = notTested('the exam ended before');

/** A wait may be this much shorter than Retry-After: clocks and timers count whole milliseconds. */
const ROUNDING_MS = 50;
/** The last of three waits is four times the first, minus the random part that the client-guide recommends. */
const GROWTH_MIN = 1.5;
/** The first wait is a second, with its random part; a client that waits less than this does not wait. */
const FIRST_WAIT_MS_MIN = SECOND_MS / 5;
const AT_ONCE_MS = 30 * SECOND_MS;
/** There is nothing to store. */
const AT_ONCE_AFTER_EMPTY_MS = 4 * SECOND_MS;

const ALLOWANCE = 'daily_allowance';

function failedExits(evidence: Evidence): Result {
  const { requests } = evidence;
  const found = endsInError(evidence, (code) => code !== ALLOWANCE);
  const isMet = requests.some(isDamaged) && requests.some(({ status }) => (status ?? 0) >= 500);
  return tested(found, isMet, 'the exam ended before errors and bodies that end early reached the client');
}

function allowanceExits(evidence: Evidence): Result {
  const found = endsInError(evidence, (code) => code === ALLOWANCE);
  const isMet = evidence.requests.some(({ code, fault }) => code === ALLOWANCE && fault === null);
  return tested(found, isMet, 'the allowance was not used up when the client asked');
}

/** Ends after certain error codes, and before the answers 400 and 401, with which a client may end. */
function endsInError(evidence: Evidence, isAfter: (code: string | null) => boolean): Violation[] {
  const { requests, moments, invalidAfter, unauthorizedAfter } = evidence;
  const last = invalidAfter ?? unauthorizedAfter ?? Number.POSITIVE_INFINITY;
  return moments.flatMap(({ kind, code, after }) => {
    const before = requests.findLast(({ number, endpoint }) => number <= after && endpoint === 'listChanges');
    if (kind !== 'ended' || code === 0 || after > last || !isAfter(before?.code ?? null)) return [];
    return violation(`it ended with exit code ${code} after request ${after}`, after);
  });
}

function shortWaits(evidence: Evidence): Result {
  const isTold = ({ request: { status, retry_after }, isRestarted }: Pair) =>
    (status === 429 || status === 503) && retry_after !== null && !isRestarted;
  const told = pairs(evidence.requests, evidence).filter(isTold);
  const found = told.flatMap(({ request: { number, status, retry_after }, next, ms }) => {
    if (ms >= (retry_after ?? 0) * SECOND_MS - ROUNDING_MS) return [];
    const what = `came ${seconds(ms)} after a ${status} with Retry-After ${retry_after}`;
    return violation(`request ${next.number} ${what}`, number, next.number);
  });
  return tested(found, told.length > 0, 'no Retry-After reached the client');
}

/** Errors in a row without a Retry-After: the first wait is too short, or the waits do not grow. */
function steadyWaits(evidence: Evidence): Result {
  const rows: Pair[][] = [[]];
  for (const pair of pairs(evidence.requests, evidence)) {
    const { request, isRestarted } = pair;
    if ((request.status ?? 0) >= 500 && request.retry_after === null && !isRestarted) rows.at(-1)?.push(pair);
    else rows.push([]);
  }
  const found = rows.flatMap((row) => {
    const waits = row.map(({ ms }) => ms);
    const [first = Number.POSITIVE_INFINITY] = waits;
    const isSteady = waits.length > 2 && (waits.at(-1) ?? 0) < GROWTH_MIN * first;
    if (first >= FIRST_WAIT_MS_MIN && !isSteady) return [];
    const detail = `after errors in a row it waited ${waits.map(seconds).join(', ')}`;
    return violation(detail, ...row.map(({ next }) => next.number));
  });
  const isMet = rows.some(({ length }) => length > 2);
  return tested(found, isMet, 'three errors in a row did not reach the client');
}

function jumps(evidence: Evidence): Result {
  const all = chains(evidence);
  const found = all.flatMap(({ request, next, isKilled, isRestarted }) => {
    const start = startOf(next);
    const isGood = isGoodPage(request);
    const mayRepeat = !isGood || isKilled || (request.rows === 0 && request.has_more === false);
    const goesOn = request.cursor_given !== null && start === request.cursor_given;
    if ((goesOn && (isGood || isKilled)) || (mayRepeat && start === startOf(request))) return [];
    const when = isRestarted ? ' after a restart' : '';
    const wrongPlace =
      !isGood && goesOn
        ? `took the cursor of request ${request.number}, whose answer was incomplete`
        : `did not go on where request ${request.number} had ended${when}`;
    const what = next.parameters.cursor === undefined ? `started again with since${when}` : wrongPlace;
    return violation(`request ${next.number} ${what}`, request.number, next.number);
  });
  if (found.length > 0) return found;
  // A cursor can be taken from the header Link, which only a page with has_more true has.
  const isMet = all.some(({ request }) => isDamaged(request) && request.has_more === true);
  if (!isMet) return notTested('no page with has_more true ended early');
  if (evidence.isRestarted) return found;
  return { outcome: 'passed', detail: 'without a restart: name the command of the client with --client' };
}

function unfollowed(evidence: Evidence): Result {
  const { moments, requests } = evidence;
  const isMore = (page: RequestRecord) => page.has_more === true && isGoodPage(page);
  const all = chains(evidence).filter(({ request, isKilled }) => isMore(request) && !isKilled);
  const found = all.flatMap(({ request, pauseMs, isRestarted }) => {
    if (isRestarted) return endedEarly(request);
    if (pauseMs < (request.rows === 0 ? AT_ONCE_AFTER_EMPTY_MS : AT_ONCE_MS)) return [];
    const detail = `it waited ${seconds(pauseMs)} after request ${request.number}, though has_more was true`;
    return violation(detail, request.number);
  });
  const last = requests.findLast(({ endpoint }) => endpoint === 'listChanges');
  if (last !== undefined && isMore(last) && moments.at(-1)?.kind === 'ended') found.push(endedEarly(last));
  const isMet = all.some(({ request }) => request.rows === 0);
  return tested(found, isMet, 'no empty page with has_more true reached the client');
}

const endedEarly = ({ number }: RequestRecord): Violation =>
  violation(`it ended after request ${number}, though has_more was true`, number);

/** Each period of which a second page was asked for has a last one, also if `to` moved with the clock meanwhile. */
function unfinishedPeriods(evidence: Evidence): Result {
  const pages = evidence.requests.filter(({ endpoint }) => endpoint === 'listDetections');
  if (pages.length === 0) return notTested('the client reads no periods');
  const found = [...Map.groupBy(pages, filtersOf).values()].flatMap((walk) => {
    const last = walk.findLast(({ parameters }) => parameters.cursor !== undefined);
    if (last === undefined || walk.some((page) => page.has_more === false && isGoodPage(page))) return [];
    const detail = `it did not read the period from ${last.parameters.from} on after request ${last.number}`;
    return violation(detail, last.number);
  });
  return tested(found, evidence.isKilledInWalk, 'the client was not killed between two pages of a period');
}

/** A refused request for changes must not be repeated as it was. */
function repeated400(evidence: Evidence): Result {
  const { requests, invalidAfter, unauthorizedAfter } = evidence;
  if (invalidAfter === null) return NOT_REACHED;
  const last = unauthorizedAfter ?? Number.POSITIVE_INFINITY;
  const own = requests.filter(({ number }) => number > invalidAfter && number <= last);
  const refused = own.filter(({ endpoint, status }) => endpoint === 'listChanges' && status === 400);
  const found = pairs(refused, evidence).flatMap(({ request, next, isRestarted }) => {
    if (isRestarted || JSON.stringify(request.parameters) !== JSON.stringify(next.parameters)) return [];
    const detail = `request ${next.number} repeats what request ${request.number} was refused with 400`;
    return violation(detail, request.number, next.number);
  });
  return tested(found, refused.length > 0, 'no 400 reached the client');
}

/** A client may repeat the call once, with a new token. */
function repeated401(evidence: Evidence): Result {
  const { requests, unauthorizedAfter } = evidence;
  if (unauthorizedAfter === null) return NOT_REACHED;
  const tokens = requests.filter(({ endpoint, status }) => endpoint === 'createToken' && status === 200);
  const calls = requests.filter(({ endpoint }) => endpoint !== 'createToken');
  const isRefused = ({ request, isRestarted }: Pair) => request.status === 401 && !isRestarted;
  const found = pairs(calls, evidence).flatMap((pair, index, all) => {
    if (!isRefused(pair)) return [];
    const { request, next } = pair;
    const isNew = tokens.some(({ number }) => number > request.number && number < next.number);
    const before = all[index - 1];
    if (isNew && (before === undefined || !isRefused(before))) return [];
    const what = `repeats what request ${request.number} was refused with 401`;
    return violation(`request ${next.number} ${what}`, request.number, next.number);
  });
  const isMet = requests.some(({ status }) => status === 401);
  return tested(found, isMet, 'no 401 reached the client');
}

/** Advice at most: the rows of a late file come on the stream, so the copy is right even if the client never asks. */
function gapsAsked({ requests }: Evidence): Result {
  if (requests.some(({ endpoint }) => endpoint === 'getMe')) return [];
  const detail = 'it never asked GET /v1/me: ask once a day, or a missing file looks like a quiet day';
  return { outcome: 'advice', detail };
}

/** Every `since` counts as the same start: a client may calculate it from its clock each time. */
const startOf = ({ parameters }: RequestRecord) => parameters.cursor ?? 'since';

const seconds = (ms: number) => `${(ms / SECOND_MS).toFixed(1)} s`;
