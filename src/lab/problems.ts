/**
 * Errors as the appliance itself makes them, by their code: a fault throws what the real cause throws, where the
 * pipeline would meet it, so that body, headers and log come from the same code.
 */
import type { IncomingMessage } from 'node:http';
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
import { allowanceUsed } from '../limits/daily-allowance.ts';
import { nextDayMs } from '../limits/daily-rows.ts';
import { Refused } from '../refused.ts';

/** A request that is to end in an error. */
export interface Situation {
  readonly code: string;
  readonly request: IncomingMessage;
  readonly exchange: Exchange;
  readonly route: Route;
  readonly endpoint: string;
  /** Of the fault; seconds. */
  readonly retryAfter: number | undefined;
  /** Rows a day, where the account has no allowance of its own. */
  readonly dailyRows: number;
}

/** Codes that the check of the credential ends with. */
const AT_CREDENTIAL = ['unauthorized', 'forbidden', 'unavailable', 'method_not_allowed'];
const TOKEN_RETRY_SECONDS = 60;

/** The methods of an endpoint, as `Allow` has them. */
export function allowOf({ method, head }: Route): string {
  return head ? `${method}, HEAD` : method;
}

/** @throws Refused for a code of the credential; returns for others */
export function throwAtCredential(situation: Situation): void {
  if (AT_CREDENTIAL.includes(situation.code)) throw errorOf(situation, null);
}

/** @throws what the endpoint, or what precedes it, would throw; returns for a code that {@link tokenAnswer} answers */
export function throwAtEndpoint(situation: Situation, credential: Credential | null): void {
  const { code, endpoint } = situation;
  // Its health is in the body (contract: GET /v1/health), and a client that is refused gets OAuth's own form.
  if (endpoint === 'getHealth' && code === 'unavailable') return;
  if (tokenAnswer(situation) !== null) return;
  throw errorOf(situation, credential);
}

/** The OAuth error of a code; null for codes and endpoints that have none. */
export function tokenAnswer({ code, endpoint, request }: Situation): Answer | null {
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

function errorOf(situation: Situation, credential: Credential | null): Error {
  const { code, request, exchange, endpoint, route, retryAfter } = situation;
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
      return allowanceError(credential, situation.dailyRows);
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

function allowanceError(credential: Credential | null, dailyRows: number): Error {
  const allowance = credential?.account.daily_rows ?? dailyRows;
  const nowMs = now();
  return allowanceUsed({ by: 'account', allowance, used: allowance, until_ms: nextDayMs(nowMs) }, nowMs);
}
