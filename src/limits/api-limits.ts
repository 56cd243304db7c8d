/** The numbers that the API fixes. Those that an operator can set are settings. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time.ts';

/** Rows of a page: `limit`. */
export const PAGE_ROWS_MAX = 1000;
export const PAGE_ROWS_DEFAULT = 100;

/** Streams that one request to the change stream reads, one per subscription and content type. */
export const STREAMS_MAX = 20;

/** Values of `subscription_id`. */
export const SUBSCRIPTIONS_MAX = 4;
/** Values of `publisher_id` and of `exclude_publisher_id`. */
export const PUBLISHERS_MAX = 50;
/** Values of `domain` and of `exclude_domain`. */
export const DOMAINS_MAX = 20;

/** Rows of a period page over more than one stream. */
export const PERIOD_ROWS_MAX = 200;
/** Calendar days of a period whose ends are dates. */
export const PERIOD_DAYS_MAX = 31;
/** Length of any other period, with an hour for clock changes. */
export const PERIOD_MAX_MS = PERIOD_DAYS_MAX * DAY_MS + HOUR_MS;
/** Storage shards of a period request: a shard is one UTC day of one stream. */
export const SHARDS_MAX = 64;

/** How old `since` may be, inclusive. */
export const SINCE_AGE_MAX_MS = 31 * DAY_MS;

/** Chunks of a change stream page, however few of their rows pass the filters. */
export const PAGE_CHUNKS_MAX = 50;

/** Before filtering. With four times as many, light requests waited 200 ms while two clients scanned. */
export const CHUNK_ROWS = 64;

export const TOKEN_BODY_BYTES_MAX = 4096;
export const TOKEN_LIFETIME_MS = HOUR_MS;

/** How far back `data_gaps` go, and their number per content type. */
export const DATA_GAP_AGE_MAX_MS = 90 * DAY_MS;
export const DATA_GAPS_MAX = 200;

/** The longest `Prefer: wait` of the change stream. */
export const WAIT_SECONDS_MAX = 60;

/** How long clients may cache `/v1/me`. */
export const ME_CACHE_SECONDS = 60;

/** The window in which requests are counted. */
export const RATE_WINDOW_MS = MINUTE_MS;
