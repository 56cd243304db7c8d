/** Manual, topic `client-guide`: the way through the API for those who write a client (contract: Client procedures). */
import {
  PAGE_ROWS_MAX,
  PERIOD_ROWS_MAX,
  SINCE_AGE_MAX_MS,
  TOKEN_LIFETIME_MS,
} from '../limits/contract-limits.ts';
import { DAY_MS, SECOND_MS } from '../time.ts';
import { fenced, page, paragraph, points } from './text.ts';

const SINCE_DAYS = SINCE_AGE_MAX_MS / DAY_MS;

export function clientGuideText(): string {
  return page(
    'CLIENT GUIDE',
    paragraph(`
      A client keeps a copy of the detections that its key may read. Three procedures are all it needs. The topics
      change-stream, periods and tokens have every parameter and answer; "wirewatch pull" is a client that does all of
      this.`),
    '1. What a copy is',
    points(
      'One row for each detection, by its id, with its version and whatever you keep of it. The id is opaque: compare it, and do not take it apart.',
      'A version that arrives is kept where it is higher than the one you have, and passed over otherwise. The same one can come twice.',
      'A match that is scored again with no other change keeps its version and does not come on the stream: last_scored_at and exported_at of the detection are brought up to date in place. The period and GET /v1/detections/ID show the new ones, a stream row keeps those that it was written with. So do not compare these two when you compare a copy with the service, nor the beginning of source.image_url, which moves with the address of the appliance.',
      'Beside the rows, one cursor. Rows and cursor are stored in one transaction, so that a crash never separates them.',
      'Ignore members that you do not know: new ones can be added to v1 at any time.',
      'Detections are never withdrawn. A correction is a higher version.',
    ),
    '2. Following the stream',
    points(
      `Begin with since, at most ${SINCE_DAYS} days ago. From then on pass the next_cursor of the last answer as cursor, and since never again.`,
      'has_more true: call again at once. has_more false: store the cursor, and call again later, hourly for example; a caught-up call costs the appliance next to nothing.',
      'A cursor never expires. It outlives its key, a restart of the appliance, an update, and its being put back from a backup.',
      'After a disaster from which not everything could be brought back, versions go up by 1,000 at once. That is a higher version like any other.',
    ),
    '3. A full copy',
    points(
      `For history that is older than ${SINCE_DAYS} days. Ask GET /v1/me for data_starts of each subscription.`,
      'Read the first page of GET /v1/detections for the most recent month, and keep its as_of. Walk that month to the end of its pages, then the month before, and so on back to data_starts.',
      "Then start the stream with since equal to that as_of: the server's, not your own clock, and within 31 days of it. What changed while you walked comes there.",
      `Where as_of is null (an export has finished nothing yet), or older than ${SINCE_DAYS} days (an export has been silent for so long), the stream cannot start with it: use the Date header of that first page less one minute.`,
      `Walk one stream after the other, one subscription_id with one content_type. Its pages have up to ${number(PAGE_ROWS_MAX)} rows, and a whole month fits into a request. A request that reads several streams gets ${PERIOD_ROWS_MAX} rows a page, whatever limit says.`,
    ),
    '4. When the subscriptions of the key change',
    points(
      'One was removed: GET /v1/me no longer lists it, and a request that names it is 400. Take it out of subscription_id and go on with the same cursor. Its detections stay in your copy as they were last; delete or keep them, as you agreed with the agency.',
      'One was added, or is back: the stream brings what is delivered from now on, not what the cursor has passed. Walk the periods of that subscription once, into the same copy, and go on with the same cursor.',
      'A walk through a period that names no subscription goes on with those that the key reads by then. Where it ends with 400, start the month again.',
    ),
    '5. Trying again',
    points(
      'Switch on the code of an error: the last path segment of its type, such as daily_allowance in https://api.example/errors/daily_allowance. title and detail are for people. The topic change-stream lists the codes.',
      '429 rate_limited: wait Retry-After seconds. 429 daily_allowance: the same, which is until 00:00 UTC; the cursor stays good.',
      '500, 502, 503, 504, and no answer at all: wait a second, then twice as long each time, up to some minutes. Use Retry-After where it is given. 502 and 504 come from a proxy in front of the appliance: their body is the text of the proxy, not a problem document, and their Retry-After can be a date.',
      'A body that ends early (fewer bytes than Content-Length says, a chunk that never comes, JSON that does not end): store nothing of it, and repeat the same call. Your HTTP library may report that as an error of its own kind, not as a network error.',
      '400, 401, 403, 404: do not repeat them unchanged. The detail says what is wrong. Have somebody look.',
      'Repeating a call is always safe: every call only reads.',
      `With access tokens: they last ${TOKEN_LIFETIME_MS / SECOND_MS} seconds. On a 401 get another one, once, before you give up.`,
      'Write X-Request-Id (it is also the request_id of a problem) into your log: it finds the line in the log of the appliance.',
    ),
    '6. Browsers',
    paragraph(`
      A web page cannot call the API: it sends no CORS headers, and answers OPTIONS with 405. Call it from a server of
      yours, which also keeps the key where nobody can read it. source.image_url works in an img element, since it needs no
      key.`),
    '7. Trying a client on a laptop',
    paragraph(`
      The demonstration is the real appliance with sample data: accounts, keys, corrections, and a new export every
      twenty seconds. Bad days can be had, too:`),
    fenced('sh', 'wirewatch demo --port 8080\nwirewatch key list --data wirewatch-demo'),
    points(
      '401: revoke a key while the client runs (wirewatch key revoke ID --yes --data wirewatch-demo), or give it a key with --expires.',
      '403: suspend the account (wirewatch account suspend ID), or make a key with --allow-address 192.0.2.1 or without the scope detections:read.',
      '429 rate_limited: start with WIREWATCH_LIMITS_REQUESTS_PER_MINUTE=5. 429 daily_allowance: wirewatch key set ID --daily-rows 10.',
      '503: take the right to read access.db away (chmod 000) and give it back. No answer: stop the appliance (kill -STOP), or end it.',
      'Empty pages with has_more true: filter by a source_id that does not exist. Many pages: limit=1.',
      'A crash in your client: kill it between any two lines, start it again, and compare its copy with the service. Write the copy as lines, one detection each, and let pull compare, which leaves out what may differ (topic pull):',
    ),
    fenced(
      'sh',
      'wirewatch pull --base-url http://127.0.0.1:8080 --key-file key --into mine.ndjson --format ndjson --compare',
    ),
  );
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
