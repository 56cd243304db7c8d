/** GET /v1/detections: detections first detected in a period. */
import { Type } from '@sinclair/typebox';
import { formatAsOf } from '../../query/as-of.ts';
import { jsonBaseUrl } from '../../query/detection-text.ts';
import { requireFewShards, requireRecords, resolvePeriod, wholeSeconds } from '../../query/period.ts';
import { readFirstDataStart, readPeriodPage } from '../../query/period-page.ts';
import { PERIOD_PARAMETERS, readPeriodRequest, START_AGAIN } from '../../query/period-request.ts';
import { reading } from '../../store/database.ts';
import { formatSeconds, SECOND_MS } from '../../time.ts';
import { AS_OF, closed, described, EXAMPLE_TIME, nullable, ref, TIMESTAMP } from '../description.ts';
import { NEXT_LINK, nextLink, pageBody } from '../next-link.ts';
import type { KeyedRoute } from '../routes.ts';
import type { Service } from '../service.ts';
import { IMAGE_EXAMPLE, OF_DETECTIONS, TEXT_EXAMPLE } from './detection.ts';

export const PERIOD: KeyedRoute = {
  ...OF_DETECTIONS,
  path: '/v1/detections',
  id: 'listDetections',
  summary: 'List detections by period',
  description:
    'Returns the current state of every detection whose `first_detected_at` is in the period. Follow `next_cursor` until `has_more` is false. The period, time zone, sort, subscriptions and filters must stay the same from page to page.',
  query: PERIOD_PARAMETERS,
  responses: {
    200: {
      description: 'A page of the period. It can be empty.',
      schema: 'RangePage',
      headers: NEXT_LINK,
      examples: {
        page: {
          data: [TEXT_EXAMPLE, IMAGE_EXAMPLE],
          next_cursor: null,
          has_more: false,
          from: '2026-10-31T23:00:00Z',
          to: EXAMPLE_TIME,
          time_zone: 'Europe/Berlin',
          as_of: EXAMPLE_TIME,
        },
      },
    },
  },
  schemas: {
    RangePage: closed({
      data: Type.Array(ref('Detection'), { description: 'Current states, in the requested order.' }),
      next_cursor: nullable(ref('QueryCursor'), 'Null on the last page.'),
      has_more: Type.Boolean({ description: 'True when there may be another page. That page can be empty.' }),
      from: described(TIMESTAMP, 'Resolved start, inclusive.'),
      to: described(
        TIMESTAMP,
        'Resolved end, exclusive. The time of the first request when `to` was in the future.',
      ),
      time_zone: Type.String({ description: 'Time zone used for the period.' }),
      as_of: AS_OF,
    }),
  },
  /** @throws Refused `invalid_request`, `daily_allowance` */
  async answer(service, { query, nowMs }, credential) {
    const request = readPeriodRequest(query, credential, service.enabledContentTypes);
    await service.turns.take(credential.key_id);
    const db = service.detections();
    const baseUrl = jsonBaseUrl(service.baseUrl);
    // One snapshot for the data start and the page: each costs system calls.
    const { walk, page } = reading(db, () => {
      const walk = startOf(service, request, nowMs);
      service.allowance.require(credential, nowMs);
      const { period, place: after } = walk;
      const { streams, content_types, sort, limit, fields: projection } = request;
      const wanted = { streams, content_types, sort, limit, filters: request, projection };
      return { walk, page: readPeriodPage(db, { ...wanted, period, after, baseUrl }) };
    });
    const { period, time_zone } = walk;
    const { data, rows, next: place } = page;
    const next = place && service.queryCursors.encode(request.hash, { period, time_zone, place });
    const body = pageBody(data, {
      next_cursor: next,
      has_more: next !== null,
      from: formatSeconds(period.from),
      to: formatSeconds(period.to),
      time_zone,
      as_of: formatAsOf(page.as_of_ms, nowMs),
    });
    const headers = next === null ? [] : nextLink(service.baseUrl, PERIOD.path, query, next);
    return { status: 200, rows, body, headers };
  },
};

/** A walk keeps the period and the time zone of its first page, though the clock and the key's rights move on. */
function startOf(service: Service, asked: ReturnType<typeof readPeriodRequest>, nowMs: number) {
  const { queryCursors, detections } = service;
  const { streams, resolved_zone: time_zone, zone } = asked;
  if (asked.cursor !== null) {
    const walk = queryCursors.decode(asked.cursor, asked.hash);
    const { from, to } = walk.period;
    // The key may read more streams now.
    requireFewShards({ from_ms: from * SECOND_MS, to_ms: to * SECOND_MS }, streams.length, START_AGAIN);
    return { ...walk, time_zone: asked.time_zone ?? walk.time_zone };
  }
  const resolved = resolvePeriod(asked, zone, nowMs);
  requireFewShards(resolved, streams.length);
  requireRecords(resolved, readFirstDataStart(detections(), streams), zone);
  return { period: wholeSeconds(resolved, nowMs), time_zone, place: null };
}
