/** GET /v1/detections: detections first detected in a period. */
import type { Credential } from '../../auth/authorize.ts';
import { formatAsOf } from '../../query/as-of.ts';
import { jsonBaseUrl } from '../../query/base-url.ts';
import { requireFewShards, requireRecords, resolvePeriod, wholeSeconds } from '../../query/period.ts';
import { type PeriodPage, readPeriodPage } from '../../query/period-page.ts';
import { type PeriodParameters, parsePeriodParameters } from '../../query/period-parameters.ts';
import { type PeriodRequest, readPeriodRequest } from '../../query/period-request.ts';
import { readFirstDataStart, recordsBeginBy } from '../../query/period-start.ts';
import type { PeriodWalk, QueryCursors } from '../../query/query-cursor.ts';
import { reading } from '../../store/database.ts';
import { formatSeconds, SECOND_MS } from '../../time.ts';
import { nextLink } from '../next-link.ts';
import { type Answer, detectionsRoute, type KeyedCall, type KeyedRoute } from '../routes.ts';
import type { DetectionSources } from './detection.ts';

export interface PeriodSources extends DetectionSources {
  readonly cursors: QueryCursors;
}

/** Where a page begins; null: at the beginning. */
type PeriodStart = Omit<PeriodWalk, 'place'> & { readonly place: PeriodWalk['place'] | null };

/** A request, and what the key may read of it. */
export interface PeriodCall {
  readonly call: KeyedCall;
  readonly asked: PeriodParameters;
  readonly request: PeriodRequest;
}

const PATH = '/v1/detections';
const DATA_START = Buffer.from('{"data":[');

export function periodRoute(sources: PeriodSources): KeyedRoute {
  return detectionsRoute(PATH, (call, credential) => answerPeriod(sources, call, credential));
}

function answerPeriod(sources: PeriodSources, call: KeyedCall, credential: Credential): Answer {
  const period = periodCall(sources, call, credential);
  const { walk, page } = firstPage(sources, period, jsonBaseUrl(sources.baseUrl()));
  const { rows } = page;
  const rest = endOf(sources, period, walk, page);
  const end = `],${JSON.stringify(rest).slice(1)}`;
  const body = rows === 0 ? `{"data":[${end}` : [DATA_START, ...page.data, Buffer.from(end)];
  return { status: 200, rows, body, headers: nextHeaders(sources, PATH, call, rest.next_cursor) };
}

/** @throws Refused `invalid_request` */
export function periodCall(
  { enabledContentTypes }: PeriodSources,
  call: KeyedCall,
  { subscriptions }: Credential,
): PeriodCall {
  const asked = parsePeriodParameters(call.query);
  return { call, asked, request: readPeriodRequest(asked, subscriptions, enabledContentTypes) };
}

/**
 * The requested page, and the walk that it belongs to.
 *
 * @param baseUrl of {@link jsonBaseUrl}
 * @throws Refused `invalid_request`, `daily_allowance`
 */
export function firstPage(
  sources: PeriodSources,
  period: PeriodCall,
  baseUrl: Buffer,
): { walk: PeriodStart; page: PeriodPage } {
  const { call, asked, request } = period;
  // One snapshot for the data start and the page: each costs system calls.
  return reading(sources.detections(), () => {
    const walk = startOf(sources, asked, request, call.nowMs);
    call.requireAllowance();
    return { walk, page: pageOf(sources, period, walk, baseUrl) };
  });
}

/** @param baseUrl as for {@link firstPage} */
export function pageOf(
  { detections }: PeriodSources,
  { asked, request }: PeriodCall,
  { period, place }: PeriodStart,
  baseUrl: Buffer,
): PeriodPage {
  return readPeriodPage(detections(), { ...asked, ...request, period, after: place, baseUrl });
}

/**
 * A walk keeps the period of its first page: resolved again, a `to` in the future would move with the clock, and a walk
 * could be refused half-way. It also keeps the time zone of the only subscription when the key gains another one.
 */
function startOf(
  { cursors, detections }: PeriodSources,
  asked: PeriodParameters,
  { hash, streams, time_zone, zone }: PeriodRequest,
  nowMs: number,
): PeriodStart {
  if (asked.cursor !== null) {
    const walk = cursors.decode(asked.cursor, hash);
    return { ...walk, time_zone: asked.time_zone ?? walk.time_zone };
  }
  const resolved = resolvePeriod(asked, zone, nowMs);
  requireFewShards(resolved, streams.length);
  if (!recordsBeginBy(detections(), streams, Math.floor(resolved.from_ms / SECOND_MS)))
    requireRecords(resolved, readFirstDataStart(detections(), streams), zone);
  return { period: wholeSeconds(resolved, nowMs), time_zone, place: null };
}

/** The members of an answer after its rows. */
export function endOf(
  { cursors }: PeriodSources,
  { call, request }: PeriodCall,
  { period, time_zone }: PeriodStart,
  { next: place, as_of_ms }: PeriodPage,
) {
  const next = place === null ? null : cursors.encode(request.hash, { period, time_zone, place });
  return {
    next_cursor: next,
    has_more: next !== null,
    from: formatSeconds(period.from),
    to: formatSeconds(period.to),
    time_zone,
    as_of: formatAsOf(as_of_ms, call.nowMs),
  };
}

export function nextHeaders({ baseUrl }: PeriodSources, path: string, call: KeyedCall, next: string | null) {
  return next === null ? [] : nextLink(baseUrl(), path, call.query, next);
}
