/**
 * The real errors of the appliance by their code. A fault throws what the real cause throws, at the same step of the
 * pipeline, so body, headers and log line come from the same code.
 */
import { unavailable } from '../auth/access-reader.ts';
import { type Credential, notValid, SUSPENDED } from '../auth/authorize.ts';
import { CLIENT_NOT_VALID } from '../auth/client-credentials.ts';
import { isLikeToken } from '../auth/token.ts';
import { now } from '../clock.ts';
import { noDetection } from '../http/endpoints/detection.ts';
import { invalidClient, oauthError, tooLarge, tooManyTokens } from '../http/endpoints/token.ts';
import { rateLimited } from '../http/pipeline.ts';
import type { Exchange } from '../http/reply.ts';
import { type Answer, type Route, unroutedProblem } from '../http/routes.ts';
import { allowanceUsed, nextDayMs } from '../limits/daily-allowance.ts';
import { Refused } from '../refused.ts';
import type { Begun } from './lab-request.ts';

/** A request that a fault ends with an error. */
export interface Failing extends Begun {
  readonly code: string;
  readonly route: Route;
  /** Seconds. */
  readonly retryAfter: number | undefined;
  /** Rows a day of an account without an allowance of its own. */
  readonly dailyRows: number;
}

/** Errors of the step that checks the credential. */
const AT_CREDENTIAL = ['unauthorized', 'forbidden', 'unavailable', 'method_not_allowed'];
const TOKEN_RETRY_SECONDS = 60;

/** The value of `Allow`. */
export function allowOf({ method, head }: Route): string {
  return head ? `${method}, HEAD` : method;
}

/** @throws Refused if the code is an error of the credential */
export function throwAtCredential(failing: Failing): void {
  if (AT_CREDENTIAL.includes(failing.code)) throw errorOf(failing, null);
}

/** @throws the error of the endpoint or of a step before it, unless the code changes the answer instead */
export function throwAtEndpoint(failing: Failing, credential: Credential | null): void {
  // Health reports this in its body (contract: GET /v1/health).
  if (failing.endpoint === 'getHealth' && failing.code === 'unavailable') return;
  if (tokenAnswer(failing) === null) throw errorOf(failing, credential);
}

/** @returns the OAuth error of the code; null if it has none */
export function tokenAnswer({ code, endpoint, request }: Failing): Answer | null {
  if (endpoint !== 'createToken') return null;
  switch (code) {
    case 'unauthorized':
    case 'invalid_client':
      return invalidClient(CLIENT_NOT_VALID, request.headers.authorization);
    case 'invalid_scope':
      return oauthError(code, 'scope: must be a space-separated subset of the scopes of the key');
    case 'unsupported_grant_type':
      return oauthError(code, 'grant_type: must be client_credentials');
    default:
      return null;
  }
}

function errorOf(failing: Failing, credential: Credential | null): Error {
  const { code, request, exchange, endpoint, route, retryAfter, dailyRows } = failing;
  switch (code) {
    case 'unauthorized':
      return notValid(isLikeToken((request.headers.authorization ?? '').replace(/^bearer +/i, '')));
    case 'forbidden':
      return new Refused('forbidden', SUSPENDED);
    case 'unavailable':
      return unavailable(new Error('a fault of the lab'));
    case 'method_not_allowed':
      return new Refused(code, unroutedProblem({ kind: 'no_method', allow: allowOf(route) }).detail);
    case 'not_found':
      if (endpoint === 'getDetection') return noDetection();
      return new Refused(code, unroutedProblem({ kind: 'no_path' }).detail);
    case 'content_too_large':
      return tooLarge();
    case 'rate_limited':
      return tooManyRequests(exchange, retryAfter);
    case 'daily_allowance':
      return allowanceError(credential?.account.daily_rows ?? dailyRows);
    case 'invalid_request':
      return new Refused(code, 'The request is not valid.');
    default:
      return new Error('a fault of the lab');
  }
}

function tooManyRequests(exchange: Exchange, retryAfter: number | undefined): Error {
  const { rate } = exchange;
  if (rate !== null) {
    exchange.rate = {
      ...rate,
      allowed: false,
      remaining: 0,
      reset_seconds: retryAfter ?? rate.reset_seconds,
    };
    return rateLimited(exchange.rate);
  }
  return tooManyTokens(retryAfter ?? TOKEN_RETRY_SECONDS, 'from this address');
}

function allowanceError(allowance: number): Error {
  const nowMs = now();
  return allowanceUsed({ by: 'account', allowance, used: allowance, until_ms: nextDayMs(nowMs) }, nowMs);
}
