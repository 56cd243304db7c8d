/** The bodies of errors: problem documents (RFC 9457), and those of the token endpoint (RFC 6749, 5.2). */
import { Type } from '@sinclair/typebox';
import { OAUTH_ERRORS, type OAuthErrorCode, PROBLEMS, type ProblemCode } from '../error-codes.ts';
import type { RefusedCode } from '../refused.ts';
import { closed, described, URI, words } from './description.ts';

export interface Problem {
  readonly code: ProblemCode;
  /** Plain English; names the parameter, never a secret. */
  readonly detail: string;
  /** Where HTTP itself has a more exact status than the code's (408, 431). */
  readonly status?: number;
}

/** @param baseUrl without a slash at its end */
export function renderProblem({ code, detail, status }: Problem, requestId: string, baseUrl: string): string {
  const problem = PROBLEMS[code];
  return JSON.stringify({
    type: `${baseUrl}/errors/${code}`,
    title: problem.title,
    status: status ?? problem.status,
    detail,
    request_id: requestId,
  });
}

/** Whether a client may see the code; the others are of commands, and a fault in a request. */
export function isProblemCode(code: RefusedCode): code is Exclude<ProblemCode, 'internal'> {
  return Object.hasOwn(PROBLEMS, code);
}

export function renderOAuthError(error: OAuthErrorCode, description: string): string {
  return JSON.stringify({ error, error_description: description });
}

/** The schemas of both, by name. */
export const ERROR_SCHEMAS = {
  Problem: closed(
    {
      type: described(URI, '`{base_url}/errors/<code>`. Test the last path segment, the error code.'),
      title: described(words(Object.values(PROBLEMS).map(({ title }) => title)), 'The error code in words.'),
      status: Type.Integer({ minimum: 400, maximum: 599 }),
      detail: Type.String({ minLength: 1, description: 'What was wrong, in plain English.' }),
      request_id: Type.String({ format: 'uuid', description: 'Equals `X-Request-Id`.' }),
    },
    'RFC 9457',
  ),
  OAuthError: closed(
    { error: words(Object.keys(OAUTH_ERRORS)), error_description: Type.String({ minLength: 1 }) },
    'RFC 6749, 5.2',
  ),
};
