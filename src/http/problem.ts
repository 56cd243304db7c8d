/** The bodies of errors: problem documents (RFC 9457), and those of the token endpoint (RFC 6749, 5.2). */
import { Type } from '@sinclair/typebox';
import { OAUTH_ERRORS, PROBLEM_CONTENT_TYPE, PROBLEMS, type ProblemCode } from '../problem-titles.ts';
import { Refused } from '../refused.ts';
import { isDamage } from '../store/database-errors.ts';
import { DAMAGE_RETRY_SECONDS } from '../store/detections-reader.ts';
import { closed, described, URI, words } from './description.ts';
import type { Answer } from './exchange.ts';

export interface Problem {
  readonly code: ProblemCode;
  /** Plain English; names the parameter, never a secret. */
  readonly detail: string;
  /** Where HTTP itself has a more exact status than the code's (408, 431). */
  readonly status?: number;
}

export function problemAnswer(problem: Problem, request_id: string, baseUrl: string) {
  const { code, detail } = problem;
  const { title, status } = { ...PROBLEMS[code], ...problem };
  const body = JSON.stringify({ type: `${baseUrl}/errors/${code}`, title, status, detail, request_id });
  const headers = code === 'unauthorized' ? ['WWW-Authenticate', 'Bearer'] : [];
  return { status, code, contentType: PROBLEM_CONTENT_TYPE, body, headers } satisfies Answer;
}

/** What a client may see of an error; the other codes are of commands, and a fault in a request. */
export function problemOf(error: unknown): Problem {
  return error instanceof Refused && isRefusal(error.code)
    ? { code: error.code, detail: error.message }
    : { code: 'internal', detail: PROBLEMS.internal.example };
}

export const isRefusal = (code: string): code is Exclude<ProblemCode, 'internal'> =>
  code !== 'internal' && Object.hasOwn(PROBLEMS, code);

export function retryAfter(error: unknown): string[] {
  const ofDamage = isDamage(error) ? DAMAGE_RETRY_SECONDS : null;
  const seconds = error instanceof Refused ? error.retryAfterSeconds : ofDamage;
  return seconds === null ? [] : ['Retry-After', `${seconds}`];
}

export function oauthError(error: keyof typeof OAUTH_ERRORS, description: string): Answer {
  const body = JSON.stringify({ error, error_description: description });
  return { status: OAUTH_ERRORS[error], code: error, body };
}

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
