/**
 * Problem documents (contract: Problem, Errors; RFC 9457): the one place where a code becomes a status. And the form
 * of the token endpoint's own errors (contract: OAuthError; RFC 6749, 5.2).
 */
import type { RefusedCode } from '../refused.ts';

/** Codes that reach a client. What only commands throw is, on the way to a client, a fault. */
export type ProblemCode = Exclude<RefusedCode, 'usage' | 'configuration' | 'failed'> | 'internal';

interface ProblemKind {
  readonly status: number;
  readonly title: string;
}

export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = {
  invalid_request: { status: 400, title: 'Invalid request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  content_too_large: { status: 413, title: 'Content too large' },
  rate_limited: { status: 429, title: 'Too many requests' },
  daily_allowance: { status: 429, title: 'Daily allowance used' },
  internal: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Service unavailable' },
};

export const PROBLEM_TYPE = 'application/problem+json';

export interface Problem {
  readonly code: ProblemCode;
  /** Plain English; names the parameter, never a secret. */
  readonly detail: string;
  /** Where HTTP itself has a more exact status than the code's (408, 431). */
  readonly status?: number;
}

/** @param baseUrl without a slash at its end */
export function renderProblem({ code, detail, status }: Problem, requestId: string, baseUrl: string): string {
  const kind = PROBLEMS[code];
  return JSON.stringify({
    type: `${baseUrl}/errors/${code}`,
    title: kind.title,
    status: status ?? kind.status,
    detail,
    request_id: requestId,
  });
}

export function isProblemCode(code: RefusedCode): code is Exclude<ProblemCode, 'internal'> {
  return Object.hasOwn(PROBLEMS, code);
}

export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'unsupported_grant_type'
  | 'invalid_scope';

export function renderOAuthError(error: OAuthErrorCode, description: string): string {
  return JSON.stringify({ error, error_description: description });
}
