/** Cross-origin requests (https://fetch.spec.whatwg.org/#http-cors-protocol): which web pages may read answers. */

/** How long browsers keep the answer to a preflight; two hours is their limit. */
const PREFLIGHT_SECONDS = 7200;
/** Those that the API reads, beside those that a page may always send. */
const REQUEST_HEADERS = 'Authorization, Content-Type, If-None-Match, Prefer';
/** Those that clients need, beside those that a page may always read. */
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
  /** @returns headers for an answer to a page of this origin; none where it is not allowed */
  headers(origin: string | undefined): readonly string[];
  /** @returns headers of the answer to a preflight; null where it is none, or the origin is not allowed */
  preflight(origin: string | undefined, requestMethod: string | undefined): readonly string[] | null;
}

/** @param origins such as `https://dashboard.example.org`; `*` allows every page, which still needs a key */
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
