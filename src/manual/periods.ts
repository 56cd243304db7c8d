/** Manual, topic `periods`: for those who write a client (contract: GET /v1/detections, Client procedures). */
import {
  PAGE_ROWS_MAX,
  PERIOD_DAYS_MAX,
  PERIOD_ROWS_MAX,
  SHARDS_MAX,
  SUBSCRIPTIONS_MAX,
} from '../limits/contract-limits.ts';
import { page, paragraph, points } from './text.ts';

export function periodsText(): string {
  return page(
    'PERIODS',
    paragraph(`
      GET /v1/detections gives what is current of every detection whose first_detected_at lies in a period. For
      keeping up to date, follow the change stream instead ("wirewatch manual change-stream"), which also has the
      filters, fields and answers that are no page: they are the same here.`),
    '1. The period',
    points(
      'from and to are required. A date, 2026-11-21, is a whole day: from begins with its start, to ends with its end, so that the same date twice is one day. A time has Z or an offset and up to nine fractional digits (what is finer than a millisecond is cut off), and to is exclusive.',
      "time_zone says where dates are meant: an IANA name. Without it, it is the subscription's own where the request reads exactly one, else UTC. A day on which clocks change has 23 or 25 hours; where midnight is skipped it starts with its first instant.",
      'A future to is read as now. The answer shows from and to as they were resolved, in whole seconds, and the time zone as written.',
      `At most ${PERIOD_DAYS_MAX} calendar days where both are dates, else ${PERIOD_DAYS_MAX} x 24 hours plus one hour. At most ${SUBSCRIPTIONS_MAX} subscriptions, and ${SHARDS_MAX} shards: UTC days that the period touches, times streams (one for each subscription and content type).`,
      "from may not be earlier than the day on which records begin, in the request's time zone. data_starts in GET /v1/me is a time: from = data_starts is always accepted, in any zone. Its first ten characters are the day in UTC, which east of Greenwich can be a day too early: use them with time_zone=UTC only.",
    ),
    '2. The pages',
    points(
      'sort is -first_detected_at (newest first, the default) or first_detected_at. Ties stand by ascending id in both.',
      `limit: 1 to ${PAGE_ROWS_MAX}; a request that reads more than one stream gets at most ${PERIOD_ROWS_MAX} rows a page.`,
      'While has_more is true, repeat the request with next_cursor as cursor; next_cursor is null when the period is read. A page can be empty and still have more behind it.',
      'A cursor holds the period and time zone that were resolved for the first page. If you repeat the request with another period, time zone, sort, subscription or filter, the answer is 400, start again; limit, fields and schema_version may change.',
      'If the subscriptions of the key are changed during a walk that names none, the walk goes on with those that the key reads then. A subscription that was added appears from that place on only: start the month again to have all of it. A walk that names a subscription which the key has lost ends with 400; start the month again without it.',
      'A period that ended less than two days ago is still filling, and a walk through it is no consistent snapshot: a detection can change or move while you read.',
      'A first_detected_at that lies in the future (the clock of the matching system is ahead) is in no period before its time has come: a full copy that is made until then lacks such a detection.',
    ),
    '3. A full copy without gaps',
    points(
      'Read the first page for the most recent month, and keep its as_of.',
      'Walk month by month back to data_starts, each month to its end. Upsert by id, and keep the higher version.',
      'Start the change stream with since equal to that as_of (the server says it; your own clock may differ), within 31 days of it, and go on following it. What changed during the walk comes there.',
    ),
  );
}
