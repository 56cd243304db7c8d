/** Pages of other origins (https://fetch.spec.whatwg.org/#http-cors-protocol): which may read answers in a browser. */

/** Of the answer to a preflight, in seconds; browsers keep it no longer than two hours. */
const PREFLIGHT_SECONDS = 7200;
/** What a client of the API sends; anything else a page is free to send anyway. */
const REQUEST_HEADERS = 'Authorization, Content-Type, If-None-Match, Prefer';
/** What a client of the API needs of an answer, beside what every page may read. */
const EXPOSED_HEADERS = [
  'Allow',
  'Date',
  'ETag',
  'Link',
  'Preference-Applied',
  'RateLimit-Limit',
  'RateLimit-Policy',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'WWW-Authenticate',
  'X-Request-Id',
].join(', ');

export interface Cors {
  /** @returns headers for an answer to a page of this origin; none where it is not let in */
  headers(origin: string | undefined): readonly string[];
  /** @returns headers of the answer to a preflight; null for what is none, or of an origin that is not let in */
  preflight(origin: string | undefined, requestMethod: string | undefined): readonly string[] | null;
}

/** @param origins such as `https://dashboard.example.org`; `*` lets every page in, which still needs a key */
export function createCors(origins: readonly string[]): Cors {
  const isAny = origins.includes('*');
  const allowed = new Set(origins);
  const headers = (origin: string | undefined) => {
    if (allowed.size === 0) return [];
    if (isAny) return ['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', EXPOSED_HEADERS];
    // A cache must not give the answer for one origin, or for none, to another.
    if (origin === undefined || !allowed.has(origin)) return ['Vary', 'Origin'];
    return [
      'Vary',
      'Origin',
      'Access-Control-Allow-Origin',
      origin,
      'Access-Control-Expose-Headers',
      EXPOSED_HEADERS,
    ];
  };
  return {
    headers,
    preflight(origin, requestMethod) {
      if (requestMethod === undefined || origin === undefined) return null;
      if (!isAny && !allowed.has(origin)) return null;
      return [
        'Access-Control-Allow-Methods',
        'GET, HEAD, POST',
        'Access-Control-Allow-Headers',
        REQUEST_HEADERS,
        'Access-Control-Max-Age',
        `${PREFLIGHT_SECONDS}`,
      ];
    },
  };
}
