/**
 * Requests that change something must come from the console's own pages: by `Sec-Fetch-Site`, or else by `Origin`
 * against `Host` (OWASP, Cross-Site Request Forgery Prevention: Fetch Metadata).
 */
import type { IncomingMessage } from 'node:http';
import { problem, type Told } from './thread-messages.ts';

/** @returns the refusal; null if the request comes from an own page */
export function refuseForeign(request: IncomingMessage): Told | null {
  const { host, origin, 'sec-fetch-site': site, 'content-type': type = '' } = request.headers;
  const isOwn = site === undefined ? origin !== undefined && hostOf(origin) === host : site === 'same-origin';
  if (!isOwn)
    return problem(
      403,
      'This must come from the pages of the console: Sec-Fetch-Site or Origin says otherwise.',
    );
  // A form cannot send it.
  return /^application\/json\s*(;|$)/i.test(type) ? null : problem(415, 'Send it as application/json.');
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}
