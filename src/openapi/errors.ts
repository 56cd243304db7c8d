/** The errors of the service, by their codes (contract: Errors). */

export interface ErrorKind {
  readonly status: number;
  readonly title: string;
  /** An example of a detail. */
  readonly detail: string;
  /** What a client does about it. */
  readonly action: string;
}

export const ERRORS = {
  invalid_request: {
    status: 400,
    title: 'Invalid request',
    detail: 'unknown parameter "colour"',
    action: 'Do not repeat it unchanged; the detail says what is wrong. Also with 408 and 431.',
  },
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    detail: 'The credential is missing.',
    action: 'With an access token: get another one, once. Else have somebody look at the key.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    detail: 'This needs the scope detections:read.',
    action: 'Do not repeat it; have somebody look at the key.',
  },
  not_found: {
    status: 404,
    title: 'Not found',
    detail: 'There is no endpoint at this path.',
    action: 'Do not repeat it.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    detail: 'This endpoint answers GET.',
    action: 'Use a method that `Allow` names.',
  },
  content_too_large: {
    status: 413,
    title: 'Content too large',
    detail: 'The body is larger than 4096 bytes.',
    action: 'Do not repeat it unchanged.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    detail: 'More than 120 requests in a minute with this key. Wait 12 seconds.',
    action: 'Wait `Retry-After` seconds.',
  },
  daily_allowance: {
    status: 429,
    title: 'Daily allowance used',
    detail:
      'The key has used its daily allowance (rows read: 10,871, allowed: 10,000). It is reset at 2026-11-22T00:00:00Z; cursors stay valid.',
    action: 'Wait `Retry-After` seconds, until 00:00 UTC. Cursors stay valid.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    detail: 'The service failed to answer. Try again; if it goes on, report the request id.',
    action: 'Try again, and wait twice as long each time.',
  },
  unavailable: {
    status: 503,
    title: 'Service unavailable',
    detail: 'Credentials cannot be verified right now.',
    action: 'Try again, and wait twice as long each time.',
  },
} as const satisfies Readonly<Record<string, ErrorKind>>;

export type ErrorCode = keyof typeof ERRORS;
