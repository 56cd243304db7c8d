/** Cross-origin requests (https://fetch.spec.whatwg.org/#http-cors-protocol): which web pages may read answers. */

const PREFLIGHT = [
  ...['Access-Control-Allow-Methods', 'GET, HEAD, POST'],
  ...['Access-Control-Allow-Headers', 'Authorization, Content-Type, If-None-Match, Last-Event-ID, Prefer'],
  ...['Access-Control-Max-Age', '7200'],
];
const EXPOSED = [
  'Access-Control-Expose-Headers',
  'Allow, Date, ETag, Link, Preference-Applied, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-Id',
];

/** @param origins such as `https://dashboard.example.org`; `*` allows every page, which still needs a key */
export function createCors(origins: readonly string[]) {
  const isAny = origins.includes('*');
  const allowed = new Set<string | undefined>(origins);
  return {
    headers(origin: string | undefined): readonly string[] {
      if (allowed.size === 0) return [];
      if (isAny) return ['Access-Control-Allow-Origin', '*', ...EXPOSED];
      // A cache must not give the answer for one origin, or for none, to another.
      if (origin === undefined || !allowed.has(origin)) return ['Vary', 'Origin'];
      return ['Vary', 'Origin', 'Access-Control-Allow-Origin', origin, ...EXPOSED];
    },
    /** @returns headers of the answer to a preflight; null where it is none, or not allowed */
    preflight(origin: string | undefined, requestMethod: string | undefined): readonly string[] | null {
      if (requestMethod === undefined || origin === undefined) return null;
      return isAny || allowed.has(origin) ? PREFLIGHT : null;
    },
  };
}
