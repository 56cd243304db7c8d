/**
 * Issues a token for a proven key (POST /oauth/token; RFC 6749, 4.4).
 *
 * A key that may not be used gets no token; since it was proven, the answer may say why.
 */
import { timingSafeEqual } from 'node:crypto';
import type { AccessReader, StoredKey } from './access-reader.ts';
import { whyNotUsable } from './authorize.ts';
import { formatKey, hashKey, isKeyId, isKeySecret, parseKey } from './key.ts';
import { keyStatus } from './keys.ts';
import { SCOPES, type Scope } from './scopes.ts';
import type { AccessTokens } from './token.ts';
import type { ClientCredentials, TokenRequest } from './token-request.ts';

export type Grant =
  | {
      readonly kind: 'granted';
      readonly key_id: string;
      readonly access_token: string;
      readonly scopes: readonly Scope[];
    }
  | { readonly kind: 'invalid_client'; readonly description: string }
  | { readonly kind: 'invalid_scope'; readonly description: string };

const MISSING =
  'The client credentials are missing. Send client_id and client_secret in the body, or use HTTP Basic.';

/** One text for every reason: it must not reveal which key ids exist, or whether a key was revoked. */
export const CLIENT_NOT_VALID =
  'The client credentials are not valid: the id or secret is wrong, or the key is expired or revoked.';

/**
 * @param address of the client, which the key may restrict
 * @param nowMs epoch milliseconds
 * @throws Refused `unavailable` if the store cannot be read
 */
export function grantToken(
  { store, tokens }: { readonly store: AccessReader; readonly tokens: AccessTokens },
  { client, scope }: Pick<TokenRequest, 'client' | 'scope'>,
  address: string,
  nowMs: number,
): Grant {
  if (client.id === '' || client.secret === '') return { kind: 'invalid_client', description: MISSING };
  const key = provenKey(store, client);
  if (key === null || keyStatus(key, nowMs) !== 'active')
    return { kind: 'invalid_client', description: CLIENT_NOT_VALID };
  const refusal = whyNotUsable(key, address);
  if (refusal !== null) return { kind: 'invalid_client', description: refusal };
  const scopes = grantedScopes(key.scopes, scope);
  if (scopes === null) {
    const has = key.scopes.length === 0 ? 'none' : key.scopes.join(' ');
    const description = `scope: must be a space-separated subset of the scopes of the key. The key has: ${has}`;
    return { kind: 'invalid_scope', description };
  }
  return { kind: 'granted', key_id: key.id, access_token: tokens.issue(key, scopes, nowMs), scopes };
}

/** The key that the credentials prove; null if they prove none. */
function provenKey(store: AccessReader, { id, secret }: ClientCredentials): StoredKey | null {
  const whole = parseKey(secret);
  if (!isKeyId(id) || (whole === null ? !isKeySecret(secret) : whole.id !== id)) return null;
  return store.findKey(id, ({ prefix, hash }) => {
    const text = whole === null ? formatKey({ prefix, id, secret }) : secret;
    return timingSafeEqual(hash, hashKey(text));
  });
}

/** In the order of SCOPES, each once; null if the key lacks one of them. */
function grantedScopes(has: readonly Scope[], asked: string): readonly Scope[] | null {
  const names: readonly string[] = asked === '' ? has : asked.split(' ');
  const scopes = SCOPES.filter((scope) => has.includes(scope) && names.includes(scope));
  return names.every((name) => scopes.some((scope) => scope === name)) ? scopes : null;
}
