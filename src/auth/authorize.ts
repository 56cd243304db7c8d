/**
 * Whether a request may be answered: judged anew for every request, from what the store has at that moment
 * (contract: Authentication, 5 and 6). No decision is remembered.
 *
 * The order is 401, or 503 where the store cannot tell; then 403 for the account, then for the address. The rate
 * limit comes between that and {@link requireScope}: a request that lacks the scope still counts.
 */
import { timingSafeEqual } from 'node:crypto';
import { isAddressListed } from '../addresses.ts';
import { Refused } from '../refused.ts';
import type { AccessReader, StoredKey } from './access-reader.ts';
import { hashKey, hasKeyForm, parseKey } from './key.ts';
import type { Scope } from './scopes.ts';
import { type AccessTokens, isLikeToken, isTokenCurrent, type PresentedToken } from './token.ts';

/** Who asks, and what they may read. */
export interface Credential {
  readonly key_id: string;
  readonly key_name: string;
  /** What the credential may do now; of a token, those it was issued with that its key still has. */
  readonly scopes: readonly Scope[];
  /** Of the key; epoch milliseconds. */
  readonly expires_at: number | null;
  /** The key's own allowance; null: only the account's holds. */
  readonly daily_rows: number | null;
  /** `daily_rows` null: the setting `[limits] daily_rows`. */
  readonly account: {
    readonly id: string;
    readonly name: string;
    readonly daily_rows: number | null;
    /** Tells it from an earlier account of this id. */
    readonly created_at: number;
  };
  /** By id; a subscription that has lost every type the key names stands here with none. */
  readonly subscriptions: StoredKey['subscriptions'];
}

/** What was presented, read but not yet believed: a key, or a token, which names its key. */
export interface Presented {
  readonly keyId: string;
  /** Whether it proves to be the key that has this hash; in constant time. */
  proves(hash: Uint8Array): boolean;
  /** Null for a key. */
  readonly token: PresentedToken | null;
}

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;
const KEY_ID = /^[a-z][a-z0-9]{0,15}_(?:live|token)_([a-z2-7]{12})_/;

/** One text for every reason, so that nobody learns which key ids exist, nor what became of them. */
const NOT_VALID =
  'The API key is not valid: it is unknown, expired or revoked. Ask the operator for a new key.';
const TOKEN_NOT_VALID =
  'The access token is not valid: it is unknown or expired, or its key is expired or revoked. Request a new token from POST /oauth/token.';

export const SUSPENDED = 'The account is suspended. Its keys work again when the operator resumes it.';

/**
 * @param presented of {@link readCredential}
 * @param address of the client, IPv4 or IPv6, an IPv4 address possibly mapped into IPv6
 * @param nowMs epoch milliseconds
 * @throws Refused `unauthorized`, `unavailable`, `forbidden`
 */
export function authenticate(
  store: AccessReader,
  presented: Presented,
  address: string,
  nowMs: number,
): Credential {
  const { token } = presented;
  const stored = store.findKey(presented.keyId, ({ hash }) => presented.proves(hash));
  const isCurrent = token === null || isTokenCurrent(token, nowMs);
  if (stored === null || !isCurrent || isEnded(stored, nowMs)) {
    throw notValid(token !== null);
  }
  const refusal = whyNotUsable(stored, address);
  if (refusal !== null) throw new Refused('forbidden', refusal);
  const { id, name, daily_rows, created_at } = stored.account;
  return {
    key_id: stored.id,
    key_name: stored.name,
    scopes: token === null ? stored.scopes : stored.scopes.filter((scope) => token.scopes.includes(scope)),
    expires_at: stored.expires_at,
    daily_rows: stored.daily_rows,
    account: { id, name, daily_rows, created_at },
    subscriptions: stored.subscriptions,
  };
}

/** Of what is unknown, has expired or was revoked. */
export function notValid(isToken: boolean): Refused {
  return new Refused('unauthorized', isToken ? TOKEN_NOT_VALID : NOT_VALID);
}

/** @throws Refused `forbidden` when the credential has not the scope */
export function requireScope(credential: Credential, scope: Scope): void {
  if (credential.scopes.includes(scope)) return;
  const has = credential.scopes.length === 0 ? 'none' : credential.scopes.join(', ');
  throw new Refused('forbidden', `This endpoint requires the scope ${scope}. The credential has: ${has}.`);
}

/**
 * The key id that a request claims, from the form alone: what the limit on unseen key ids counts before anything
 * is verified. Null when it claims none.
 */
export function claimedKeyId(authorization: string | undefined): string | null {
  const text = bearerText(authorization);
  return text === null ? null : (KEY_ID.exec(text)?.[1] ?? null);
}

/**
 * Reads what a client presents; whether it is good, {@link authenticate} tells.
 *
 * @param authorization the value of the Authorization header
 * @param tokens without them, no access token is believed
 * @throws Refused `unauthorized` where it has not the form of a credential
 */
export function readCredential(authorization: string | undefined, tokens?: AccessTokens): Presented {
  if (authorization === undefined || authorization.trim() === '') {
    throw new Refused(
      'unauthorized',
      'The Authorization header is missing. Send: Authorization: Bearer <API_KEY>',
    );
  }
  const text = bearerText(authorization);
  if (text === null) {
    throw new Refused(
      'unauthorized',
      'The Authorization header is malformed. Send one credential: Authorization: Bearer <API_KEY>',
    );
  }
  const token = tokens?.read(text) ?? null;
  if (token !== null) return { keyId: token.keyId, proves: token.proves, token };
  const key = parseKey(text);
  if (key === null) {
    throw new Refused('unauthorized', malformedDetail(text));
  }
  const keyHash = hashKey(text);
  return { keyId: key.id, proves: (hash) => timingSafeEqual(hash, keyHash), token: null };
}

/** See {@link readCredential}. @param connection over which it came */
export type CredentialReader = (connection: object, authorization: string | undefined) => Presented;

/**
 * Clients send the same credential with every request of a connection. It is read, and hashed, with the first; what is
 * kept of it ends with the connection. Whether it is good is not kept.
 */
export function createCredentialReader(tokens: AccessTokens): CredentialReader {
  const read = new WeakMap<object, { readonly authorization: string; readonly presented: Presented }>();
  return (connection, authorization) => {
    const last = read.get(connection);
    if (last !== undefined && last.authorization === authorization) return last.presented;
    const presented = readCredential(authorization, tokens);
    if (authorization !== undefined) read.set(connection, { authorization, presented });
    return presented;
  };
}

function malformedDetail(text: string): string {
  if (hasKeyForm(text))
    return 'The API key contains a typing error: its checksum does not match. Copy the key again.';
  if (isLikeToken(text))
    return 'The access token is damaged or incomplete. Request a new one with POST /oauth/token';
  return 'The credential is not a valid API key or access token. Check that the complete key was copied: <prefix>_live_<12 characters>_<52 characters>';
}

function bearerText(authorization: string | undefined): string | null {
  return authorization === undefined ? null : (BEARER.exec(authorization)?.[1] ?? null);
}

/** Whether a key is revoked or expired. */
export function isEnded(stored: StoredKey, nowMs: number): boolean {
  return stored.revoked_at !== null || (stored.expires_at !== null && nowMs >= stored.expires_at);
}

/** Why a key that is good may not be used now, or not from here; null when it may. */
export function whyNotUsable(stored: StoredKey, address: string): string | null {
  if (stored.account.suspended_at !== null) {
    return SUSPENDED;
  }
  const allowed = stored.allow_addresses;
  if (allowed.length > 0 && !isAddressListed(allowed, address)) {
    return `This key cannot be used from the address ${address}.`;
  }
  return null;
}
