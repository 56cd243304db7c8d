/** Manual, topic `change-stream`: for those who write a client (contract: Client procedures, Common detection filters). */
import { BANDS } from '../detection/band.ts';
import { OBJECT_PATHS } from '../detection/fields.ts';
import {
  CHUNK_ROWS,
  DOMAINS_MAX,
  PAGE_CHUNKS_MAX,
  PAGE_ROWS_DEFAULT,
  PAGE_ROWS_MAX,
  PUBLISHERS_MAX,
  SOURCE_ID_CHARACTERS_MAX,
  STREAMS_MAX,
  SUBSCRIPTIONS_MAX,
} from '../limits/contract-limits.ts';
import { fenced, page, paragraph, points } from './text.ts';
import { PYTHON_CLIENT } from './writers.ts';

export function changeStreamText(): string {
  return page(
    'CHANGE STREAM',
    paragraph(`
      GET /v1/detections/changes gives every new and every changed detection, in the order in which they reached
      the appliance. GET /v1/detections/ID gives one detection, its latest version. Both want the header
      Authorization: Bearer KEY, and a key with the scope detections:read.`),
    '1. How to read',
    points(
      'Start with since: a time with Z or an offset and up to nine fractional digits, not in the future and at most 31 x 24 hours ago. You get what was delivered at or after it.',
      'Every answer has next_cursor. Store it in the same transaction as the rows, and pass it as cursor from then on. Give since or cursor, never both, never neither.',
      'has_more true: call again at once. A page can hold fewer rows than limit, even none, and still say so. has_more false: you have everything; call again later, hourly for example. The cursor of an empty page may be the same as before.',
      'Upsert by id, and keep the higher version: delivery is at least once, and a version can come twice. Never let an older one overwrite a newer one.',
      'event is created for version 1, else updated. as_of says up to when the data was read, but for the windows in data_gaps of GET /v1/me: the end of the newest finished window, of the export that is further behind; null while one has finished none. A window that comes late reaches the stream then.',
      'Pass over fields that you do not know: later versions may add some. customer and classification are null in this one.',
      'A cursor is valid with any filter, never expires, and outlives the key. Any other text, and a cursor of another installation, is 400.',
    ),
    '2. What filters mean for a stream',
    points(
      'Every version is judged by what it was itself. When a later version no longer passes a filter (its score fell below min_score, say), it is not announced there: you keep the last version that passed. To hear of every change, read without filters and judge yourself.',
      'The cursor moves past what a filter dropped, and at the end of your streams past everything. Widening a filter later, or adding a subscription to the key, brings what comes from then on, not what was passed over; for that, start again with since.',
    ),
    '3. Parameters',
    points(
      `limit: 1 to ${PAGE_ROWS_MAX}, default ${PAGE_ROWS_DEFAULT}. A page reads at most ${PAGE_CHUNKS_MAX} chunks of ${CHUNK_ROWS} rows of the stream, however few pass.`,
      `subscription_id: up to ${SUBSCRIPTIONS_MAX}, each one of the key's. content_type: text or image. A request reads at most ${STREAMS_MAX} streams, one for each subscription and type.`,
      `publisher_id, exclude_publisher_id: up to ${PUBLISHERS_MAX}. domain, exclude_domain: up to ${DOMAINS_MAX} registrable domains, compared whole. What is excluded keeps detections that have none.`,
      `min_band: this band or stronger, of ${BANDS.join(', ')}. band: exactly these. Images have low, medium and high. min_score: 0 to 100, against the score rounded half up to a whole number. The bands are judged on the score as it is: a text score of 49.5 passes min_score=50, and its band is low, not medium.`,
      `print: true or false. source_id: exact, up to ${SOURCE_ID_CHARACTERS_MAX} characters. article_id.`,
      `fields: paths with commas between them, such as article.url,strength; an object (${OBJECT_PATHS.join(', ')}) is given whole. id and version are always there, event only where it is asked for. schema_version: v1.`,
      'Lists may be repeated or written with commas: a=1,2 is a=1&a=2. An unknown parameter, an empty value or a single one given twice is 400, and the detail names it. GET /v1/detections/ID takes fields and schema_version only.',
    ),
    '4. Beside the stream',
    points(
      "GET /v1/me shows the account and the key; its subscriptions, with the types that the key reads of each (none, while the subscription has lost those that the key names), their time zone and where their data starts; data_gaps, the export windows of the last 90 days that have brought nothing, newest first: missing, abandoned or failed; the limits, of which daily_rows is the account's, and in throttled whether the daily allowance of the key or of the account is used up. Any key may ask for it, and keep the answer for a minute.",
      'GET and HEAD /v1/schema/detection list every field with its path, column, position, type, nullability, content types and meaning, for any key. Keep the ETag and send it as If-None-Match: 304 says that nothing has changed.',
      'source.image_url needs no key and never expires. Where it is an address of the appliance, GET alone is answered, one byte range at a time if you like, and 404 where the photo is not there (yet).',
    ),
    '5. Answers that are no page',
    paragraph(`
      Problem documents (RFC 9457) with type, title, status, detail and request_id; the request id is also in
      X-Request-Id, and in the appliance's log. The last path segment of type is the code: switch on it.`),
    points(
      '400 invalid_request: the detail says what is wrong. Do not repeat it unchanged. 408 (the request did not arrive in time) and 431 (request line and headers over 32 KiB) have the same code.',
      '401 unauthorized: no key, not a whole one, or one that is unknown, expired or revoked; an access token (topic tokens) also after its hour.',
      '403 forbidden: the account is suspended, the address is not allowed for the key, or the scope is missing.',
      '404 not_found: no such path (a trailing slash is another path), or no detection with this id that this key can read. 405 method_not_allowed: the header Allow names the methods. 413 content_too_large: only at /oauth/token.',
      '429 rate_limited: wait Retry-After seconds. RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset stand in every answer to a good key.',
      '429 daily_allowance: the key or its account has read its rows of this UTC day. The detail says which of them, how many rows it has read and how many it may. Wait Retry-After seconds, until 00:00 UTC; the cursor stays valid. GET /v1/me answers all the same; its daily_rows is the allowance of the account, also where the key has a lower one of its own.',
      '500 internal, 503 unavailable: try again, and wait twice as long each time.',
    ),
    '6. A client',
    paragraph(`
      In Python 3, with nothing but its standard library: it follows the stream into an SQLite file, can be ended
      at any moment, and goes on where it was.`),
    fenced('python', PYTHON_CLIENT),
  );
}
