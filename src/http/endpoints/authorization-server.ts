/** GET /.well-known/oauth-authorization-server: where an OAuth client gets its token (RFC 8414). */
import { Type } from '@sinclair/typebox';
import { SCOPES } from '../../auth/scopes.ts';
import { closed, URI, words } from '../description.ts';
import { TOKEN_PATH } from '../reply.ts';
import type { OpenRoute } from '../routes.ts';
import { GRANT_TYPE } from './token.ts';

/** The names of RFC 8414 for HTTP Basic, and for credentials in the body. */
const METHODS = ['client_secret_basic', 'client_secret_post'];

export const AUTHORIZATION_SERVER: OpenRoute = {
  path: '/.well-known/oauth-authorization-server',
  method: 'GET',
  id: 'getAuthorizationServer',
  tag: 'Service',
  summary: 'Find the token endpoint',
  description:
    'Metadata of the OAuth 2.0 authorization server (RFC 8414). No authentication and no rate limit. 404 if the operator has switched `server.discovery` off.',
  access: 'open',
  responses: { 200: { description: 'The metadata.', schema: 'AuthorizationServer' } },
  problems: ['not_found'],
  schemas: {
    AuthorizationServer: closed({
      issuer: URI,
      token_endpoint: URI,
      grant_types_supported: Type.Array(words([GRANT_TYPE])),
      response_types_supported: Type.Array(Type.String(), { description: 'Empty: there is no login page.' }),
      scopes_supported: Type.Array(words(SCOPES)),
      token_endpoint_auth_methods_supported: Type.Array(words(METHODS)),
    }),
  },
  answer({ baseUrl: issuer }) {
    const metadata = {
      issuer,
      token_endpoint: `${issuer}${TOKEN_PATH}`,
      grant_types_supported: [GRANT_TYPE],
      response_types_supported: [],
      scopes_supported: SCOPES,
      token_endpoint_auth_methods_supported: METHODS,
    };
    return { status: 200, body: JSON.stringify(metadata) };
  },
};
