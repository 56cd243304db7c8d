/** POST /oauth/token: an access token for a client's credentials (RFC 6749, 4.4 and 5). */
import { Type } from '@sinclair/typebox';
import { grantToken, isBasic, readTokenRequest } from '../../auth/client-credentials.ts';
import { isKeyId } from '../../auth/key-form.ts';
import { grouped } from '../../counted.ts';
import { TOKEN_BODY_BYTES_MAX, TOKEN_LIFETIME_MS } from '../../limits/api-limits.ts';
import { tooMany } from '../../limits/request-rate.ts';
import { Refused } from '../../refused.ts';
import { SECOND_MS } from '../../time.ts';
import { readBody } from '../body.ts';
import { closed, described, header, KEY_ID, optional, words } from '../description.ts';
import type { Answer } from '../exchange.ts';
import { oauthError } from '../problem.ts';
import { TOKEN_PATH } from '../reply.ts';
import type { OpenRoute } from '../routes.ts';

const BASIC = 'Basic realm="svc-data"';
export const GRANT_TYPE = 'client_credentials';
const TOKEN_SECONDS = TOKEN_LIFETIME_MS / SECOND_MS;

export const TOKEN: OpenRoute = {
  path: TOKEN_PATH,
  method: 'POST',
  id: 'createToken',
  tag: 'Service',
  summary: 'Request an access token',
  description:
    'OAuth 2.0 client credentials grant (RFC 6749, section 4.4). The client id is the key id. The client secret is the secret of the key, or the complete key. Send both in the body or with HTTP Basic.',
  access: 'client',
  body: {
    contentType: 'application/x-www-form-urlencoded',
    schema: closed(
      {
        grant_type: words([GRANT_TYPE]),
        client_id: Type.Optional(described(KEY_ID, 'The key id. Omit it when you use HTTP Basic.')),
        client_secret: Type.Optional(
          Type.String({
            description: "The key's secret, or the complete key. Omit it when you use HTTP Basic.",
          }),
        ),
        scope: Type.Optional(
          Type.String({ description: "Space-separated subset of the key's scopes. Default: all of them." }),
        ),
      },
      `At most ${TOKEN_BODY_BYTES_MAX} bytes. No parameter may be repeated.`,
    ),
    example: { grant_type: GRANT_TYPE, scope: 'detections:read' },
  },
  headers: { Pragma: header(Type.Literal('no-cache'), 'For HTTP/1.0 caches.') },
  responses: {
    200: {
      description: 'The token.',
      schema: 'Token',
      examples: {
        token: {
          access_token: 'ww_token_example',
          token_type: 'Bearer',
          expires_in: TOKEN_SECONDS,
          scope: 'detections:read',
        },
      },
    },
    400: { description: 'invalid_request; unsupported_grant_type; invalid_scope', schema: 'OAuthError' },
    401: {
      description: 'invalid_client',
      schema: 'OAuthError',
      headers: {
        'WWW-Authenticate': optional(Type.Literal(BASIC), 'Present when the client used HTTP Basic.'),
      },
    },
  },
  problems: ['content_too_large', 'rate_limited', 'internal', 'unavailable'],
  schemas: {
    Token: closed({
      access_token: Type.String({ minLength: 1, description: 'Sent as `Authorization: Bearer`.' }),
      token_type: words(['Bearer']),
      expires_in: Type.Literal(TOKEN_SECONDS, { description: 'Seconds.' }),
      scope: Type.String({ description: 'Space-separated scopes of the token.' }),
    }),
  },
  /** @throws Refused `content_too_large`, `rate_limited`, `unavailable` */
  async answer(service, exchange) {
    const { tokenRate: rate, access: store, tokens, now } = service;
    const { address, request } = exchange;
    const body = await readBody(request, TOKEN_BODY_BYTES_MAX);
    if (body === 'too large')
      throw new Refused(
        'content_too_large',
        `The request body must not exceed ${grouped(TOKEN_BODY_BYTES_MAX)} bytes.`,
      );
    // After the body: a slow request must not count in a minute that is over.
    const nowMs = now();
    const byAddress = rate.takeAddress(address, nowMs);
    if (byAddress !== null) throw tooManyTokens(byAddress, 'from this address');
    if (body === 'broken')
      return oauthError(
        'invalid_request',
        'The request body is incomplete, too slow or not well-formed HTTP.',
      );

    const { authorization } = request.headers;
    const read = readTokenRequest(request.headers, body);
    if (typeof read === 'string') return oauthError('invalid_request', read);
    const { grant_type, client } = read;
    if (isKeyId(client.id)) exchange.claimed_key_id = client.id;
    if (grant_type !== GRANT_TYPE) {
      const description = `grant_type: ${grant_type === '' ? 'missing; ' : ''}must be ${GRANT_TYPE}`;
      return oauthError('unsupported_grant_type', description);
    }
    const byClient = isKeyId(client.id) ? rate.takeClient(client.id, address, nowMs) : null;
    if (byClient !== null) throw tooManyTokens(byClient, 'for this client_id');

    const grant = grantToken({ store, tokens }, read, address, nowMs);
    if (grant.kind === 'invalid_client') return invalidClient(grant.description, authorization);
    const byOwner = rate.takeProven(client.id, address, nowMs);
    if (byOwner !== null) throw tooManyTokens(byOwner, 'for this client_id');
    if (grant.kind === 'invalid_scope') return oauthError('invalid_scope', grant.description);
    const { access_token, scopes } = grant;
    exchange.key_id = grant.key_id;
    const token = { access_token, token_type: 'Bearer', expires_in: TOKEN_SECONDS, scope: scopes.join(' ') };
    return { status: 200, body: JSON.stringify(token) };
  },
};

/** @param authorization of the request: the answer to HTTP Basic has its challenge (RFC 6749, 5.2) */
export function invalidClient(description: string, authorization: string | undefined): Answer {
  const refused = oauthError('invalid_client', description);
  return isBasic(authorization) ? { ...refused, headers: ['WWW-Authenticate', BASIC] } : refused;
}

export const tooManyTokens = (secondsToWait: number, whose: string): Refused =>
  tooMany(`Too many token requests ${whose} in the last minute`, secondsToWait);
