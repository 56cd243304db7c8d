/** The error codes that clients see, with their status and title: the only place that lists them. */

/** Codes of problem documents. `example`: a detail, as the OpenAPI document shows it; `action`: what a client does about it. */
export const PROBLEMS = {
  invalid_request: {
    status: 400,
    title: 'Invalid request',
    example: 'unknown parameter "colour"',
    action:
      'Fix the request before you retry: the detail says what is wrong. Statuses 408 and 431 use this code too.',
  },
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    example: 'The Authorization header is missing. Send: Authorization: Bearer <API_KEY>',
    action:
      'With an access token, request a new token and retry once. With an API key, stop and check the key.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    example: 'This endpoint requires the scope detections:read. The credential has: reports:read.',
    action: 'Do not retry. Check the key, its scopes and its account.',
  },
  not_found: {
    status: 404,
    title: 'Not found',
    example: 'No endpoint exists at this path.',
    action: 'Do not retry.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    example: 'This endpoint supports only GET.',
    action: 'Use a method listed in `Allow`.',
  },
  content_too_large: {
    status: 413,
    title: 'Content too large',
    example: 'The request body must not exceed 4096 bytes.',
    action: 'Send a smaller body.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    example: 'This key is limited to 120 requests per minute. Retry in 12 seconds.',
    action: 'Wait `Retry-After` seconds, then retry.',
  },
  daily_allowance: {
    status: 429,
    title: 'Daily allowance used',
    example:
      'The key has used its daily allowance of 10,000 rows (10,871 rows read today). The allowance resets at 2026-11-22T00:00:00Z. Cursors stay valid.',
    action: 'Wait `Retry-After` seconds, until 00:00 UTC. Cursors stay valid.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    example:
      'The request failed because of a fault in the service. Try again later. If it keeps failing, report the request id to the operator.',
    action: 'Retry with exponential backoff.',
  },
  unavailable: {
    status: 503,
    title: 'Service unavailable',
    example: 'Credentials cannot be verified right now. Try again later.',
    action: 'Retry with exponential backoff.',
  },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/** Status of each error code of the token endpoint (RFC 6749, 5.2). */
export const OAUTH_ERRORS = {
  invalid_request: 400,
  invalid_client: 401,
  unsupported_grant_type: 400,
  invalid_scope: 400,
} as const;

export type OAuthErrorCode = keyof typeof OAUTH_ERRORS;

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';
