/** GET /v1/detections: detections first detected in a period. */
import type { Credential } from '../../auth/authorize.ts';
import type { ContentType } from '../../detection/content-type.ts';
import { formatAsOf } from '../../query/as-of.ts';
import { jsonBaseUrl } from '../../query/base-url.ts';
import {
  type Period,
  requireFewShards,
  requireRecords,
  resolvePeriod,
  wholeSeconds,
} from '../../query/period.ts';
import { type PeriodPage, readPeriodPage } from '../../query/period-page.ts';
import { type PeriodParameters, parsePeriodParameters } from '../../query/period-parameters.ts';
import { type PeriodRequest, readPeriodRequest } from '../../query/period-request.ts';
import { readFirstDataStart, recordsBeginBy } from '../../query/period-start.ts';
import type { PeriodWalk, QueryCursors } from '../../query/query-cursor.ts';
import { type Database, reading } from '../../store/database.ts';
import { formatSeconds, SECOND_MS } from '../../time.ts';
import { nextLink } from '../next-link.ts';
import type { Answer, KeyedCall, KeyedRoute } from '../routes.ts';

export interface PeriodSources {
  readonly detections: () => Database;
  readonly cursors: QueryCursors;
  readonly enabledContentTypes: ReadonlySet<ContentType>;
  readonly baseUrl: () => string;
}

/** Where a page begins. */
type PeriodStart = Omit<PeriodWalk, 'place'> & { readonly place: PeriodWalk['place'] | null };

const PATH = '/v1/detections';
const DATA_START = Buffer.from('{"data":[');

export function periodRoute(sources: PeriodSources): KeyedRoute {
  return {
    path: PATH,
    method: 'GET',
    head: false,
    access: 'key',
    scope: 'detections:read',
    answer: (call, credential) => answerPeriod(sources, call, credential),
  };
}

function answerPeriod(sources: PeriodSources, call: KeyedCall, { subscriptions }: Credential): Answer {
  const asked = parsePeriodParameters(call.query);
  const request = readPeriodRequest(asked, subscriptions, sources.enabledContentTypes);
  // On one snapshot: when the records begin, and what there is. Each snapshot costs system calls, too.
  const { walk, page } = reading(sources.detections(), () => {
    const walk = startOf(sources, asked, request, call.nowMs);
    call.requireAllowance();
    const page = readPeriodPage(sources.detections(), {
      streams: request.streams,
      content_types: request.content_types,
      filters: asked.filters,
      period: walk.period,
      sort: asked.sort,
      after: walk.place,
      limit: request.limit,
      projection: asked.projection,
      baseUrl: jsonBaseUrl(sources.baseUrl()),
    });
    return { walk, page };
  });
  const cursor =
    page.next === null ? null : sources.cursors.encode(request.hash, { ...walk, place: page.next });
  const as_of = formatAsOf(page.as_of_ms, call.nowMs);
  const body = renderPage(page, cursor, walk.period, { time_zone: walk.time_zone, as_of });
  const headers = cursor === null ? [] : nextLink(sources.baseUrl(), PATH, call.query, cursor);
  return { status: 200, rows: page.rows, body, headers };
}

/**
 * A walk keeps the period of its first page: judged anew, a `to` in the future would move on with the clock, and a
 * walk that was let in could be refused half-way. It keeps the zone that was the only subscription's, too, when the
 * key gains another.
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
  const resolved = resolvePeriod(asked.ends, zone, nowMs);
  requireFewShards(resolved, streams.length);
  if (!recordsBeginBy(detections(), streams, Math.floor(resolved.from_ms / SECOND_MS)))
    requireRecords(resolved, readFirstDataStart(detections(), streams), zone);
  return { period: wholeSeconds(resolved, nowMs), time_zone, place: null };
}

function renderPage(
  { data, rows }: PeriodPage,
  cursor: string | null,
  { from, to }: Period,
  told: { readonly time_zone: string; readonly as_of: string | null },
): string | Buffer[] {
  const rest = {
    next_cursor: cursor,
    has_more: cursor !== null,
    from: formatSeconds(from),
    to: formatSeconds(to),
    ...told,
  };
  const end = `],${JSON.stringify(rest).slice(1)}`;
  return rows === 0 ? `{"data":[${end}` : [DATA_START, ...data, Buffer.from(end)];
}
