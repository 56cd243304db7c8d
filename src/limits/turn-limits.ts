/**
 * How many requests for pages, and requests that wait for a change, are open at once. The rest of
 * `server.max_connections` stays free for all others.
 */

/** Requests of one key whose page is not read yet. */
export const PAGES_PER_KEY_MAX = 100;
/** The same of all keys, as a share of `server.max_connections`. */
export const PAGES_SHARE = 1 / 4;

/** Requests of one key that wait for a change (`Prefer: wait`). */
export const WAITS_PER_KEY_MAX = 50;
/** The same of all keys, as a share of `server.max_connections`. */
export const WAITS_SHARE = 1 / 2;
