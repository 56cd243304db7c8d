/** Manual, topic `tokens`: access tokens, for those who write a client (contract: POST /oauth/token). */
import { TOKEN_BODY_BYTES_MAX, TOKEN_LIFETIME_MS } from '../limits/contract-limits.ts';
import { fenced, page, paragraph, points } from './text.ts';

/** Calls that tests run as they stand here. */
export const TOKEN_IN_BODY = `
ID=$(echo "$KEY" | cut -d _ -f 3)
TOKEN=$(curl -sS --retry 5 -d grant_type=client_credentials -d "client_id=$ID" -d "client_secret=$KEY" \\
  http://127.0.0.1:8080/oauth/token | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')
curl -sS -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/v1/me
`;

export const TOKEN_WITH_BASIC = `
ID=$(echo "$KEY" | cut -d _ -f 3)
curl -sS -u "$ID:$KEY" -d grant_type=client_credentials -d scope=detections:read \\
  http://127.0.0.1:8080/oauth/token
`;

const LIFETIME_SECONDS = TOKEN_LIFETIME_MS / 1000;

export function tokensText(): string {
  return page(
    'TOKENS',
    paragraph(`
      A client may send its key with every request, and most do. It may also change the key for an access token,
      as OAuth 2.0 has it (client credentials, RFC 6749 section 4.4), and send that in its place: a token lasts
      ${LIFETIME_SECONDS} seconds, and can be narrower than the key.`),
    paragraph(`
      POST /oauth/token takes a form. The client is the key: client_id is its id, the 12 characters in the middle;
      client_secret the 52 behind them, or the whole key.`),
    fenced('sh', TOKEN_IN_BODY),
    paragraph(`
      Or with HTTP Basic, id and secret each form-encoded, as libraries for OAuth do it; here for one scope only:`),
    fenced('sh', TOKEN_WITH_BASIC),
    'The answer:',
    fenced(
      'json',
      `
{"access_token":"ww_token_...","token_type":"Bearer","expires_in":${LIFETIME_SECONDS},"scope":"detections:read"}`,
    ),
    points(
      'scope: some of the scopes of the key, with a space between two; left out or empty, all of them. For every request the token has those it was issued with that the key still has.',
      `The body has at most ${TOKEN_BODY_BYTES_MAX} bytes, no parameter twice, and no credentials where Basic has them already.`,
      'A token can do no more than its key: it ends with it, is refused where it is, and shares its allowances of requests and rows. There is no refresh token: ask for another one, a little before the hour is over, or after a 401.',
      'It survives a restart of the appliance.',
    ),
    'Refused',
    paragraph(`
      Errors of the form and of the credentials are {"error", "error_description"}; all others problem documents,
      as at the other endpoints.`),
    points(
      '400 invalid_request: no form, a parameter twice, credentials in both places, malformed Basic credentials.',
      '400 unsupported_grant_type: grant_type is not client_credentials. 400 invalid_scope: one that the key has not.',
      '401 invalid_client: credentials missing or wrong, or of a key that is revoked, expired, of a suspended account, or not allowed from this address.',
      '413: too large. 408: the body did not arrive in time. 500, 503: try again, and wait twice as long each time.',
      '429: more than [limits] token_requests_per_minute from this address (of IPv6, a network of 64 bits), or for this client_id (counted apart for addresses from which the key or a token of it was used within a day). Wait Retry-After seconds. One token serves a whole hour: keep it.',
    ),
  );
}
