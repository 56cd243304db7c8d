/**
 * POST /oauth/token: an access token for a client's credentials (contract: POST /oauth/token; RFC 6749, 4.4 and 5).
 *
 * Its own errors are `{error, error_description}`; 413, 429 and faults are problem documents, as everywhere.
 */

import type { AccessReader } from '../../auth/access-reader.ts';
import { grantToken } from '../../auth/client-credentials.ts';
import { isKeyId } from '../../auth/key.ts';
import type { AccessTokens } from '../../auth/token.ts';
import { isBasic, readTokenRequest } from '../../auth/token-request.ts';
import { counted, grouped } from '../../counted.ts';
import { OAUTH_ERRORS, type OAuthErrorCode } from '../../error-codes.ts';
import { TOKEN_BODY_BYTES_MAX, TOKEN_LIFETIME_MS } from '../../limits/contract-limits.ts';
import type { TokenRate } from '../../limits/token-rate.ts';
import { Refused } from '../../refused.ts';
import { type Now, SECOND_MS } from '../../time.ts';
import { readBody } from '../body.ts';
import { renderOAuthError } from '../problem.ts';
import type { Answer, OpenCall, OpenRoute } from '../routes.ts';

export interface TokenSources {
  readonly access: AccessReader;
  readonly tokens: AccessTokens;
  readonly rate: TokenRate;
  readonly bodyTimeoutMs: number;
  readonly now: Now;
}

const CHALLENGE = ['WWW-Authenticate', 'Basic realm="svc-data"'];
const CLOSE = ['Connection', 'close'];

export function tokenRoute(sources: TokenSources): OpenRoute {
  return {
    path: '/oauth/token',
    method: 'POST',
    access: 'open',
    answer: (call) => answerToken(sources, call),
  };
}

/** @throws Refused `content_too_large`, `rate_limited`, `unavailable` */
async function answerToken(sources: TokenSources, { address, request, claim }: OpenCall): Promise<Answer> {
  const { rate, bodyTimeoutMs } = sources;
  const body = await readBody(request, TOKEN_BODY_BYTES_MAX, bodyTimeoutMs);
  if (body.kind === 'too_large') {
    throw tooLarge();
  }
  // After the body: a slow request must not count in a minute that is over.
  const nowMs = sources.now();
  const byAddress = rate.takeAddress(address, nowMs);
  if (byAddress !== null) throw tooManyTokens(byAddress, 'from this address');
  if (body.kind === 'too_slow') {
    return {
      ...oauthError('invalid_request', 'The request body was not received in time.'),
      status: 408,
      headers: CLOSE,
    };
  }
  if (body.kind === 'broken') {
    return oauthError('invalid_request', 'The request body is incomplete or not well-formed HTTP.');
  }

  const { authorization, 'content-type': contentType } = request.headers;
  const read = readTokenRequest({ contentType, authorization, body: body.bytes });
  if (read.kind === 'invalid') return oauthError('invalid_request', read.description);
  const { grant_type, client, scope } = read.request;
  if (isKeyId(client.id)) claim(client.id);
  if (grant_type !== 'client_credentials') {
    const description = `grant_type: ${grant_type === '' ? 'missing; ' : ''}must be client_credentials`;
    return oauthError('unsupported_grant_type', description);
  }
  const byClient = isKeyId(client.id) ? rate.takeClient(client.id, address, nowMs) : null;
  if (byClient !== null) throw tooManyTokens(byClient, 'for this client_id');

  const grant = grantToken(
    { store: sources.access, tokens: sources.tokens },
    { client, scope },
    address,
    nowMs,
  );
  if (grant.kind !== 'invalid_client') rate.markProven(client.id, address, nowMs);
  if (grant.kind === 'invalid_scope') return oauthError('invalid_scope', grant.description);
  if (grant.kind === 'invalid_client') return invalidClient(grant.description, authorization);
  const { key_id, access_token, scopes } = grant;
  const expires_in = TOKEN_LIFETIME_MS / SECOND_MS;
  const token = { access_token, token_type: 'Bearer', expires_in, scope: scopes.join(' ') };
  return { status: 200, key_id, body: JSON.stringify(token) };
}

export function tooLarge(): Refused {
  return new Refused(
    'content_too_large',
    `The request body must not exceed ${grouped(TOKEN_BODY_BYTES_MAX)} bytes.`,
  );
}

/** @param authorization of the request: the answer to HTTP Basic has its challenge (RFC 6749, 5.2) */
export function invalidClient(description: string, authorization: string | undefined): Answer {
  const refused = oauthError('invalid_client', description);
  return isBasic(authorization) ? { ...refused, headers: CHALLENGE } : refused;
}

export function tooManyTokens(secondsToWait: number, of: string): Refused {
  return new Refused(
    'rate_limited',
    `Too many token requests ${of} in the last minute. Retry in ${counted(secondsToWait, 'second')}.`,
    { retryAfterSeconds: secondsToWait },
  );
}

export function oauthError(error: OAuthErrorCode, description: string): Answer {
  return { status: OAUTH_ERRORS[error], code: error, body: renderOAuthError(error, description) };
}
