/**
 * Whether a request may be answered: decided for every request from the current state of the store. 401, or 503 if that
 * cannot be read; then 403 for the account, then for the address. The rate limit comes before {@link requireScope}.
 */
import { timingSafeEqual } from 'node:crypto';
import { createAddressList } from '../addresses.ts';
import { Refused } from '../refused.ts';
import type { AccessReader, StoredKey } from './access-reader.ts';
import { hashKey, hasKeyForm, parseKey } from './key-form.ts';
import { keyStatus } from './keys.ts';
import type { Scope } from './scopes.ts';
import { type AccessTokens, isLikeToken, isTokenCurrent } from './token.ts';

/** A verified key or token, and what it may read. */
export type Credential = ReturnType<typeof authenticate>;

export type Presented = ReturnType<typeof readCredential>;

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;
const KEY_ID = /^[a-z][a-z0-9]{0,15}_(?:live|token)_([a-z2-7]{12})_/;

/** One text for every reason: it must not reveal which key ids exist, or whether a key was revoked. */
const NOT_VALID =
  'The API key is not valid: it is unknown, expired or revoked. Ask the operator for a new key.';
const TOKEN_NOT_VALID =
  'The access token is not valid: it is unknown or expired, or its key is expired or revoked. Request a new token from POST /oauth/token.';

/** @param address of the client; @throws Refused `unauthorized`, `unavailable`, `forbidden` */
export function authenticate(store: AccessReader, presented: Presented, address: string, nowMs: number) {
  const { token } = presented;
  const stored = store.findKey(presented.keyId, ({ hash }) => presented.proves(hash));
  const isCurrent = token === null || isTokenCurrent(token, nowMs);
  if (stored === null || !isCurrent || keyStatus(stored, nowMs) !== 'active')
    throw new Refused('unauthorized', token === null ? NOT_VALID : TOKEN_NOT_VALID);
  const refusal = whyNotUsable(stored, address);
  if (refusal !== null) throw new Refused('forbidden', refusal);
  const { id, name, expires_at, daily_rows, account, subscriptions } = stored;
  // The scopes that a token was issued with, and that its key still has.
  const scopes = stored.scopes.filter((scope) => token?.scopes.includes(scope) ?? true);
  return { key_id: id, key_name: name, scopes, expires_at, daily_rows, account, subscriptions };
}

export function requireScope(credential: Credential, scope: Scope): void {
  if (credential.scopes.includes(scope)) return;
  const has = credential.scopes.length === 0 ? 'none' : credential.scopes.join(', ');
  throw new Refused('forbidden', `This endpoint requires the scope ${scope}. The credential has: ${has}.`);
}

/** The key id that a request claims, for the limit on unseen key ids; null if it claims none. Nothing is verified. */
export const claimedKeyId = (authorization: string | undefined): string | null =>
  KEY_ID.exec(bearerText(authorization) ?? '')?.[1] ?? null;

/**
 * Parses a credential: a key, or a token, which names its key. It is not yet verified.
 * @param tokens without them, access tokens are refused
 * @returns `proves`: whether it proves the key with a hash, in constant time
 * @throws Refused `unauthorized`
 */
export function readCredential(authorization: string | undefined, tokens?: AccessTokens) {
  const refused = (detail: string) => new Refused('unauthorized', detail);
  if (authorization === undefined || authorization.trim() === '')
    throw refused('The Authorization header is missing. Send: Authorization: Bearer <API_KEY>');
  const text = bearerText(authorization);
  if (text === null)
    throw refused(
      'The Authorization header is malformed. Send one credential: Authorization: Bearer <API_KEY>',
    );
  const token = tokens?.read(text) ?? null;
  if (token !== null) return { keyId: token.keyId, proves: token.proves, token };
  const key = parseKey(text);
  if (key === null) throw refused(malformedDetail(text));
  const keyHash = hashKey(text);
  return { keyId: key.id, proves: (hash: Uint8Array) => timingSafeEqual(hash, keyHash), token: null };
}

function malformedDetail(text: string): string {
  if (hasKeyForm(text))
    return 'The API key contains a typing error: its checksum does not match. Copy the key again.';
  if (isLikeToken(text))
    return 'The access token is damaged or incomplete. Request a new one with POST /oauth/token';
  return 'The credential is not a valid API key or access token. Check that the complete key was copied: <prefix>_live_<12 characters>_<52 characters>';
}

const bearerText = (authorization: string | undefined) => BEARER.exec(authorization ?? '')?.[1] ?? null;

/** Why a valid key may not be used now, or not from this address; null if it may. */
export function whyNotUsable(stored: StoredKey, address: string): string | null {
  if (stored.account.suspended_at !== null)
    return 'The account is suspended. Its keys work again when the operator resumes it.';
  const allowed = stored.allow_addresses;
  const isRefused = allowed.length > 0 && !createAddressList(allowed)(address);
  return isRefused ? `This key cannot be used from the address ${address}.` : null;
}
